#include "service/output/output_plan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "text/white_space.h"

namespace portico {
namespace {

bool EndsWithMarker(std::string_view text, const std::vector<std::string>& markers) {
  return std::any_of(markers.begin(), markers.end(), [&](const std::string& marker) {
    std::string_view trimmed = marker;
    trimmed = trimmed.substr(0, trimmed.find_last_not_of(kWhiteSpace) + 1);
    return !trimmed.empty() && text.ends_with(trimmed);
  });
}

int32_t CallsIn(const Json& messages) {
  int32_t count = 0;
  for (const Json& message : messages.as_array()) {
    const Json* calls = message.Find("tool_calls");
    if (calls != nullptr && calls->is_array())
      count += static_cast<int32_t>(calls->as_array().size());
  }
  return count;
}

// Whether the template's switch is on, where it has one and its position is known.
std::optional<bool> Switched(const ModelOutputFormat& format, const ChatRequest& request) {
  for (const std::string_view name :
       {std::string_view(format.toggle), std::string_view("enable_thinking"),
        std::string_view("thinking")}) {
    const Json* given = request.chat_template_kwargs.Find(name);
    if (given != nullptr && given->is_bool()) return given->as_bool();
    if (!format.toggle.empty()) break;  // the other names mean nothing
  }
  return format.thinks;
}

}  // namespace

ReasoningStart StartOfReasoning(const ModelOutputFormat& format, const ChatRequest& request,
                                std::string_view prompt) {
  if (format.reasoning == nullptr || format.reasoning->splitter == nullptr) {
    return ReasoningStart::kNone;
  }
  const parser::ReasoningFamily& family = format.reasoning->splitter->family;
  if (request.continue_final_message) {
    const Json& last = request.messages.as_array().back();
    const std::string content = last.GetString("content");
    auto last_of = [&](const std::vector<std::string>& markers) {
      size_t found = 0;
      for (const std::string& marker : markers) {
        size_t at = content.rfind(marker);
        if (at != std::string::npos) found = std::max(found, at + 1);
      }
      return found;
    };
    return last_of(family.starts) > last_of(family.ends) ? ReasoningStart::kInside
                                                         : ReasoningStart::kNone;
  }
  prompt = prompt.substr(0, prompt.find_last_not_of(kWhiteSpace) + 1);
  if (EndsWithMarker(prompt, family.starts)) return ReasoningStart::kInside;
  if (EndsWithMarker(prompt, family.ends)) return ReasoningStart::kNone;
  if (format.reasoning->inside && !format.reasoning_found) return ReasoningStart::kInside;
  return Switched(format, request) == true ? ReasoningStart::kMayBegin : ReasoningStart::kNone;
}

Json AllowedTools(const Json& tools, const ToolChoice& choice) {
  if (!tools.is_array() || choice.mode == ToolChoice::Mode::kNone) return Json();
  if (choice.allowed.empty()) return tools;
  JsonArray allowed;
  for (const Json& tool : tools.as_array()) {
    const Json* function = tool.Find("function");
    const std::string name =
        function == nullptr ? tool.GetString("name") : function->GetString("name");
    if (std::find(choice.allowed.begin(), choice.allowed.end(), name) != choice.allowed.end()) {
      allowed.push_back(tool);
    }
  }
  return Json(std::move(allowed));
}

std::shared_ptr<const OutputPlan> PlanOutput(const ModelOutputFormat& format,
                                             const ChatRequest& request, ReasoningStart start,
                                             bool forward_unknown_tools) {
  const parser::ToolFamily* const family =
      CallsAsJsonList(format, request) ? parser::FindToolFamily("json") : format.tools;
  const bool wants_calls = family != nullptr && request.tools.is_array() &&
                           request.tool_choice.mode != ToolChoice::Mode::kNone;
  const bool splits = format.reasoning != nullptr && request.separate_reasoning;
  const bool frames = format.tools != nullptr && format.tools->frames;
  if (!wants_calls && !splits && !frames) return nullptr;
  auto plan = std::make_shared<OutputPlan>();
  plan->markers = &format.markers;
  plan->stream_reasoning = request.stream_reasoning;
  plan->marked_by_tokens = format.marked_by_tokens;
  if (splits) {
    plan->format.reasoning = format.reasoning;
    plan->format.in_reasoning = start == ReasoningStart::kInside;
  }
  if (wants_calls) {
    plan->format.tools = family;
    plan->tools =
        parser::ToolSet(AllowedTools(request.tools, request.tool_choice), forward_unknown_tools);
    plan->ids = format.tools == nullptr ? family->ids : format.tools->ids;
    if (plan->ids == parser::CallIds::kFunctionsCounter ||
        plan->ids == parser::CallIds::kNameCounter) {
      plan->calls_before = CallsIn(request.messages);
    }
  } else if (frames) {
    plan->format.tools = format.tools;
    plan->tools = parser::ToolSet(Json(JsonArray{}), false);  // no call is one
  }
  return plan;
}

}  // namespace portico
