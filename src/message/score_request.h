// A request to score items against a query: by how likely a generating model finds each label's token next, or by
// what a classifier says of both together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "message/text_request.h"

namespace portico {

struct ScoreRequest {
  // All are texts, or all are token ids.
  CompletionRequest::Prompt query;
  std::vector<CompletionRequest::Prompt> items;
  // Ids >= 0; the service checks the vocabulary. A classifier has labels of its own and does not look at them.
  std::vector<TokenId> label_token_ids;
  bool apply_softmax = false;       // over the labels, instead of the whole vocabulary
  bool item_first = false;          // the item stands before the query
  std::optional<int32_t> truncate;  // EmbeddingRequest's; of a classifier only
  std::string rid;
  std::string model;  // empty: the default model
};

}  // namespace portico
