// The kinds of messages of a conversation, by role.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/json.h"

namespace portico {

// An assistant's message with calls is a kind of its own.
enum class MessageKind : uint8_t {
  kSystem,
  kDeveloper,
  kUser,
  kAssistant,
  kCall,
  kTool,
  kFunction,
  kReminder,  // latest_reminder
};
inline constexpr size_t kMessageKinds = 8;

// The last message before another one that is neither system, developer nor latest_reminder. A function's counts as a
// tool's.
enum class Speaker : uint8_t { kNobody, kUser, kAssistant, kCall, kTool };
inline constexpr size_t kSpeakers = 5;

// Of a message whose role is one of those that requests may have.
MessageKind KindOfMessage(const Json& message);
// As requests spell it: "user"; kCall is an assistant's.
std::string_view RoleOf(MessageKind kind);

// Whether this is a system or developer message.
inline bool Instructs(MessageKind kind) {
  return kind == MessageKind::kSystem || kind == MessageKind::kDeveloper;
}
Speaker SpeakerAfter(MessageKind kind, Speaker before);

// Whether a part of a content is a text.
bool IsTextPart(const Json& part);
// The texts of a content, joined with a space as SGLang joins them for templates that want a string.
std::string TextOfContent(const Json& content);

}  // namespace portico
