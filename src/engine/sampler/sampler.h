// Picks tokens as SGLang does (its sampling_batch_info.py and sampler.py): frequency and presence
// penalties, then the repetition penalty, then logit_bias, then stop tokens are masked until
// min_new_tokens; below 1e-6 temperature the best token, otherwise a draw from the
// temperature-scaled distribution after the joint filter of selection.h. Log-probabilities are the
// model's own, taken before all of this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/sampler/selection.h"
#include "message/generate.h"
#include "message/sampling.h"

namespace portico {

// Memory that one thread's samplers share; grows to a few rows of the vocabulary and stays.
struct SamplerScratch {
  std::vector<float> logits;
  std::vector<float> probabilities;
  std::vector<float> block_sums;
  std::vector<TokenId> kept;
  std::vector<TokenId> order;
};

// The sampling state of one stream. Its draws depend on (seed, choice, position) and the logits
// only.
class Sampler {
 public:
  // `prompt` is read now; `eos` are the model's end tokens; `fallback_seed` serves where the
  // request names none.
  Sampler(const SamplingParams& params, int32_t choice, std::span<const TokenId> prompt,
          std::span<const TokenId> eos, uint64_t fallback_seed);

  // The next token for one row of raw logits, counted as drawn. -1: the row has no finite greatest
  // value.
  TokenId Next(std::span<const float> logits, SamplerScratch* scratch);

  // True if the token ends the answer.
  bool IsStop(TokenId token) const;

  // Tokens drawn so far.
  int32_t position() const { return position_; }

 private:
  bool Adjusts() const;
  void Adjust(std::span<float> logits) const;
  TokenId Draw(std::span<const float> logits, float max, SamplerScratch* scratch) const;
  void Count(TokenId token);

  bool greedy_;
  float inverse_temperature_;
  SelectionRule rule_;
  float frequency_penalty_;
  float presence_penalty_;
  float repetition_penalty_;
  int32_t min_new_tokens_;
  uint64_t seed_;
  int32_t choice_;
  int32_t position_ = 0;
  std::vector<std::pair<TokenId, float>> logit_bias_;
  std::vector<TokenId> stop_tokens_;    // end the answer
  std::vector<TokenId> masked_tokens_;  // not before min_new_tokens
  // How often each token was drawn, 0 for those of the prompt alone; kept only where a penalty
  // needs it.
  absl::flat_hash_map<TokenId, int32_t> counts_;
  bool counting_;
};

// The log-probability of `chosen`, of the `top` best tokens and of `ids`, from raw logits.
PositionLogprobs LogprobsOf(std::span<const float> logits, TokenId chosen, int32_t top,
                            std::span<const TokenId> ids, SamplerScratch* scratch);

}  // namespace portico
