#include "service/plan/request_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace portico {
namespace {

// Of a stream, so many tokens wait to be sent at most before its client is behind.
constexpr int64_t kStreamedTokens = 4096;

}  // namespace

Status RequestCost::Add(std::string_view field, int64_t count, int64_t bytes) {
  int64_t more = 0;
  if (__builtin_mul_overflow(count, bytes, &more) || __builtin_add_overflow(sum_, more, &sum_)) {
    sum_ = std::numeric_limits<int64_t>::max();
  }
  if (sum_ <= bound_) return OkStatus();
  return InvalidArgument(
      field,
      fmt::format("{}: the request would take at least {} bytes, and --max-request-cost-bytes "
                  "is {}",
                  field, sum_, bound_));
}

int64_t PromptCost(const CompletionRequest::Prompt& prompt) {
  // A text and the ids that come of it take about as much again as the text.
  return static_cast<int64_t>(prompt.is_ids ? prompt.ids.size() * sizeof(TokenId)
                                            : prompt.text.size() * 2);
}

AnswerCost AnswerCostOf(const GenerationOptions& options, const EngineInfo& engine) {
  AnswerCost answer;
  answer.choices = std::max(options.n, options.best_of);
  answer.max_tokens = options.max_tokens.value_or(
      engine.default_max_new_tokens > 0 ? engine.default_max_new_tokens : engine.context_length);
  answer.streams = options.stream;
  if (options.logprobs) answer.logprobs = 1 + options.top_logprobs;
  return answer;
}

Status AddAnswer(const AnswerCost& answer, const EngineInfo& engine, std::string_view prompt_field,
                 RequestCost* cost) {
  PORTICO_RETURN_IF_ERROR(cost->Add(prompt_field, 1, answer.prompt_bytes));
  const std::string_view blamed = answer.choices > 1 ? std::string_view("n") : prompt_field;
  PORTICO_RETURN_IF_ERROR(cost->Add(blamed, answer.choices, kChoiceCost));
  if (answer.echoes) {
    PORTICO_RETURN_IF_ERROR(cost->Add(blamed, answer.choices, answer.prompt_bytes));
  }
  int64_t kept = std::min<int64_t>(answer.max_tokens, engine.context_length);
  if (answer.streams) kept = std::min(kept, kStreamedTokens);
  PORTICO_RETURN_IF_ERROR(cost->Add(blamed, answer.choices * kept, kAnswerTokenCost));
  if (answer.logprobs == 0) return OkStatus();
  const std::string_view field = answer.logprobs_field;
  PORTICO_RETURN_IF_ERROR(cost->Add(field, answer.choices * kept, answer.logprobs * kLogprobCost));
  if (!answer.prompt_logprobs) return OkStatus();
  const int64_t positions = std::min<int64_t>(answer.prompt_bytes, engine.context_length);
  // Each choice's are computed and stand in its answer; one choice's are spelled.
  PORTICO_RETURN_IF_ERROR(
      cost->Add(field, answer.choices * positions,
                answer.logprobs * (int64_t{sizeof(TokenLogprob)} + kLogprobTextCost)));
  return cost->Add(field, positions, answer.logprobs * kLogprobCost);
}

Status CheckAnswers(const AnswerCost& answer, const EngineInfo& engine,
                    std::string_view prompt_field, size_t prompts, int64_t bound) {
  RequestCost cost(bound);
  for (size_t i = 0; i < prompts; ++i) {
    PORTICO_RETURN_IF_ERROR(AddAnswer(answer, engine, prompt_field, &cost));
  }
  return OkStatus();
}

}  // namespace portico
