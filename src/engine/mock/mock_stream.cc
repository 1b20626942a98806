#include "engine/mock/mock_stream.h"

#include <algorithm>
#include <utility>

namespace portico {
namespace {

bool IsSpecial(const MockModel& model, TokenId token) {
  const auto index = static_cast<size_t>(token);
  return index < model.special.size() && model.special[index];
}

// Of the i-th best token, from 1.
float AlternativeLogprob(int32_t i) { return -3.2f - 0.7f * static_cast<float>(i - 1); }

}  // namespace

MockStream::MockStream(GenerateRequest request, TokenSink* sink, MockFaultPlan fault)
    : prompt_(request.prompt->data()),
      prompt_tokens_(static_cast<int32_t>(request.prompt->size())),
      max_new_tokens_(request.max_new_tokens),
      id_(request.stream),
      sink_(sink),
      fault_(fault),
      return_logprobs_(request.return_logprobs),
      min_new_tokens_(request.sampling->min_new_tokens),
      stop_token_ids_(request.sampling->stop_token_ids.empty() ? nullptr
                                                               : &request.sampling->stop_token_ids),
      request_(std::move(request)) {}

void MockStream::Start(TimePoint now, const MockModel& model) {
  first_due_ = now + model.ttft;
  due_ = first_due_;
  steps_ = 0;  // not the first start after a pause that retracted it
  only_special_ = std::all_of(request_.prompt->begin(), request_.prompt->end(),
                              [&](TokenId token) { return IsSpecial(model, token); });
}

int32_t MockStream::TokensDue(TimePoint now, int32_t max_tokens, const MockModel& model) {
  const int32_t left = max_new_tokens_ - produced_;
  int64_t steps = (std::max(max_tokens, model.tokens_per_step)) / model.tokens_per_step;
  if (model.itl > Duration::zero()) {
    // A late step makes up for what it missed, so that a stream keeps its rate.
    const int64_t due_steps = (now - first_due_) / model.itl + 1 - steps_;
    steps = std::clamp<int64_t>(due_steps, 0, steps);
  }
  steps_ += steps;
  due_ = first_due_ + steps_ * model.itl;
  return static_cast<int32_t>(std::min<int64_t>(left, steps * model.tokens_per_step));
}

TokenId MockStream::NextToken(const MockModel& model) {
  if (only_special_) return prompt_[prompt_tokens_ - 1];
  for (;;) {
    const TokenId token = prompt_[cursor_];
    cursor_ = cursor_ + 1 == prompt_tokens_ ? 0 : cursor_ + 1;
    if (!IsSpecial(model, token)) return token;
  }
}

bool MockStream::StopsAt(TokenId token) const {
  if (stop_token_ids_ == nullptr || produced_ <= min_new_tokens_) return false;
  return std::find(stop_token_ids_->begin(), stop_token_ids_->end(), token) !=
         stop_token_ids_->end();
}

MockStream::Outcome MockStream::Produce(TimePoint now, int32_t max_tokens, const MockModel& model,
                                        TokenDelta* delta) {
  delta->stream = id();
  if (!said_first_) {
    said_first_ = true;
    AddPromptLogprobs(model, delta);
  }
  const int32_t count = TokensDue(now, max_tokens, model);
  delta->tokens.reserve(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    if (fault_.fault != MockFault::kNone && produced_ >= fault_.after_tokens) break;
    const TokenId token = NextToken(model);
    if (return_logprobs_) {
      delta->logprobs.push_back(Logprobs(token, cells(), model));
    }
    ++produced_;
    delta->tokens.push_back(token);
    if (StopsAt(token)) {
      delta->finish = FinishReason::kStop;
      delta->matched_token = token;
      break;
    }
  }
  delta->usage = Usage();
  if (delta->finish != FinishReason::kNone) return Outcome::kFinished;
  if (fault_.fault != MockFault::kNone && produced_ >= fault_.after_tokens) {
    if (fault_.fault == MockFault::kStall) return Outcome::kStalled;
    const bool dies = fault_.fault == MockFault::kDie;
    delta->finish = FinishReason::kError;
    delta->error = dies ? Error(StatusCode::kUnavailable, "the mock engine failed")
                        : Error(StatusCode::kInternal, "the mock engine failed this request");
    return dies ? Outcome::kEngineDies : Outcome::kFinished;
  }
  if (produced_ < max_new_tokens_) return Outcome::kMore;
  delta->finish = FinishReason::kLength;
  return Outcome::kFinished;
}

TokenDelta MockStream::Ended(FinishReason reason, Status error) const {
  TokenDelta delta;
  delta.stream = id();
  delta.finish = reason;
  delta.usage = Usage();
  delta.error = std::move(error);
  return delta;
}

// The chosen token has a probability of 0.86 to 0.9 and is the best one; the alternatives, the ids
// that follow its own, share most of the rest.
PositionLogprobs MockStream::Logprobs(TokenId token, int64_t position,
                                      const MockModel& model) const {
  const uint64_t hash =
      MockHash((static_cast<uint64_t>(position) << 32) ^ static_cast<uint64_t>(token));
  PositionLogprobs at;
  at.chosen.token = token;
  at.chosen.logprob = -0.1f - 0.05f * static_cast<float>(hash % 1024) / 1024.0f;
  const int32_t count = std::min(request_.top_logprobs, model.vocab_size);
  at.top.reserve(static_cast<size_t>(std::max(count, 0)));
  for (int32_t i = 0; i < count; ++i) {
    if (i == 0) {
      at.top.push_back(at.chosen);
      continue;
    }
    const int64_t other = (static_cast<int64_t>(token) + i) % model.vocab_size;
    at.top.push_back({static_cast<TokenId>(other), AlternativeLogprob(i)});
  }
  if (request_.logprob_ids == nullptr) return at;
  for (const TokenId id : *request_.logprob_ids) {
    const int32_t distance = (id - token + model.vocab_size) % model.vocab_size;
    at.of_ids.push_back({id, distance == 0 ? at.chosen.logprob : AlternativeLogprob(distance)});
  }
  return at;
}

void MockStream::AddPromptLogprobs(const MockModel& model, TokenDelta* delta) const {
  if (request_.prompt_logprobs_start < 0) return;
  const std::vector<TokenId>& prompt = *request_.prompt;
  for (auto i = static_cast<size_t>(std::max(request_.prompt_logprobs_start, 1)); i < prompt.size();
       ++i) {
    delta->prompt_logprobs.push_back(Logprobs(prompt[i], static_cast<int64_t>(i), model));
  }
}

TokenUsage MockStream::Usage() const {
  TokenUsage usage;
  usage.prompt_tokens = prompt_tokens_;
  usage.completion_tokens = produced_;
  return usage;
}

}  // namespace portico
