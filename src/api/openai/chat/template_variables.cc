#include "api/openai/chat/template_variables.h"

#include <utility>

#include "text/json_element.h"

namespace portico::api::openai {
namespace {

constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};
constexpr double kMaxEffort = 0.99;

bool IsEffort(Element value) {
  std::string_view text;
  if (!value.get(text)) {
    return std::find(std::begin(kEfforts), std::end(kEfforts), text) != std::end(kEfforts);
  }
  double number = 0;
  return value.is_number() && !value.get(number) && number >= 0 && number <= kMaxEffort;
}

Status ReadEffort(std::string_view field, std::string_view place, Element value, Json* out) {
  if (!IsEffort(value)) {
    return WrongValueAt(field, place,
                        "none, minimal, low, medium, high, xhigh, max or a number from 0 to 0.99",
                        value);
  }
  *out = JsonOf(value);
  return OkStatus();
}

}  // namespace

Status ReadReasoningEffort(std::string_view name, Element value, ReasoningFields* out) {
  Json effort;
  PORTICO_RETURN_IF_ERROR(ReadEffort(name, name, value, &effort));
  if (out->effort.is_null()) out->effort = std::move(effort);
  return OkStatus();
}

Status ReadReasoning(std::string_view name, Element value, ReasoningFields* out) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  for (auto [key, item] : simdjson::dom::object(value)) {
    if (item.is_null()) continue;
    if (key == "effort") {
      PORTICO_RETURN_IF_ERROR(ReadEffort(name, "reasoning.effort", item, &out->effort));
    } else if (key == "enabled") {
      bool enabled = false;
      if (item.get(enabled)) {
        return WrongValueAt(name, "reasoning.enabled", "true or false", item);
      }
      out->enabled = Json(enabled);
    } else if (key == "max_tokens" || key == "exclude") {
      // OpenRouter's names: a client that sends them relies on them.
      if (simdjson::minify(item) == "false") continue;
      return InvalidArgument(name, "reasoning." + std::string(key) + " is not supported");
    }
  }
  return OkStatus();
}

void AddReasoningVariables(const ReasoningFields& reasoning, Json* kwargs) {
  auto add = [kwargs](std::string_view name, const Json& value) {
    if (kwargs->is_null()) *kwargs = Json(JsonObject{});
    if (!kwargs->Find(name)) kwargs->Set(name, value);
  };
  if (!reasoning.effort.is_null()) add("reasoning_effort", reasoning.effort);
  Json thinking = reasoning.enabled;
  if (thinking.is_null() && reasoning.effort == Json("none")) thinking = Json(false);
  if (thinking.is_null()) return;
  add("thinking", thinking);
  add("enable_thinking", thinking);
}

}  // namespace portico::api::openai
