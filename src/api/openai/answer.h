// What chat and completion answers have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/common/delta_parts.h"
#include "message/text_request.h"

namespace portico::api::openai {

// The facts that every object of one answer repeats.
struct AnswerHead {
  std::string id;       // "chatcmpl-<hex>", "cmpl-<hex>", or the client's rid
  int64_t created = 0;  // Unix seconds
  std::string model;    // the served name
};

// `prefix` ("chatcmpl-") begins an id that is made where the client gave no rid.
AnswerHead MakeAnswerHead(std::string_view prefix, const std::string& rid,
                          const std::string& model);

// Appends `{"id":…,"object":…,"created":…,"model":…,"choices":[`.
void AppendAnswerHead(const AnswerHead& head, std::string_view object, std::string* out);
// Appends `{"prompt_tokens":…}`.
void AppendUsage(const TokenUsage& usage, std::string* out);

// The finish reason of an answer that ends in calls.
std::string_view CallsReason(const GenerationOptions& options);

}  // namespace portico::api::openai
