// Scores: for each item the probabilities of the label tokens at the position after query and item, as
// SGLang's /v1/score has them. Every causal model can do it; the prefix cache computes a shared query
// once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/embedding_request.h"
#include "message/score_request.h"
#include "message/text_delta.h"
#include "service/generation/generation.h"
#include "service/plan/step_gate.h"
#include "service/serving_model.h"

namespace portico {

// One prompt an item. INVALID_ARGUMENT naming the field, as PlanCompletion. Pure; any thread.
StatusOr<GenerationPlan> PlanScore(const ServingModel& model, const ScoreRequest& request,
                                   StepGate* gate = nullptr);
// What PlanScore says of a request that would cost too much, where query and items have not been read: `query_cost` is
// PromptCost() of the query at least.
Status CheckScoreCost(const ServingModel& model, size_t labels, int64_t query_cost, size_t items);

// One prompt a document, by the model's template; what is likely next is judge->yes or judge->no. Requires a model for
// which CheckRanks() is OK and that generates. As PlanScore.
StatusOr<GenerationPlan> PlanJudgements(const ServingModel& model, const RerankRequest& request,
                                        StepGate* gate = nullptr);

// How much likelier "yes" is than "no" for each document: the logarithm of its odds. Rows have both.
std::vector<float> LogOdds(const std::vector<std::vector<double>>& softmax_scores);

// exp() of each log-probability, or their softmax. A label that is impossible has 0.
std::vector<double> ScoresOf(std::span<const float> logprobs, bool softmax);

// Gathers what the generation of such a plan says.
class ScoreBoard {
 public:
  ScoreBoard(size_t items, size_t labels, bool softmax)
      : scores_(items), labels_(labels), softmax_(softmax) {}

  void OnDelta(const TextDelta& delta);

  // OK as long as no item has failed or was aborted, and the engine has told of all labels.
  const Status& status() const { return status_; }
  size_t values() const { return scores_.size() * labels_; }
  // A row an item, an entry a label, in the request's orders, if the status is OK.
  const std::vector<std::vector<double>>& scores() const { return scores_; }

 private:
  std::vector<std::vector<double>> scores_;
  size_t labels_;
  bool softmax_;
  Status status_;
};

}  // namespace portico
