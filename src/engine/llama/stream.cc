#include "engine/llama/stream.h"

#include <algorithm>
#include <utility>

namespace portico::llama {
namespace {

std::shared_ptr<const std::vector<TokenId>> NoIds() {
  static const auto none = std::make_shared<const std::vector<TokenId>>();
  return none;
}

}  // namespace

Stream::Stream(GenerateRequest request, TokenSink* to, std::span<const TokenId> eos,
               uint64_t fallback_seed)
    : sink(to),
      return_logprobs_(request.return_logprobs),
      top_logprobs_(request.top_logprobs),
      logprob_ids_(request.logprob_ids ? std::move(request.logprob_ids) : NoIds()),
      sampler_(request.sampling, request.choice, *request.prompt, eos, fallback_seed) {
  stream = request.stream;
  prompt = std::move(request.prompt);
  max_new_tokens = request.sampling.max_new_tokens;
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

void Stream::TakeLastRow(std::span<const float> logits, SamplerScratch* scratch,
                         TokenDelta* delta) {
  if (max_new_tokens == 0) return End(FinishReason::kLength, OkStatus(), delta);
  const TokenId token = sampler_.Next(logits, scratch);
  if (token < 0) {
    return End(FinishReason::kError,
               Error(StatusCode::kInternal, "the model's logits are not finite"), delta);
  }
  Prepare(delta);
  delta->tokens.push_back(token);
  if (return_logprobs_) {
    delta->logprobs.push_back(LogprobsOf(logits, token, top_logprobs_, *logprob_ids_, scratch));
  }
  if (sampler_.IsStop(token)) {
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
                  sampler_.position()};
}

}  // namespace portico::llama
