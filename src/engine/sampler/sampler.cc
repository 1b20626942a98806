#include "engine/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/sampler/random.h"
#include "engine/sampler/vocab_math.h"

namespace portico {
namespace {

constexpr float kGreedyBelow = 1e-6f;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// The token at `target` on the line of the kept tokens' probabilities, laid out by id.
TokenId PickKept(std::span<const float> p, std::span<const TokenId> kept, double uniform) {
  double total = 0;
  for (const TokenId token : kept) total += p[token];
  double target = uniform * total;
  for (const TokenId token : kept) {
    target -= p[token];
    if (target < 0) return token;
  }
  return kept.back();
}

// The same over the whole vocabulary, by the sums of its blocks.
TokenId PickAny(std::span<const float> p, std::span<const float> block_sums, double total,
                double uniform) {
  double target = uniform * total;
  size_t block = 0;
  while (block + 1 < block_sums.size() && target >= block_sums[block])
    target -= block_sums[block++];
  const size_t begin = block * kSumBlock;
  const size_t end = std::min(begin + kSumBlock, p.size());
  TokenId last = -1;
  for (size_t i = begin; i < end; ++i) {
    if (p[i] <= 0) continue;
    last = static_cast<TokenId>(i);
    target -= p[i];
    if (target < 0) return last;
  }
  return last >= 0 ? last : ArgMax(p, 1.0f);  // rounding led past the end of a block
}

bool Contains(std::span<const TokenId> tokens, TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

}  // namespace

Sampler::Sampler(std::shared_ptr<const SamplingParams> params, int32_t choice,
                 std::span<const TokenId> eos, uint64_t fallback_seed)
    : greedy_(params->temperature < kGreedyBelow || params->top_k == 1),
      inverse_temperature_(greedy_ ? 1.0f : 1.0f / params->temperature),
      rule_{params->top_k, params->top_p, params->min_p},
      params_(std::move(params)),
      eos_(eos),
      seed_(params_->seed.value_or(fallback_seed)),
      choice_(choice),
      counting_(params_->frequency_penalty != 0 || params_->presence_penalty != 0 ||
                params_->repetition_penalty != 1) {}

bool Sampler::IsStop(TokenId token) const {
  return Contains(params_->stop_token_ids, token) ||
         (!params_->ignore_eos && Contains(eos_, token));
}

bool Sampler::Adjusts() const {
  return !counts_.empty() || !params_->logit_bias.empty() || position_ < params_->min_new_tokens;
}

void Sampler::Adjust(std::span<float> logits) const {
  const SamplingParams& params = *params_;
  for (const auto& [token, count] : counts_) {
    if (static_cast<size_t>(token) >= logits.size()) continue;
    float& logit = logits[token];
    logit -= params.presence_penalty + params.frequency_penalty * static_cast<float>(count);
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
  for (const auto& [token, bias] : params.logit_bias) {
    if (static_cast<size_t>(token) < logits.size()) logits[token] += bias;
  }
  if (position_ >= params.min_new_tokens) return;
  for (const std::span<const TokenId> masked : {std::span(params.stop_token_ids), eos_}) {
    for (const TokenId token : masked) {
      if (static_cast<size_t>(token) < logits.size()) logits[token] = kNever;
    }
  }
}

std::span<const float> Sampler::Masked(std::span<const float> raw, std::span<const float> adjusted,
                                       TokenMask mask, std::vector<float>* out) const {
  out->resize(adjusted.size());
  bool any = false;
  for (size_t begin = 0; begin < adjusted.size(); begin += 32) {
    const size_t end = std::min(begin + 32, adjusted.size());
    const uint32_t word = begin / 32 < mask.size() ? mask[begin / 32] : 0;
    if (word == 0) {
      std::fill(out->begin() + static_cast<ptrdiff_t>(begin),
                out->begin() + static_cast<ptrdiff_t>(end), kNever);
      continue;
    }
    for (size_t i = begin; i < end; ++i) {
      (*out)[i] = (word >> (i - begin) & 1) != 0 ? adjusted[i] : kNever;
      any = any || (*out)[i] != kNever;
    }
  }
  if (any || position_ >= params_->min_new_tokens) return *out;
  for (const std::span<const TokenId> stops : {std::span(params_->stop_token_ids), eos_}) {
    for (const TokenId token : stops) {
      if (static_cast<size_t>(token) < raw.size() && Allows(mask, token)) {
        (*out)[token] = raw[token];
      }
    }
  }
  return *out;
}

TokenId Sampler::Draw(std::span<const float> logits, float max, SamplerScratch* scratch) const {
  scratch->probabilities.resize(logits.size());
  scratch->block_sums.resize(SumBlocks(logits.size()));
  const std::span<float> p(scratch->probabilities);
  const double total = ExpOf(logits, max, inverse_temperature_, p, scratch->block_sums);
  const double uniform = UniformDraw(seed_, choice_, position_);
  if (!rule_.any()) return PickAny(p, scratch->block_sums, total, uniform);
  Select(p, total, rule_, &scratch->kept, &scratch->order);
  return PickKept(p, scratch->kept, uniform);
}

TokenId Sampler::Next(std::span<const float> logits, SamplerScratch* scratch,
                      std::span<const float>* drawn_from, TokenMask mask) {
  const std::span<const float> raw = logits;
  if (Adjusts()) {
    scratch->logits.assign(logits.begin(), logits.end());
    Adjust(scratch->logits);
    logits = scratch->logits;
  }
  if (drawn_from != nullptr) *drawn_from = logits;
  if (!mask.empty()) logits = Masked(raw, logits, mask, &scratch->masked_logits);
  const float max = MaxOf(logits);
  if (!std::isfinite(max)) return -1;
  const TokenId token = greedy_ ? ArgMax(logits, max) : Draw(logits, max, scratch);
  Count(token);
  return token;
}

void Sampler::Count(TokenId token) {
  ++position_;
  if (counting_) ++counts_[token];
}

PositionLogprobs LogprobsOf(std::span<const float> logits, TokenId chosen, int32_t top,
                            std::span<const TokenId> ids, SamplerScratch* scratch,
                            float inverse_temperature) {
  const float max = MaxOf(logits);
  const auto sum = static_cast<float>(std::log(ExpSum(logits, max, inverse_temperature)));
  const auto logprob = [&](TokenId token) {
    const float value = (logits[token] - max) * inverse_temperature - sum;
    return TokenLogprob{token, std::max(value, std::numeric_limits<float>::lowest())};
  };
  PositionLogprobs result;
  result.chosen = logprob(chosen);
  Greatest(logits, static_cast<size_t>(top), &scratch->order);
  result.top.reserve(scratch->order.size());
  for (const TokenId token : scratch->order) result.top.push_back(logprob(token));
  result.of_ids.reserve(ids.size());
  for (const TokenId token : ids) result.of_ids.push_back(logprob(token));
  return result;
}

}  // namespace portico
