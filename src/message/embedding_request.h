// Requests of what models that do not generate give: embeddings, classes, the relevance of documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "message/text_request.h"

namespace portico {

// One vector, or one row of classes, for each input.
struct EmbeddingRequest {
  std::vector<CompletionRequest::Prompt> inputs;
  std::string input_field;            // where they came from, for errors
  bool is_list = false;               // they came in a list
  std::optional<int32_t> dimensions;  // >= 1
  bool base64 = false;                // vectors as base64 of little-endian floats
  std::string rid;
  std::string model;  // empty: the default model
};

struct RerankRequest {
  std::string query;
  std::vector<std::string> documents;
  std::optional<int32_t> top_n;  // >= 1
  bool return_documents = true;
  std::string instruct;
  std::string rid;
  std::string model;  // empty: the default model
};

}  // namespace portico
