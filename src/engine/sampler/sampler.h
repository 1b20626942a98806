// Picks tokens as SGLang does (its sampling_batch_info.py and sampler.py): frequency and presence
// penalties, then the repetition penalty, then logit_bias, then stop tokens are masked until
// min_new_tokens; below 1e-6 temperature the best token, otherwise a draw from the
// temperature-scaled distribution after the joint filter of selection.h. The penalties count the answer's tokens
// only (penaltylib/). Log-probabilities are those of the distribution before the filter: after penalties, bias, mask
// and temperature.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/sampler/grammar_constraint.h"
#include "engine/sampler/selection.h"
#include "message/generate.h"
#include "message/sampling.h"

namespace portico {

// Memory that one thread's samplers share; grows to a few rows of the vocabulary and stays.
struct SamplerScratch {
  std::vector<float> logits;
  std::vector<float> masked_logits;
  std::vector<float> probabilities;
  std::vector<float> block_sums;
  std::vector<TokenId> kept;
  std::vector<TokenId> order;
};

// The sampling state of one stream. Its draws depend on (seed, choice, position) and the logits
// only.
class Sampler {
 public:
  // `eos` are the model's end tokens, which outlive the sampler; `fallback_seed` serves where the
  // request names none.
  Sampler(std::shared_ptr<const SamplingParams> params, int32_t choice,
          std::span<const TokenId> eos, uint64_t fallback_seed);

  // The next token for one row of raw logits, counted as drawn. -1: the row has no finite greatest
  // value. `drawn_from` gets the row after penalties, bias and mask: `logits` itself or one in `scratch`.
  // `mask` is a grammar's: what it does not allow is not drawn, but counts in that row. -1 too where it allows nothing. Where it
  // allows nothing but stop tokens, min_new_tokens gives way.
  TokenId Next(std::span<const float> logits, SamplerScratch* scratch,
               std::span<const float>* drawn_from = nullptr, TokenMask mask = {});

  // What that row is multiplied with before it becomes probabilities; 1 where the best token is taken.
  float inverse_temperature() const { return inverse_temperature_; }

  // True if the token ends the answer.
  bool IsStop(TokenId token) const;

  // Tokens drawn so far.
  int32_t position() const { return position_; }

 private:
  bool Adjusts() const;
  void Adjust(std::span<float> logits) const;
  std::span<const float> Masked(std::span<const float> raw, std::span<const float> adjusted,
                                TokenMask mask, std::vector<float>* out) const;
  TokenId Draw(std::span<const float> logits, float max, SamplerScratch* scratch) const;
  void Count(TokenId token);

  bool greedy_;
  float inverse_temperature_;
  SelectionRule rule_;
  std::shared_ptr<const SamplingParams> params_;
  std::span<const TokenId> eos_;
  uint64_t seed_;
  int32_t choice_;
  int32_t position_ = 0;
  // How often each token was drawn; kept only where a penalty needs it.
  absl::flat_hash_map<TokenId, int32_t> counts_;
  bool counting_;
};

// The log-probability of `chosen`, of the `top` best tokens and of `ids`, from logits that are multiplied with
// `inverse_temperature` > 0 first. What cannot be has the lowest float, as in SGLang: JSON knows no infinity.
PositionLogprobs LogprobsOf(std::span<const float> logits, TokenId chosen, int32_t top,
                            std::span<const TokenId> ids, SamplerScratch* scratch,
                            float inverse_temperature = 1.0f);

}  // namespace portico
