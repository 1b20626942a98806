#include "engine/llama/generation/stream.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace portico::llama {
namespace {

using std::chrono::nanoseconds;

// What a stream's grammar may take of the time of all: so much at once, and so much for each token. A usual mask takes 0.1 ms. Within
// one mask, and one token that is accepted, the grammar's own bound ends it (grammar::kMaxMaskWork).
constexpr nanoseconds kGrammarBurst = std::chrono::seconds(2);
constexpr nanoseconds kGrammarTime = std::chrono::milliseconds(3);

// The processor time of this thread: a grammar is not slow because the machine is busy.
nanoseconds ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

std::shared_ptr<const std::vector<TokenId>> NoIds() {
  static const auto none = std::make_shared<const std::vector<TokenId>>();
  return none;
}

}  // namespace

Stream::Stream(GenerateRequest request, TokenSink* to, std::span<const TokenId> eos,
               uint64_t fallback_seed, bool original_logprobs)
    : sink(to),
      return_logprobs_(request.return_logprobs),
      top_logprobs_(request.top_logprobs),
      logprob_ids_(request.logprob_ids ? std::move(request.logprob_ids) : NoIds()),
      original_logprobs_(original_logprobs),
      sampler_(std::move(request.sampling), request.choice, eos, fallback_seed) {
  if (request.constraint != nullptr) {
    constraint_.emplace(*request.constraint);
    grammar_field_ = request.constraint->field;
  }
  stream = request.stream;
  prompt = std::move(request.prompt);
  max_new_tokens = request.max_new_tokens;
  const auto size = static_cast<int32_t>(prompt->size());
  next_logprob =
      request.prompt_logprobs_start < 0 ? size : std::clamp(request.prompt_logprobs_start, 1, size);
}

void Stream::TakePromptRow(int32_t position, std::span<const float> logits,
                           SamplerScratch* scratch) {
  if (position + 1 != next_logprob || next_logprob >= static_cast<int32_t>(prompt->size())) return;
  prompt_logprobs_.push_back(
      LogprobsOf(logits, (*prompt)[next_logprob], top_logprobs_, *logprob_ids_, scratch));
  ++next_logprob;
}

void Stream::PrepareMask() {
  if (!constraint_) return;
  const nanoseconds start = ThreadTime();
  constraint_->Prepare();
  grammar_time_ += ThreadTime() - start;
}

bool Stream::Accept(TokenId token) {
  if (!constraint_) return true;
  const nanoseconds start = ThreadTime();
  const bool allowed = constraint_->Accept(token);
  grammar_time_ += ThreadTime() - start;
  return allowed;
}

Status Stream::AtFault(std::string_view why) const {
  return InvalidArgument(grammar_field_, fmt::format("{}: {}", grammar_field_, why));
}

bool Stream::GrammarIsTooSlow() const {
  return constraint_ && (constraint_->too_slow() ||
                         grammar_time_ > kGrammarBurst + kGrammarTime * sampler_.position());
}

void Stream::TakeLastRow(std::span<const float> logits, SamplerScratch* scratch,
                         TokenDelta* delta) {
  if (max_new_tokens == 0) return End(FinishReason::kLength, OkStatus(), delta);
  std::span<const float> row;
  const bool stuck = constraint_ && constraint_->stuck();
  if (GrammarIsTooSlow()) {
    return End(FinishReason::kError, AtFault("it takes too long to apply"), delta);
  }
  if (stuck) return End(FinishReason::kError, AtFault("it allows no token here"), delta);
  const TokenMask mask = constraint_ ? constraint_->mask() : TokenMask();
  const TokenId token = sampler_.Next(logits, scratch, &row, mask);
  if (token >= 0 && !Accept(token)) {
    return End(FinishReason::kError,
               GrammarIsTooSlow()
                   ? AtFault("it takes too long to apply")
                   : Error(StatusCode::kInternal, "the grammar refused the token that was drawn"),
               delta);
  }
  if (token < 0) {
    return End(FinishReason::kError,
               Error(StatusCode::kInternal, "the model's logits are not finite"), delta);
  }
  Prepare(delta);
  delta->tokens.push_back(token);
  if (return_logprobs_) {
    const float scale = original_logprobs_ ? 1.0f : sampler_.inverse_temperature();
    delta->logprobs.push_back(LogprobsOf(row, token, top_logprobs_, *logprob_ids_, scratch, scale));
  }
  if (sampler_.IsStop(token) || (constraint_ && constraint_->finished())) {
    delta->finish = FinishReason::kStop;
    delta->matched_token = token;
  } else if (sampler_.position() >= max_new_tokens) {
    delta->finish = FinishReason::kLength;
  } else {
    tokens.push_back(token);
  }
}

void Stream::End(FinishReason reason, Status error, TokenDelta* delta) {
  Prepare(delta);
  delta->finish = reason;
  delta->error = std::move(error);
}

void Stream::Prepare(TokenDelta* delta) {
  delta->stream = stream;
  delta->prompt_logprobs = std::move(prompt_logprobs_);
  prompt_logprobs_.clear();
  delta->usage = {static_cast<int32_t>(prompt->size()), std::max(cached_tokens, 0),
                  sampler_.position(), retractions};
}

}  // namespace portico::llama
