#include "template/message_kind.h"

#include <cstring>
#include <utility>

namespace portico {
namespace {

constexpr std::string_view kRoleNames[] = {"system",    "developer", "user",     "assistant",
                                           "assistant", "tool",      "function", "latest_reminder"};

// A comparison of string_views is a call.
template <size_t kSize>
bool IsWord(std::string_view text, const char (&word)[kSize]) {
  return text.size() == kSize - 1 && std::memcmp(text.data(), word, kSize - 1) == 0;
}

}  // namespace

MessageKind KindOfMessage(const Json& message) {
  const Json* role = message.Find("role");
  const std::string_view name =
      role != nullptr && role->is_string() ? role->as_string() : std::string_view();
  if (IsWord(name, "user")) return MessageKind::kUser;
  if (IsWord(name, "assistant")) {
    const bool calls =
        message.Find("tool_calls") != nullptr || message.Find("function_call") != nullptr;
    return calls ? MessageKind::kCall : MessageKind::kAssistant;
  }
  if (IsWord(name, "system")) return MessageKind::kSystem;
  if (IsWord(name, "developer")) return MessageKind::kDeveloper;
  if (IsWord(name, "tool")) return MessageKind::kTool;
  return IsWord(name, "function") ? MessageKind::kFunction : MessageKind::kReminder;
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
