#include "engine/sampler/grammar_constraint.h"

#include <algorithm>
#include <utility>

namespace portico {
namespace {

void Set(std::vector<uint32_t>& mask, TokenId token) {
  const auto word = static_cast<size_t>(token) / 32;
  if (token >= 0 && word < mask.size()) mask[word] |= 1u << (token % 32);
}

}  // namespace

ConstraintState::ConstraintState(const Constraint& constraint)
    : think_start_(constraint.think_start),
      think_end_(constraint.think_end),
      thinking_(constraint.BeginsInReasoning()),
      may_think_(constraint.think_end >= 0 && constraint.think_start >= 0),
      thinking_left_(constraint.max_thinking_tokens) {
  size_t tokens = static_cast<size_t>(std::max(think_end_ + 1, 0));
  if (constraint.compiled != nullptr) {
    const auto& compiled = static_cast<const GrammarConstraint&>(*constraint.compiled).compiled();
    matcher_.emplace(compiled);
    stops_ = compiled->stops();
    tokens = std::max(tokens, static_cast<size_t>(compiled->vocab_size()));
  }
  mask_.resize(grammar::MaskWords(tokens));
}

void ConstraintState::Prepare() {
  if (prepared_ || finished_) return;
  prepared_ = true;
  const bool must_end = thinking_ && thinking_left_ == 0;
  free_ = !matcher_ && !must_end;
  if (free_) return;
  if (thinking_ && !must_end) {
    std::fill(mask_.begin(), mask_.end(), ~uint32_t{0});
    for (const TokenId stop : stops_) mask_[static_cast<size_t>(stop) / 32] &= ~(1u << (stop % 32));
    return;
  }
  if (thinking_) {
    std::fill(mask_.begin(), mask_.end(), 0);
    Set(mask_, think_end_);
    return;
  }
  stuck_ = !matcher_->FillMask(mask_);
  if (may_think_) Set(mask_, think_start_);
}

TokenMask ConstraintState::mask() {
  Prepare();
  return free_ ? TokenMask() : TokenMask(mask_);
}

bool ConstraintState::stuck() {
  Prepare();
  return stuck_;
}

bool ConstraintState::Accept(TokenId token) {
  prepared_ = false;
  if (thinking_) {
    if (thinking_left_ > 0) --thinking_left_;
    thinking_ = token != think_end_;
    return true;
  }
  if (std::exchange(may_think_, false) && token == think_start_) {
    thinking_ = true;
    return true;
  }
  if (!matcher_) return true;
  if (!matcher_->Accept(token)) return false;
  finished_ = matcher_->finished();
  return true;
}

}  // namespace portico
