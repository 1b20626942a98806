// What a chat request says of tools: tools, tool_choice, parallel_tool_calls, and the old functions and function_call.
#pragma once

#include <optional>
#include <string_view>

#include "api/common/field_reader.h"
#include "base/status.h"
#include "message/text_request.h"
#include "text/json.h"

namespace portico::api::openai {

struct ToolFields {
  Json tools;      // array, or null
  Json functions;  // as `tools` has them, or null
  std::optional<ToolChoice> choice;
  std::string_view choice_field = "tool_choice";
  bool two_choices = false;  // tool_choice and function_call
};

// A list of functions with names, each there once. Errors name `tools`.
Status CheckToolList(const Json& tools);

Status ReadTools(std::string_view name, Element value, ToolFields* out);
Status ReadFunctions(std::string_view name, Element value, ToolFields* out);
// "none", "auto", "required", a function by name, or a list of allowed tools.
Status ReadToolChoice(std::string_view name, Element value, ToolFields* out);
// "none", "auto" or {"name"}.
Status ReadFunctionCall(std::string_view name, Element value, ToolFields* out);

// Checks across them and puts them into the request: names are there once, and a choice names a tool that is there.
Status TakeTools(ToolFields fields, ChatRequest* request);

}  // namespace portico::api::openai
