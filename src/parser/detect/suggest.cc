#include <string>
#include <string_view>

#include "parser/detect/detect.h"

namespace portico::parser {

std::string SuggestToolParser(std::string_view chat_template) {
  const auto has = [chat_template](std::string_view text) {
    return chat_template.find(text) != std::string_view::npos;
  };
  if (!has("tool_calls")) return "";
  if (has("[TOOL_CALLS]")) return "mistral";
  if (has("<tool_call>")) {
    return has("<arg_key>") ? "glm45" : has("<function=") ? "qwen3_coder" : "hermes";
  }
  if (has("[func_name1(") || has("<|python_start|>")) return "pythonic";
  if (has("<|tool_call|>") || has("functools")) return "phi4_mini_json";
  return has(R"("parameters": )") && has(R"({"name": )") ? "llama3" : "";
}

}  // namespace portico::parser
