// Requests of what models that do not generate give: vectors, classes, the relevance of documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "message/native_generate.h"
#include "message/request_extras.h"
#include "message/text_request.h"

namespace portico {

// Of `truncate_prompt_tokens`: the model's limit.
inline constexpr int32_t kTruncateToLimit = -1;

// One vector, or one row of classes, for each input.
struct EmbeddingRequest {
  std::vector<CompletionRequest::Prompt> inputs;
  // One list for each input, of one type (0 to 255) a token; empty: all 0.
  std::vector<std::vector<uint8_t>> token_types;
  std::string input_field;  // where they came from, for errors
  bool is_list = false;     // they came in a list
  std::optional<int32_t>
      truncate;  // cut to so many tokens, >= 1, or kTruncateToLimit; absent: refuse
  // Of the model's prompts, put before each text; empty: none, absent: the model's default.
  std::optional<std::string> prompt_name;
  std::optional<int32_t> dimensions;          // >= 1
  std::optional<bool> normalize;              // absent: as the model is meant
  bool activation = true;                     // of classes: probabilities, else the logits
  bool base64 = false;                        // vectors as base64 of little-endian floats
  OneOrEach<std::string> lora_path;           // adapters by name; empty: none
  std::optional<int32_t> data_parallel_rank;  // absent: the engine chooses
  std::string_view rank_field =
      kRankField;  // what the client calls it, for errors; of static storage
  OneOrEach<std::string> rid;
  std::string model;  // empty: the default model
};

struct RerankRequest {
  std::string query;
  std::string instruction;  // of models whose template takes one; empty: their own
  std::vector<std::string> documents;
  std::optional<int32_t> top_n;     // >= 1
  std::optional<int32_t> truncate;  // as above
  std::optional<bool> activation;   // sigmoid of the scores; absent: as the API has it
  bool return_documents = true;
  std::string rid;
  std::string model;  // empty: the default model
};

}  // namespace portico
