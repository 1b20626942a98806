// A request to score items against a query by how likely the model finds each label's token next.
#pragma once

#include <string>
#include <vector>

#include "message/text_request.h"

namespace portico {

struct ScoreRequest {
  // All are texts, or all are token ids.
  CompletionRequest::Prompt query;
  std::vector<CompletionRequest::Prompt> items;
  std::vector<TokenId> label_token_ids;  // ids >= 0; the service checks the vocabulary
  bool apply_softmax = false;            // over the labels, instead of the whole vocabulary
  bool item_first = false;               // the item stands before the query
  std::string rid;
  std::string model;  // empty: the default model
};

}  // namespace portico
