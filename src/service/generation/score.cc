#include "service/generation/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "service/model_task.h"
#include "service/plan/capability_checks.h"
#include "service/plan/plan.h"
#include "service/plan/request_cost.h"
#include "service/plan/sampling_rules.h"
#include "service/pooling/rendered_pairs.h"

namespace portico {
namespace {

CompletionRequest::Prompt Join(const CompletionRequest::Prompt& first,
                               const CompletionRequest::Prompt& second) {
  CompletionRequest::Prompt joined = first;
  joined.text += second.text;
  joined.ids.insert(joined.ids.end(), second.ids.begin(), second.ids.end());
  return joined;
}

// The field that has most of the bytes of a document's prompt; the document has so many.
std::string_view LongestField(const RerankRequest& request, size_t document) {
  if (request.instruction.size() > std::max(document, request.query.size())) return "instruct";
  return request.query.size() > document ? "query" : "documents";
}

// The one to blame where the prompt of document `i` is too long.
std::string LongestText(const RerankRequest& request, size_t i) {
  const std::string_view field = LongestField(request, request.documents[i].size());
  return field == "documents" ? fmt::format("documents[{}]", i) : std::string(field);
}

// A plan that says of each prompt how likely each label is next.
// `field`: the client's, because of which their probabilities are needed.
StatusOr<GenerationPlan> NewPlan(const std::string& rid, std::vector<TokenId> labels,
                                 const EngineInfo& engine, std::string_view field) {
  PORTICO_RETURN_IF_ERROR(CheckLogprobs(engine, field, /*of_prompts=*/false));
  GenerationPlan plan;
  plan.options.rid = rid;
  plan.options.max_tokens = 1;
  plan.options.temperature = 0.0f;
  plan.options.logprobs = true;
  plan.logprob_ids = std::make_shared<const std::vector<TokenId>>(std::move(labels));
  plan.spell_logprobs = false;
  PORTICO_ASSIGN_OR_RETURN(plan.sampling, MakeSampling(plan.options, {}, engine));
  return plan;
}

Status AddPrompt(std::vector<TokenId> ids, const EngineInfo& engine, const std::string& place,
                 GenerationPlan* plan) {
  GenerationPlan::Prompt prompt;
  PORTICO_ASSIGN_OR_RETURN(prompt.max_new_tokens, FitContext(static_cast<int64_t>(ids.size()),
                                                             plan->options, engine, place));
  prompt.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
  plan->prompts.push_back(std::move(prompt));
  return OkStatus();
}

}  // namespace

StatusOr<GenerationPlan> PlanScore(const ServingModel& model, const ScoreRequest& request,
                                   StepGate* gate) {
  PORTICO_RETURN_IF_ERROR(CheckGenerates(model));
  const EngineInfo& engine = model.engine->info();
  if (request.label_token_ids.empty()) {
    return InvalidArgument("label_token_ids", "label_token_ids is required");
  }
  if (request.truncate) {
    return InvalidArgument("truncate_prompt_tokens",
                           "truncate_prompt_tokens is for models that classify: leave it out");
  }
  PORTICO_RETURN_IF_ERROR(
      CheckLogprobIds(request.label_token_ids, engine.vocab_size, "label_token_ids"));
  if (request.query.is_ids) {
    PORTICO_RETURN_IF_ERROR(CheckIds(request.query.ids, engine.vocab_size, "query"));
  }
  RequestCost cost(model.max_request_cost);
  const int64_t labels = static_cast<int64_t>(request.label_token_ids.size());
  for (const CompletionRequest::Prompt& item : request.items) {
    PORTICO_RETURN_IF_ERROR(cost.Add("items", 1, PromptCost(request.query) + PromptCost(item)));
    PORTICO_RETURN_IF_ERROR(cost.Add("items", 1, kChoiceCost + labels * kLogprobCost));
  }
  PORTICO_ASSIGN_OR_RETURN(GenerationPlan plan, NewPlan(request.rid, request.label_token_ids,
                                                        engine, "label_token_ids"));
  PORTICO_RETURN_IF_ERROR(
      PassGate(gate, WorkOf(request.items) + request.items.size() * request.query.text.size()));
  for (size_t i = 0; i < request.items.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(PassGate(gate, 0));
    const CompletionRequest::Prompt& item = request.items[i];
    const std::string place = fmt::format("items[{}]", i);
    PORTICO_ASSIGN_OR_RETURN(
        std::vector<TokenId> ids,
        EncodePrompt(model,
                     request.item_first ? Join(item, request.query) : Join(request.query, item),
                     place, gate));
    PORTICO_RETURN_IF_ERROR(AddPrompt(std::move(ids), engine, place, &plan));
  }
  return plan;
}

Status CheckScoreCost(const ServingModel& model, size_t labels, int64_t query_cost, size_t items) {
  RequestCost cost(model.max_request_cost);
  return cost.Add("items", static_cast<int64_t>(items),
                  query_cost + kChoiceCost + static_cast<int64_t>(labels) * kLogprobCost);
}

StatusOr<GenerationPlan> PlanJudgements(const ServingModel& model, const RerankRequest& request,
                                        StepGate* gate) {
  const EngineInfo& engine = model.engine->info();
  RequestCost cost(model.max_request_cost);
  const size_t shared = request.query.size() + request.instruction.size();
  for (const std::string& document : request.documents) {
    const size_t own = document.size() + size_t{kChoiceCost / 2};
    PORTICO_RETURN_IF_ERROR(
        cost.Add(LongestField(request, own), 1, static_cast<int64_t>(2 * (shared + own))));
  }
  PORTICO_ASSIGN_OR_RETURN(
      GenerationPlan plan,
      NewPlan(request.rid, {model.judge->yes, model.judge->no}, engine, "model"));
  const TextPairs texts{.query = request.query,
                        .items = {request.documents.begin(), request.documents.end()},
                        .item_field = "documents",
                        .instruction = request.instruction,
                        .truncate = request.truncate,
                        .gate = gate};
  PORTICO_ASSIGN_OR_RETURN(std::vector<std::vector<TokenId>> pairs,
                           EncodeRenderedPairs(model, texts));
  for (size_t i = 0; i < pairs.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(AddPrompt(std::move(pairs[i]), engine, LongestText(request, i), &plan));
  }
  return plan;
}

std::vector<float> LogOdds(const std::vector<std::vector<double>>& softmax_scores) {
  constexpr double kTiny = 1e-300;  // what is impossible has odds all the same
  std::vector<float> odds;
  for (const std::vector<double>& row : softmax_scores) {
    odds.push_back(static_cast<float>(std::log(std::max(row.at(0), kTiny)) -
                                      std::log(std::max(row.at(1), kTiny))));
  }
  return odds;
}

std::vector<double> ScoresOf(std::span<const float> logprobs, bool softmax) {
  std::vector<double> scores(logprobs.begin(), logprobs.end());
  double shift = 0;
  if (softmax && !scores.empty()) {
    shift = *std::max_element(scores.begin(), scores.end());
    if (std::isinf(shift)) shift = 0;  // none is possible
  }
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - shift);
  if (softmax && sum > 0) {
    for (double& score : scores) score /= sum;
  }
  return scores;
}

void ScoreBoard::OnDelta(const TextDelta& delta) {
  if (delta.finish == FinishReason::kError) {
    status_ = delta.error.ok() ? Error(StatusCode::kInternal, "the engine failed") : delta.error;
  } else if (delta.finish == FinishReason::kAbort) {
    status_ = Error(StatusCode::kAborted, "the request was aborted");
  }
  if (delta.logprobs.empty()) {
    const bool unscored = scores_[static_cast<size_t>(delta.index)].empty();
    if (delta.finish != FinishReason::kNone && unscored && status_.ok()) {
      status_ = Error(StatusCode::kInternal, "the engine gave no log-probabilities");
    }
    return;
  }
  std::vector<float> logprobs;
  for (const TextLogprob& label : delta.logprobs.front().of_ids) {
    logprobs.push_back(label.logprob.value_or(-std::numeric_limits<float>::infinity()));
  }
  if (logprobs.size() != labels_ && status_.ok()) {
    status_ = Error(StatusCode::kInternal,
                    fmt::format("the engine gave {} log-probabilities for {} labels",
                                logprobs.size(), labels_));
  }
  scores_[static_cast<size_t>(delta.index)] = ScoresOf(logprobs, softmax_);
}

}  // namespace portico
