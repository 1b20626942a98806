// How an engine picks tokens. Values are checked before they get here (ranges: reference in
// docs/api.md); null of the outer APIs has become the default.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace portico {

using TokenId = int32_t;

// Immutable once submitted: one object is shared by all choices of a request.
struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy (SGLang: below 1e-6)
  float top_p = 1.0f;        // (0, 1]
  int32_t top_k = -1;        // -1: all
  float min_p = 0.0f;        // [0, 1], relative to the best token
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  float repetition_penalty = 1.0f;  // over output tokens, as the other two
  std::optional<uint64_t> seed;     // draws depend on (seed, choice, position) only
  std::vector<std::pair<TokenId, float>> logit_bias;

  int32_t min_new_tokens = 0;           // until then no stop token may be drawn
  std::vector<TokenId> stop_token_ids;  // the model's end tokens are the engine's own
  bool ignore_eos = false;              // the model's end tokens do not end the answer
};

}  // namespace portico
