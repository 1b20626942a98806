#include "service/constraint/call_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "parser/collector.h"
#include "parser/output_parser.h"
#include "text/json_writer.h"

namespace portico {
namespace {

// Every family reads these.
bool IsPlainName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  });
}

bool ReadsName(const parser::ToolFamily& family, const parser::CallForm& form,
               const std::string& name) {
  const parser::ToolSet tools(Json(JsonArray{Json(JsonObject{{"name", Json(name)}})}), false);
  parser::OutputFormat format;
  format.tools = &family;
  parser::Collector got;
  const auto reader = parser::OutputParser::Make(format, tools, &got);
  const std::string_view arguments = form.style == "json" ? "{}" : "";
  reader->Feed(form.section + parser::WriteCall(form, name, arguments, 0) + form.section_end);
  reader->Finish();
  return got.content.empty() && got.calls.size() == 1 && got.calls[0].name == name;
}

}  // namespace

Status CheckCallNames(const parser::ToolFamily& family, const parser::CallForm& form,
                      const Json& tools) {
  if (form.json_name || !tools.is_array()) return OkStatus();
  for (const Json& tool : tools.as_array()) {
    const Json* const function = tool.Find("function");
    const std::string name = (function == nullptr ? tool : *function).GetString("name");
    if (IsPlainName(name) || ReadsName(family, form, name)) continue;
    std::string quoted;
    AppendJsonString(name, &quoted);
    return InvalidArgument("tools",
                           fmt::format("tools: the form of this model's calls cannot hold the name "
                                       "{}",
                                       quoted));
  }
  return OkStatus();
}

}  // namespace portico
