#include "engine/sampler/grammar_constraint.h"

#include <algorithm>
#include <utility>

namespace portico {
namespace {

// A model that spells a text in other tokens than the longest is not expected to use those for long: a token that comes is worth
// one, and one that does not takes four.
constexpr int32_t kFirstTrust = 8;
constexpr int32_t kMostTrust = 16;
constexpr int32_t kTrustLost = 4;

void Set(std::vector<uint32_t>& mask, TokenId token) {
  const auto word = static_cast<size_t>(token) / 32;
  if (token >= 0 && word < mask.size()) mask[word] |= 1u << (token % 32);
}

}  // namespace

ConstraintState::ConstraintState(const Constraint& constraint, size_t most_ahead)
    : most_ahead_(most_ahead),
      trust_(kFirstTrust),
      think_start_(constraint.think_start),
      think_end_(constraint.think_end),
      thinking_(constraint.think_end >= 0 && constraint.think_start < 0),
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

void ConstraintState::Prepare(absl::FunctionRef<bool()> goes_on) {
  FillMask();
  if (matcher_ && !thinking_ && !may_think_ && !finished_) LookAhead(goes_on);
}

void ConstraintState::LookAhead(absl::FunctionRef<bool()> goes_on) {
  while (forced_.size() < most_ahead_ && !stuck_ && goes_on()) {
    Forced next;
    next.token = matcher_->OnlyText(mask_, &next.allowed);
    const bool certain = next.allowed.size() == 1;
    const bool ends = std::find(stops_.begin(), stops_.end(), next.token) != stops_.end();
    if (next.token < 0 || ends || (!certain && trust_ <= 0)) return;
    if (!matcher_->Try(next.token)) return;
    forced_.push_back(std::move(next));
    stuck_ = !matcher_->FillMask(mask_);
  }
}

void ConstraintState::ForcedTokens(size_t most, std::vector<TokenId>* tokens) const {
  tokens->clear();
  for (size_t i = 0; i < std::min(most, forced_.size()); ++i) tokens->push_back(forced_[i].token);
}

void ConstraintState::FillMask() {
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
  FillMask();
  if (forced_.empty()) return free_ ? TokenMask() : TokenMask(mask_);
  forced_mask_.assign(mask_.size(), 0);
  for (const TokenId token : forced_.front().allowed) Set(forced_mask_, token);
  return forced_mask_;
}

bool ConstraintState::stuck() {
  FillMask();
  return stuck_ && forced_.empty();
}

bool ConstraintState::Accept(TokenId token) {
  if (!forced_.empty()) {
    const bool certain = forced_.front().allowed.size() == 1;
    if (token == forced_.front().token) {
      if (!certain) trust_ = std::min(trust_ + 1, kMostTrust);
      matcher_->Keep();
      forced_.pop_front();
      return true;
    }
    if (!certain) trust_ -= kTrustLost;
    forced_.clear();
    if (!matcher_->TakeBack()) return false;
  }
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
