#include "template/message_kind.h"

#include <utility>

namespace portico {
namespace {

constexpr std::string_view kRoleNames[] = {"system",    "developer", "user",     "assistant",
                                           "assistant", "tool",      "function", "latest_reminder"};

}  // namespace

MessageKind KindOfMessage(const Json& message) {
  const Json* role = message.Find("role");
  const std::string_view name =
      role != nullptr && role->is_string() ? role->as_string() : std::string_view();
  if (name == "user") return MessageKind::kUser;
  if (name == "assistant") {
    const bool calls =
        message.Find("tool_calls") != nullptr || message.Find("function_call") != nullptr;
    return calls ? MessageKind::kCall : MessageKind::kAssistant;
  }
  if (name == "system") return MessageKind::kSystem;
  if (name == "developer") return MessageKind::kDeveloper;
  if (name == "tool") return MessageKind::kTool;
  return name == "function" ? MessageKind::kFunction : MessageKind::kReminder;
}

std::string_view RoleOf(MessageKind kind) { return kRoleNames[static_cast<size_t>(kind)]; }

Speaker SpeakerAfter(MessageKind kind, Speaker before) {
  switch (kind) {
    case MessageKind::kUser:
      return Speaker::kUser;
    case MessageKind::kAssistant:
      return Speaker::kAssistant;
    case MessageKind::kCall:
      return Speaker::kCall;
    case MessageKind::kTool:
    case MessageKind::kFunction:
      return Speaker::kTool;
    default:
      return before;
  }
}

bool IsTextPart(const Json& part) { return part.GetString("type") == "text"; }

std::string TextOfContent(const Json& content) {
  if (content.is_string()) return content.as_string();
  std::string text;
  if (!content.is_array()) return text;
  bool first = true;
  for (const Json& part : content.as_array()) {
    if (!IsTextPart(part)) continue;
    if (!std::exchange(first, false)) text += ' ';
    text += part.GetString("text");
  }
  return text;
}

}  // namespace portico
