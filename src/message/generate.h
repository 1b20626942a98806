// What goes into an engine and what comes out: token ids, never text (DESIGN: GenerateRequest, TokenDelta).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/status.h"
#include "message/sampling.h"

namespace portico {

// Names one stream of tokens in this process; never used twice.
using StreamId = uint64_t;
StreamId NextStreamId();
// The first of `count` that follow each other.
StreamId NextStreamIds(uint64_t count);

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };
// "stop", "length", "abort", "error"; "" for kNone.
std::string_view FinishReasonName(FinishReason reason);

struct GenerateRequest {
  StreamId stream = 0;
  std::string rid;                                     // the client's name for the request
  std::shared_ptr<const std::vector<TokenId>> prompt;  // not empty; shared between choices
  SamplingParams sampling;
  int32_t choice = 0;  // index among the n answers to one prompt

  bool return_logprobs = false;  // of output tokens
  int32_t top_logprobs = 0;      // alternatives a position
  // Tokens whose log-probability is wanted at every position, within the vocabulary; null: none.
  std::shared_ptr<const std::vector<TokenId>> logprob_ids;
  // First prompt position whose log-probability is wanted, or -1 for none. Position 0 has none (no context).
  int32_t prompt_logprobs_start = -1;
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;  // natural log, the model's own: before temperature, penalties and bias
};

// One position: the token there, the best alternatives, best first, and those asked for by id.
struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
  std::vector<TokenLogprob> of_ids;  // in the order of GenerateRequest::logprob_ids
};

// Engine-side counts of one stream.
struct TokenUsage {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
  int32_t completion_tokens = 0;
};

// What is new in a stream since the last message. The last one has `finish` set, comes exactly once and
// carries the usage.
struct TokenDelta {
  StreamId stream = 0;
  absl::InlinedVector<TokenId, 4> tokens;
  std::vector<PositionLogprobs> logprobs;         // one a token, where asked for
  std::vector<PositionLogprobs> prompt_logprobs;  // with the first message that has any, from
      // max(prompt_logprobs_start, 1) to the prompt's end
  FinishReason finish = FinishReason::kNone;
  // With kStop: the token that ended the stream. It is the last of `tokens`; the detokenizer leaves it out.
  TokenId matched_token = -1;
  TokenUsage usage;
  Status error;  // with kError
};

}  // namespace portico
