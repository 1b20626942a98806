#include "message/choice_regex.h"

#include "text/json.h"

namespace portico {
namespace {

constexpr std::string_view kSpecial = R"(\^$.*+?()[]{}|)";

}  // namespace

StatusOr<std::string> RegexOfChoices(std::string_view json) {
  const auto wrong = [] {
    return Error(StatusCode::kInvalidArgument, "it must be a list of strings that is not empty");
  };
  PORTICO_ASSIGN_OR_RETURN(const Json choices, Json::Parse(json));
  if (!choices.is_array() || choices.as_array().empty()) return wrong();
  std::string regex;
  for (const Json& each : choices.as_array()) {
    if (!each.is_string()) return wrong();
    regex += regex.empty() ? '(' : '|';
    for (const char c : each.as_string()) {
      if (kSpecial.find(c) != std::string_view::npos) regex += '\\';
      regex += c;
    }
  }
  regex += ')';
  return regex;
}

}  // namespace portico
