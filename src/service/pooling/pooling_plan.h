// From texts, token ids or pairs of them to what an engine pools: tokenize, cut or refuse what is too long, check
// against the model. Pure functions, safe on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_pool.h"
#include "base/status.h"
#include "message/embedding_request.h"
#include "message/score_request.h"
#include "service/plan/step_gate.h"
#include "service/pooling/pooling_run.h"
#include "service/serving_model.h"

namespace portico {

// INVALID_ARGUMENT from all of these names the field: too many texts, an unknown id, more tokens than the model takes.
// CANCELLED: the gate, where there is one, let a step not pass.
struct PoolingPlanner {
  const ServingModel& model;
  size_t max_texts = 0;  // of one request
  CpuPool* helpers =
      nullptr;  // share the tokenizing; null on a shard, which must not wait for them
  StepGate* gate = nullptr;

  // One text an input: ids as they are, a text with the tokenizer's special tokens. The rids are the client's.
  StatusOr<PoolingPlan> PlanInputs(EmbeddingRequest request) const;
  // The same with a rid for every text, as NamePrompts (service/plan/rid_names.h) gives them.
  StatusOr<PoolingPlan> PlanNamedInputs(EmbeddingRequest request, std::string (*make_rid)()) const;

  // Two texts, or two lists of ids, that stand together.
  struct Pairs {
    const CompletionRequest::Prompt& query;            // of every pair
    std::span<const CompletionRequest::Prompt> items;  // each as the query: texts, or ids
    std::string_view item_field;                       // the query's is "query"
    bool item_first = false;
    std::optional<int32_t> truncate;
    std::string_view instruction;  // for the model's template; empty: its own
    const std::string& rid;
  };
  // One text an item. Texts are put together by the model's template where it has one for that, else by the tokenizer's
  // for pairs; ids follow each other as they are, with type 0 and type 1.
  StatusOr<PoolingPlan> PlanPairs(const Pairs& pairs) const;
  // The query with each document, and with each item.
  StatusOr<PoolingPlan> PlanRerank(const RerankRequest& request) const;
  StatusOr<PoolingPlan> PlanScores(const ScoreRequest& request) const;

  Status CheckCount(size_t count, std::string_view field) const;
};

}  // namespace portico
