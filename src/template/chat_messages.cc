#include "template/chat_messages.h"

#include <algorithm>
#include <vector>

#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

constexpr std::string_view kReasoningFields[] = {"reasoning_content", "thinking", "reasoning"};
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kBareTag = "CONTINUE_FINAL_MESSAGE_TAG";

bool IsReasoningField(std::string_view name) {
  return std::find(std::begin(kReasoningFields), std::end(kReasoningFields), name) !=
         std::end(kReasoningFields);
}

std::string_view Strip(std::string_view text) {
  text.remove_prefix(LeadingSpace(text));
  text.remove_suffix(TrailingSpace(text));
  return text;
}

using MessageMember = JsonObject::value_type;

bool IsDropped(const MessageMember& member, bool keep_null_content) {
  return member.second.is_null() && !(keep_null_content && member.first == "content");
}

Json PrepareMessage(const JsonObject& message, bool keep_null_content) {
  JsonObject out;
  out.reserve(message.size() + 1);
  for (const MessageMember& member : message) {
    if (!IsDropped(member, keep_null_content)) out.push_back(member);
  }
  Json prepared(std::move(out));
  const Json* reasoning = nullptr;
  for (std::string_view field : kReasoningFields) {
    if (reasoning == nullptr) reasoning = prepared.Find(field);
  }
  if (reasoning == nullptr) return prepared;
  Json text = *reasoning;
  // `thinking` comes first, whether the message had it or not.
  JsonObject& members = prepared.as_object();
  auto thinking = std::find_if(members.begin(), members.end(),
                               [](const auto& member) { return member.first == "thinking"; });
  if (thinking == members.end()) {
    members.insert(members.begin(), {"thinking", text});
  } else {
    std::rotate(members.begin(), thinking, thinking + 1);
  }
  prepared.Set("reasoning_content", std::move(text));
  return prepared;
}

Status NothingToContinue(std::string message) {
  return InvalidArgument("continue_final_message", std::move(message));
}

// The last part that has a text.
Json* LastTextPart(JsonArray* parts) {
  for (auto part = parts->rbegin(); part != parts->rend(); ++part) {
    if (Json* text = part->Find("text")) return text->is_string() ? text : nullptr;
  }
  return nullptr;
}

}  // namespace

bool IsPrepared(const JsonArray& messages, bool keep_null_content) {
  return std::all_of(messages.begin(), messages.end(), [=](const Json& message) {
    if (!message.is_object()) return true;
    return std::none_of(
        message.as_object().begin(), message.as_object().end(), [=](const MessageMember& member) {
          return IsDropped(member, keep_null_content) || IsReasoningField(member.first);
        });
  });
}

JsonArray PrepareMessages(const JsonArray& messages, bool keep_null_content) {
  JsonArray out;
  out.reserve(messages.size());
  for (const Json& message : messages) {
    out.push_back(message.is_object() ? PrepareMessage(message.as_object(), keep_null_content)
                                      : message);
  }
  return out;
}

StatusOr<Continuation> TagLastMessage(std::string_view field, std::string_view template_source,
                                      JsonArray* messages) {
  Json& message = messages->back();
  Json* value = message.Find(field);
  if (value == nullptr) {
    std::string text = "continue_final_message is set but the final message has no \"";
    return NothingToContinue(text.append(field).append("\" to continue!"));
  }
  const Json original = *value;
  std::vector<std::string_view> fields = {field};
  if (IsReasoningField(field)) {
    fields.clear();
    for (std::string_view name : kReasoningFields) {
      const Json* other = message.Find(name);
      if (other != nullptr && *other == original) fields.push_back(name);
    }
  }
  const bool accepted = std::any_of(fields.begin(), fields.end(), [&](std::string_view name) {
    return template_source.find(name) != std::string_view::npos;
  });
  if (!accepted) {
    std::string text = "continue_final_message is set to \"";
    return NothingToContinue(
        text.append(field).append("\" but this is not an accepted field in the chat_template"));
  }
  if (value->is_array()) {
    Json* text = LastTextPart(&value->as_array());
    if (text == nullptr) {
      return NothingToContinue(
          "continue_final_message is set but we could not find any text to continue in the final "
          "message!");
    }
    Continuation continuation{text->as_string()};
    text->as_string().append(kTag);
    return continuation;
  }
  if (!value->is_string()) {
    return NothingToContinue("continue_final_message is set but the final message is not text");
  }
  for (std::string_view name : fields) message.Find(name)->as_string().append(kTag);
  return Continuation{original.as_string()};
}

Status CutAtTag(const Continuation& continuation, std::string* rendered) {
  size_t tag = rendered->rfind(kBareTag);
  if (tag == std::string::npos || rendered->find(Strip(continuation.text)) == std::string::npos) {
    return NothingToContinue(
        "continue_final_message is set but the final message does not appear in the chat after "
        "applying the chat template! This can happen if the chat template deletes portions of the "
        "final message.");
  }
  const bool spaced = rendered->compare(tag, kTag.size(), kTag) == 0;
  rendered->resize(tag);
  if (!spaced) rendered->resize(tag - TrailingSpace(*rendered));
  return OkStatus();
}

}  // namespace portico::jinja
