// A query with each document, put together by a reranker's template.
#pragma once

#include <vector>

#include "base/status.h"
#include "message/embedding_request.h"
#include "service/serving_model.h"

namespace portico {

// The token ids of each pair. Requires model.joins_pairs. INVALID_ARGUMENT names the field; whether a pair fits the
// context is left to the caller. Pure; any thread.
StatusOr<std::vector<std::vector<TokenId>>> EncodeRenderedPairs(const ServingModel& model,
                                                                const RerankRequest& request);

}  // namespace portico
