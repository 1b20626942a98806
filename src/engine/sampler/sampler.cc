#include "engine/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace

Sampler::Sampler(const SamplingParams& params, int32_t choice, std::span<const TokenId> prompt,
                 std::span<const TokenId> eos, uint64_t fallback_seed)
    : greedy_(params.temperature < kGreedyBelow),
      inverse_temperature_(greedy_ ? 1.0f : 1.0f / params.temperature),
      rule_{params.top_k, params.top_p, params.min_p},
      frequency_penalty_(params.frequency_penalty),
      presence_penalty_(params.presence_penalty),
      repetition_penalty_(params.repetition_penalty),
      min_new_tokens_(params.min_new_tokens),
      seed_(params.seed.value_or(fallback_seed)),
      choice_(choice),
      logit_bias_(params.logit_bias),
      stop_tokens_(params.stop_token_ids),
      counting_(frequency_penalty_ != 0 || presence_penalty_ != 0 || repetition_penalty_ != 1) {
  masked_tokens_ = stop_tokens_;
  masked_tokens_.insert(masked_tokens_.end(), eos.begin(), eos.end());
  if (!params.ignore_eos) stop_tokens_ = masked_tokens_;
  greedy_ = greedy_ || params.top_k == 1;
  if (repetition_penalty_ != 1) {
    for (const TokenId token : prompt) counts_.try_emplace(token, 0);
  }
}

bool Sampler::IsStop(TokenId token) const {
  return std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
}

bool Sampler::Adjusts() const {
  return !counts_.empty() || !logit_bias_.empty() ||
         (position_ < min_new_tokens_ && !masked_tokens_.empty());
}

void Sampler::Adjust(std::span<float> logits) const {
  for (const auto& [token, count] : counts_) {
    if (static_cast<size_t>(token) >= logits.size()) continue;
    float& logit = logits[token];
    if (count > 0) logit -= presence_penalty_ + frequency_penalty_ * static_cast<float>(count);
    logit = logit > 0 ? logit / repetition_penalty_ : logit * repetition_penalty_;
  }
  for (const auto& [token, bias] : logit_bias_) {
    if (static_cast<size_t>(token) < logits.size()) logits[token] += bias;
  }
  if (position_ >= min_new_tokens_) return;
  for (const TokenId token : masked_tokens_) {
    if (static_cast<size_t>(token) < logits.size()) logits[token] = kNever;
  }
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

TokenId Sampler::Next(std::span<const float> logits, SamplerScratch* scratch) {
  if (Adjusts()) {
    scratch->logits.assign(logits.begin(), logits.end());
    Adjust(scratch->logits);
    logits = scratch->logits;
  }
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
                            std::span<const TokenId> ids, SamplerScratch* scratch) {
  const float max = MaxOf(logits);
  const float normalizer = max + static_cast<float>(std::log(ExpSum(logits, max)));
  PositionLogprobs result;
  result.chosen = {chosen, logits[chosen] - normalizer};
  Greatest(logits, static_cast<size_t>(top), &scratch->order);
  result.top.reserve(scratch->order.size());
  for (const TokenId token : scratch->order)
    result.top.push_back({token, logits[token] - normalizer});
  result.of_ids.reserve(ids.size());
  for (const TokenId token : ids) result.of_ids.push_back({token, logits[token] - normalizer});
  return result;
}

}  // namespace portico
