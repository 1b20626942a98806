#include "app/options/parser_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "parser/declared/families.h"
#include "parser/reasoning/families.h"
#include "parser/tool/families.h"

namespace portico {
namespace {

Status CheckParserName(std::string_view flag, const std::string& name, bool known,
                       std::span<const std::string> names, OtherParserNames other) {
  const bool automatic = other == OtherParserNames::kAuto;
  if (known || name.empty() || name == "none" || parser::IsDeclaredName(name) ||
      (automatic && name == "auto")) {
    return OkStatus();
  }
  return Error(
      StatusCode::kInvalidArgument,
      fmt::format("{}: there is no parser `{}`; there are {}none, {}, {}", flag, name,
                  automatic ? "auto, " : "", parser::kDeclaredName, fmt::join(names, ", ")));
}

}  // namespace

Status CheckToolCallParser(std::string_view flag, const std::string& name, OtherParserNames other) {
  return CheckParserName(flag, name, parser::FindToolFamily(name) != nullptr,
                         parser::ToolFamilyNames(), other);
}

Status CheckReasoningParser(std::string_view flag, const std::string& name,
                            OtherParserNames other) {
  return CheckParserName(flag, name, parser::FindReasoning(name) != nullptr,
                         parser::ReasoningNames(), other);
}

}  // namespace portico
