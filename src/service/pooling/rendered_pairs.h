// A query with each of several texts, put together by a reranker's template.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "service/plan/step_gate.h"
#include "service/serving_model.h"

namespace portico {

struct TextPairs {
  const std::string& query;
  std::vector<std::string_view> items;
  std::string_view item_field;           // of the request; the query's is "query"
  std::string_view instruction;          // empty: the template's own
  std::optional<int32_t> truncate = {};  // the request's
  StepGate* gate = nullptr;
};

// The token ids of each pair. Requires model.joins_pairs. INVALID_ARGUMENT names the field; whether a pair fits the
// context is left to the caller. CANCELLED: the gate let a step not pass. Pure; any thread.
StatusOr<std::vector<std::vector<TokenId>>> EncodeRenderedPairs(const ServingModel& model,
                                                                const TextPairs& texts);

}  // namespace portico
