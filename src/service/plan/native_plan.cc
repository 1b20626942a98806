#include "service/plan/native_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/events/recorder.h"
#include "service/constraint/call_constraint.h"
#include "service/constraint/constrain.h"
#include "service/model_task.h"
#include "service/plan/capability_checks.h"
#include "service/plan/plan.h"
#include "service/plan/request_cost.h"
#include "service/plan/rid_names.h"
#include "service/plan/sampling_rules.h"

namespace portico {
namespace {

constexpr size_t kMaxAnswers = 4096;

// Lists for a single prompt would be ambiguous with n > 1, so SGLang refuses them there.
template <typename T>
Status RefuseListWithChoices(const OneOrEach<T>& value, std::string_view field) {
  if (!value.is_list) return OkStatus();
  return InvalidArgument(field, fmt::format("{} must not be a list when n is above 1", field));
}

Status CheckLengths(const NativeGenerateRequest& request, size_t prompts) {
  PORTICO_RETURN_IF_ERROR(CheckLength(request.sampling, prompts, "sampling_params"));
  PORTICO_RETURN_IF_ERROR(CheckLength(request.return_logprob, prompts, "return_logprob"));
  PORTICO_RETURN_IF_ERROR(CheckLength(request.logprob_start_len, prompts, "logprob_start_len"));
  PORTICO_RETURN_IF_ERROR(CheckLength(request.top_logprobs_num, prompts, "top_logprobs_num"));
  return CheckLength(request.token_ids_logprob, prompts, "token_ids_logprob");
}

StatusOr<int32_t> ChoicesOf(const NativeGenerateRequest& request, size_t prompts) {
  if (request.sampling.values.empty()) return 1;
  const int32_t n = request.sampling.values[0].options.n;
  for (const NativeSampling& sampling : request.sampling.values) {
    if (sampling.options.n == n) continue;
    return InvalidArgument("sampling_params", "n must be the same for all prompts of a batch");
  }
  if (n > 1) {
    PORTICO_RETURN_IF_ERROR(RefuseListWithChoices(request.return_logprob, "return_logprob"));
    PORTICO_RETURN_IF_ERROR(RefuseListWithChoices(request.logprob_start_len, "logprob_start_len"));
    PORTICO_RETURN_IF_ERROR(RefuseListWithChoices(request.top_logprobs_num, "top_logprobs_num"));
    PORTICO_RETURN_IF_ERROR(RefuseListWithChoices(request.token_ids_logprob, "token_ids_logprob"));
  }
  if (prompts * static_cast<size_t>(n) > kMaxAnswers) {
    return InvalidArgument("sampling_params",
                           fmt::format("prompts times n must be at most {}, got {}", kMaxAnswers,
                                       prompts * static_cast<size_t>(n)));
  }
  return n;
}

// The place of a prompt in messages: `text`, or `text[3]` in a batch.
std::string PlaceOf(const NativeGenerateRequest& request, size_t i) {
  return request.is_batch ? fmt::format("{}[{}]", request.prompt_field, i) : request.prompt_field;
}

StatusOr<int32_t> LogprobStart(const NativeGenerateRequest& request, size_t i, size_t tokens) {
  const int32_t start = request.logprob_start_len.Of(i, -1);
  if (start < static_cast<int64_t>(tokens)) return start;
  return InvalidArgument("logprob_start_len",
                         fmt::format("logprob_start_len must be -1 (output only) or below the "
                                     "number of prompt tokens ({}), got {}",
                                     tokens, start));
}

// One map of sampling_params, brought into shape once for all prompts that have it.
struct SharedSampling {
  GenerationOptions options;
  SharedOptions shared;
  std::shared_ptr<const Constraint> constraint;
  bool default_limit = true;
  int32_t stream_interval = 1;
};

StatusOr<std::vector<SharedSampling>> ShareSamplings(const NativeGenerateRequest& request,
                                                     const ServingModel& model) {
  const EngineInfo& engine = model.engine->info();
  std::vector<SharedSampling> all;
  static const std::vector<NativeSampling> kDefault(1);
  const auto& values = request.sampling.values.empty() ? kDefault : request.sampling.values;
  all.reserve(values.size());
  for (const NativeSampling& sampling : values) {
    SharedSampling& made = all.emplace_back();
    made.options = sampling.options;
    PORTICO_ASSIGN_OR_RETURN(made.shared, ShareOptions(model.preferred, engine, &made.options));
    if (sampling.default_limit && model.preferred_max_new_tokens) {
      made.options.max_tokens = *model.preferred_max_new_tokens;
    }
    PORTICO_ASSIGN_OR_RETURN(made.constraint, ConstraintFor(model, sampling.options));
    if (request.require_reasoning || request.max_thinking_tokens) {
      PORTICO_ASSIGN_OR_RETURN(made.constraint,
                               BehindReasoning(model, ReasoningStart::kInside,
                                               request.max_thinking_tokens, made.constraint));
    }
    made.default_limit = sampling.default_limit;
    made.stream_interval =
        sampling.stream_interval > 0 ? sampling.stream_interval : model.stream_interval;
  }
  return all;
}

Status CheckCost(const ServingModel& model, const NativeGenerateRequest& request, size_t prompts,
                 int32_t n) {
  const EngineInfo& engine = model.engine->info();
  RequestCost cost(model.max_request_cost);
  static const NativeSampling kDefault;
  for (size_t i = 0; i < prompts; ++i) {
    const NativeSampling& sampling =
        request.sampling.values.empty() ? kDefault
                                        : request.sampling.values[request.sampling.is_list ? i : 0];
    AnswerCost answer = AnswerCostOf(sampling.options, engine);
    answer.choices = n;
    if (i < request.prompts.size()) answer.prompt_bytes = PromptCost(request.prompts[i]);
    answer.streams = request.stream;
    answer.echoes = request.return_prompt_token_ids;
    if (request.return_logprob.Of(i, false)) {
      const std::vector<std::vector<TokenId>>& asked = request.token_ids_logprob.values;
      const auto ids = static_cast<int64_t>(
          asked.empty() ? 0 : asked[request.token_ids_logprob.is_list ? i : 0].size());
      const int64_t top = request.top_logprobs_num.Of(i, 0);
      answer.logprobs = 1 + top + ids;
      answer.logprobs_field = ids > top ? "token_ids_logprob" : "top_logprobs_num";
      answer.prompt_logprobs = request.logprob_start_len.Of(i, -1) >= 0;
      PORTICO_RETURN_IF_ERROR(CheckLogprobs(engine, "return_logprob", answer.prompt_logprobs));
    }
    PORTICO_RETURN_IF_ERROR(AddAnswer(answer, engine, request.prompt_field, &cost));
  }
  return OkStatus();
}

// What a prompt asks for, and what its sampling parameters do.
std::shared_ptr<const RequestExtras> Join(std::shared_ptr<const RequestExtras> prompt,
                                          std::shared_ptr<const RequestExtras> sampling) {
  if (sampling == nullptr) return prompt;
  if (prompt == nullptr) return sampling;
  auto both = std::make_shared<RequestExtras>(*prompt);
  if (!sampling->stop_regex.empty()) both->stop_regex = sampling->stop_regex;
  if (!sampling->custom_params.empty()) both->custom_params = sampling->custom_params;
  return both;
}

// Only the engine knows the prompt's tokens.
Status CheckPromptOfMedia(const NativeGenerateRequest& request, size_t i) {
  if (request.return_logprob.Of(i, false) && request.logprob_start_len.Of(i, -1) >= 0) {
    return InvalidArgument("logprob_start_len",
                           "logprob_start_len must be -1 (output only) for a prompt with media");
  }
  if (!request.return_prompt_token_ids) return OkStatus();
  return InvalidArgument("return_prompt_token_ids",
                         "return_prompt_token_ids is not supported for a prompt with media");
}

StatusOr<GenerationPlan> PlanPrompt(const ServingModel& model, const NativeGenerateRequest& request,
                                    const SharedSampling& shared, size_t i, StepGate* gate) {
  const EngineInfo& engine = model.engine->info();
  const events::Span span(events::Event::kPreprocessStart, events::Event::kPreprocessEnd,
                          events::kFrontend);
  GenerationPlan plan;
  plan.options = shared.options;
  plan.sampling = shared.shared.sampling;
  plan.stops = shared.shared.stops;
  plan.constraint = shared.constraint;
  plan.stream_interval = shared.stream_interval;
  plan.extras = Join(request.extras.Of(i, nullptr), std::move(plan.options.extras));
  plan.options.extras = nullptr;
  plan.priority = request.priority;
  plan.continues_prompt = true;
  plan.spell_logprobs = request.return_text_in_logprobs;
  plan.options.return_token_ids = request.return_prompt_token_ids;
  plan.options.logprobs = request.return_logprob.Of(i, false);
  plan.options.top_logprobs = plan.options.logprobs ? request.top_logprobs_num.Of(i, 0) : 0;

  if (plan.extras != nullptr && plan.extras->media != nullptr) {
    PORTICO_RETURN_IF_ERROR(CheckMedia(engine, plan.extras->media.get()));
    PORTICO_RETURN_IF_ERROR(CheckPromptOfMedia(request, i));
    plan.extras =
        PlaceMedia(std::move(plan.extras), request.prompts[i].text,
                   !shared.default_limit && plan.options.max_tokens && !model.allow_auto_truncate,
                   plan.options.n, model.max_request_cost);
  }
  const std::string place = PlaceOf(request, i);
  PORTICO_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                           EncodePrompt(model, request.prompts[i], place, gate));
  const auto length = static_cast<int64_t>(ids.size());
  if (shared.default_limit) {
    const int64_t room = std::max<int64_t>(engine.context_length - length, 1);
    plan.options.max_tokens = std::min(room, *plan.options.max_tokens);
  }
  GenerationPlan::Prompt prompt;
  prompt.is_ids = request.prompts[i].is_ids;
  PORTICO_ASSIGN_OR_RETURN(prompt.max_new_tokens, FitPrompt(model, plan.options, place, &ids));
  if (plan.options.min_tokens > prompt.max_new_tokens) {
    return InvalidArgument("min_new_tokens",
                           fmt::format("min_new_tokens must be in [0, max_new_tokens ({})], got {}",
                                       prompt.max_new_tokens, plan.options.min_tokens));
  }
  if (plan.options.logprobs) {
    PORTICO_ASSIGN_OR_RETURN(plan.prompt_logprobs_start, LogprobStart(request, i, ids.size()));
    std::vector<TokenId> asked = request.token_ids_logprob.Of(i, {});
    PORTICO_RETURN_IF_ERROR(CheckLogprobIds(asked, engine.vocab_size, "token_ids_logprob"));
    if (!asked.empty()) {
      plan.logprob_ids = std::make_shared<const std::vector<TokenId>>(std::move(asked));
    }
  }
  prompt.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
  plan.prompts.push_back(std::move(prompt));
  return plan;
}

}  // namespace

Status CheckNativeCost(const ServingModel& model, const NativeGenerateRequest& request,
                       size_t prompts) {
  PORTICO_RETURN_IF_ERROR(CheckLengths(request, prompts));
  PORTICO_ASSIGN_OR_RETURN(const int32_t n, ChoicesOf(request, prompts));
  return CheckCost(model, request, prompts, n);
}

StatusOr<NativePlan> PlanNative(const ServingModel& model, const NativeGenerateRequest& request,
                                std::string (*make_rid)(), StepGate* gate) {
  const TimePoint arrival = Clock::now();
  PORTICO_RETURN_IF_ERROR(CheckGenerates(model));
  NativePlan plan;
  const size_t prompts = request.prompts.size();
  PORTICO_RETURN_IF_ERROR(CheckLengths(request, prompts));
  PORTICO_ASSIGN_OR_RETURN(plan.n, ChoicesOf(request, prompts));
  PORTICO_ASSIGN_OR_RETURN(
      std::vector<std::string> names,
      NamePrompts(request.rid, request.prompts.size(), request.is_batch, make_rid));
  PORTICO_RETURN_IF_ERROR(CheckCost(model, request, prompts, plan.n));
  PORTICO_RETURN_IF_ERROR(PassGate(gate, WorkOf(request.prompts)));
  PORTICO_ASSIGN_OR_RETURN(const std::vector<SharedSampling> samplings,
                           ShareSamplings(request, model));
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(PassGate(gate, 0));
    const SharedSampling& sampling = samplings[request.sampling.is_list ? i : 0];
    PORTICO_ASSIGN_OR_RETURN(GenerationPlan prompt, PlanPrompt(model, request, sampling, i, gate));
    prompt.options.rid = std::move(names[i]);
    prompt.arrival = arrival;
    plan.prompts.push_back(std::move(prompt));
  }
  plan.is_list = request.is_batch || plan.n > 1;
  plan.return_text_in_logprobs = request.return_text_in_logprobs;
  plan.stream = request.stream;
  plan.weight_version = model.weight_version();
  return plan;
}

Status TakeRids(ActiveRids& rids, NativePlan* plan) {
  for (GenerationPlan& prompt : plan->prompts) {
    const Status status = TakeRids(rids, &prompt);
    if (status.ok()) continue;
    for (GenerationPlan& taken : plan->prompts) taken.rid_lease.Release();
    return status;
  }
  return OkStatus();
}

}  // namespace portico
