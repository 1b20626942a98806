#include "api/openai/chat/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace portico::api::openai {
namespace {

constexpr std::string_view kRoles[] = {"system",   "user",      "assistant",      "tool",
                                       "function", "developer", "latest_reminder"};
// Of media, beside those named by a kind.
constexpr std::string_view kOtherMediaParts[] = {"input_audio", "file", "input_image"};

template <typename List>
bool IsOneOf(std::string_view text, const List& list) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// Of each message, and nearly always for nothing: fmt takes ten times as long.
std::string MessagePlace(size_t message) { return "messages[" + std::to_string(message) + "]"; }

Status Wrong(const std::string& place, std::string_view complaint) {
  return InvalidArgument("messages", fmt::format("{} {}", place, complaint));
}

Status CheckString(const Json& owner, std::string_view key, const std::string& place) {
  const Json* value = owner.Find(key);
  if (!value || value->is_string()) return OkStatus();
  return Wrong(fmt::format("{}.{}", place, key), "must be a string");
}

// The same for one that must be there.
Status RequireString(const Json& owner, std::string_view key, const std::string& place) {
  const Json* value = owner.Find(key);
  if (value != nullptr && !value->is_null()) return CheckString(owner, key, place);
  return Wrong(fmt::format("{}.{}", place, key), "is required");
}

void Remove(Json* object, std::string_view key) {
  std::erase_if(object->as_object(), [&](const auto& member) { return member.first == key; });
}

// The text of an assistant's thinking part, under any of the names in use.
const Json* ThinkingText(const Json& part) {
  for (std::string_view key : {"thinking", "reasoning", "text"}) {
    const Json* text = part.Find(key);
    if (text && text->is_string()) return text;
  }
  return nullptr;
}

Status LeaveMark(MediaItem item, Json* part, std::vector<MediaItem>* media) {
  if (media->size() == kMediaKinds * kMaxMediaOfKind) {
    return Wrong(item.place, fmt::format("is one of more than {} media", media->size()));
  }
  *part = Json(JsonObject{{"type", std::string(NameOf(item.kind))}});
  media->push_back(std::move(item));
  return OkStatus();
}

// {"image_url": {"url": …, "detail": …}}, or the URL without the object around it. Likewise the other kinds, without detail.
Status TakeMedium(MediaKind kind, Json* part, const std::string& place,
                  std::vector<MediaItem>* media) {
  const std::string_view type = WordsOf(kind).part;
  MediaItem item;
  item.kind = kind;
  item.field = "messages";
  item.place = fmt::format("{}.{}", place, type);
  const Json* value = part->Find(type);
  if (value != nullptr && value->is_string()) {
    item.url = value->as_string();
  } else if (value != nullptr && value->is_object()) {
    PORTICO_RETURN_IF_ERROR(CheckString(*value, "url", item.place));
    const bool has_detail = item.kind == MediaKind::kImage;
    const Json* detail = value->Find("detail");
    if (has_detail && detail != nullptr && !detail->is_null() && !detail->is_string()) {
      return Wrong(item.place + ".detail", "must be a string");
    }
    item.url = value->GetString("url");
    if (has_detail) item.detail = value->GetString("detail");
    for (const auto& [name, member] : value->as_object()) {
      if (name == "url" || (has_detail && name == "detail") || member.is_null()) continue;
      return Wrong(item.place, fmt::format("has a field that is not supported: {:.64}", name));
    }
  }
  if (item.url.empty()) return Wrong(item.place, "must be a URL, or an object with one");
  return LeaveMark(std::move(item), part, media);
}

// {"input_audio": {"data": BASE64, "format": "wav" or "mp3"}}
Status TakeInputAudio(Json* part, const std::string& place, std::vector<MediaItem>* media) {
  MediaItem item;
  item.kind = MediaKind::kAudio;
  item.field = "messages";
  item.place = place + ".input_audio";
  const Json* audio = part->Find("input_audio");
  if (audio == nullptr || !audio->is_object()) {
    return Wrong(item.place, "must be an object with data and format");
  }
  const Json* data = audio->Find("data");
  if (data == nullptr || !data->is_string() || data->as_string().empty()) {
    return Wrong(item.place + ".data", "must be a string of base64");
  }
  const std::string format = audio->GetString("format");
  if (format != "wav" && format != "mp3")
    return Wrong(item.place + ".format", "must be wav or mp3");
  item.url =
      fmt::format("data:audio/{};base64,{}", format == "wav" ? "wav" : "mpeg", data->as_string());
  return LeaveMark(std::move(item), part, media);
}

// Checks one part. An assistant's refusal becomes text; its thinking goes to `thinking` and leaves
// a null.
Status NormalizePart(Json* part, bool assistant, const std::string& place, std::string* thinking,
                     std::vector<MediaItem>* media) {
  if (!part->is_object()) return Wrong(place, "must be an object");
  PORTICO_RETURN_IF_ERROR(RequireString(*part, "type", place));
  const std::string& name = part->Find("type")->as_string();
  if (name == "text") return RequireString(*part, "text", place);
  if (assistant && name == "refusal") {
    PORTICO_RETURN_IF_ERROR(RequireString(*part, "refusal", place));
    *part = Json(JsonObject{{"type", "text"}, {"text", *part->Find("refusal")}});
    return OkStatus();
  }
  if (assistant && (name == "thinking" || name == "reasoning")) {
    const Json* text = ThinkingText(*part);
    if (!text) return Wrong(place + "." + name, "must be a string");
    *thinking += text->as_string();
    *part = Json();
    return OkStatus();
  }
  const auto kind = FindMediaKind(name, &MediaWords::part);
  if (media != nullptr) {
    if (name == "input_audio") return TakeInputAudio(part, place, media);
    if (kind) return TakeMedium(*kind, part, place, media);
  }
  if (kind || FindMediaKind(name, &MediaWords::name) || IsOneOf(name, kOtherMediaParts)) {
    return Wrong(
        place,
        fmt::format("is of type {}, but this model takes text only{}", name,
                    media == nullptr
                        ? ""
                        : ", and image_url, video_url, audio_url and input_audio where it can"));
  }
  return Wrong(place + ".type", fmt::format("must be text, got {}", Json(name).Dump()));
}

Status NormalizeParts(Json* message, bool assistant, const std::string& place,
                      std::vector<MediaItem>* media) {
  JsonArray& parts = message->Find("content")->as_array();
  if (parts.empty()) return Wrong(place + ".content", "must not be an empty list");
  std::string thinking;
  for (size_t i = 0; i < parts.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(NormalizePart(
        &parts[i], assistant, fmt::format("{}.content[{}]", place, i), &thinking, media));
  }
  std::erase_if(parts, [](const Json& part) { return part.is_null(); });
  if (parts.empty()) *message->Find("content") = Json();
  if (!thinking.empty() && !message->Find("reasoning_content")) {
    message->Set("reasoning_content", std::move(thinking));
  }
  return OkStatus();
}

Status NormalizeToolCall(Json* call, const std::string& place) {
  if (!call->is_object()) return Wrong(place, "must be an object");
  std::erase_if(call->as_object(), [](const auto& member) { return member.second.is_null(); });
  PORTICO_RETURN_IF_ERROR(CheckString(*call, "id", place));
  const Json* type = call->Find("type");
  if (type && *type != Json("function")) return Wrong(place + ".type", "must be \"function\"");
  Json* function = call->Find("function");
  if (!function || !function->is_object()) return Wrong(place + ".function", "must be an object");
  const Json* name = function->Find("name");
  if (!name || !name->is_string() || name->as_string().empty()) {
    return Wrong(place + ".function.name", "must be a string and not empty");
  }
  Json* arguments = function->Find("arguments");
  if (arguments && arguments->is_null()) Remove(function, "arguments");
  arguments = function->Find("arguments");
  if (arguments && !arguments->is_string() && !arguments->is_object()) {
    return Wrong(place + ".function.arguments", "must be a string of JSON");
  }
  return OkStatus();
}

Status NormalizeToolCalls(Json* message, const std::string& place) {
  Json* calls = message->Find("tool_calls");
  if (!calls) return OkStatus();
  if (!calls->is_array()) return Wrong(place + ".tool_calls", "must be a list");
  if (calls->as_array().empty()) {
    Remove(message, "tool_calls");
    return OkStatus();
  }
  for (size_t i = 0; i < calls->as_array().size(); ++i) {
    PORTICO_RETURN_IF_ERROR(
        NormalizeToolCall(&calls->as_array()[i], fmt::format("{}.tool_calls[{}]", place, i)));
  }
  return OkStatus();
}

// An assistant that only calls tools has null content; one that only refused or thought has none to
// show.
Status FillMissingContent(Json* message, std::string_view role, const std::string& place) {
  if (message->Find("tool_calls") || message->Find("function_call")) {
    message->Set("content", Json());
    return OkStatus();
  }
  const Json* refusal = message->Find("refusal");
  if (role == "function" || message->Find("reasoning_content") || refusal) {
    message->Set("content", refusal ? *refusal : Json(""));
    return OkStatus();
  }
  return Wrong(place + ".content", "is required where there are no tool_calls");
}

Status NormalizeContent(Json* message, std::string_view role, const std::string& place,
                        std::vector<MediaItem>* media) {
  const bool assistant = role == "assistant";
  if (Json* content = message->Find("content"); content && content->is_array()) {
    if (content->as_array().empty() && message->Find("tool_calls")) {
      *content = Json();
    } else {
      PORTICO_RETURN_IF_ERROR(NormalizeParts(message, assistant, place, media));
    }
  }
  const Json* content = message->Find("content");
  if (!content || content->is_null()) {
    if (assistant || role == "function") return FillMissingContent(message, role, place);
    return Wrong(place + ".content", "is required");
  }
  if (content->is_string() || content->is_array()) return OkStatus();
  return Wrong(place + ".content", "must be a string or a list of parts");
}

Status NormalizeRole(Json* message, const std::string& place) {
  PORTICO_RETURN_IF_ERROR(RequireString(*message, "role", place));
  Json* role = message->Find("role");
  std::string lower = role->as_string();
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (!IsOneOf(lower, kRoles)) {
    return Wrong(place + ".role",
                 fmt::format("must be system, developer, user, assistant, tool, function or "
                             "latest_reminder, got {}",
                             Json(role->as_string().substr(0, 48)).Dump()));
  }
  *role = Json(std::move(lower));
  return OkStatus();
}

Status NormalizeMessage(Json* message, const std::string& place, std::vector<MediaItem>* media) {
  if (!message->is_object()) return Wrong(place, "must be an object");
  std::erase_if(message->as_object(), [](const auto& member) {
    return member.second.is_null() && member.first != "content";
  });
  PORTICO_RETURN_IF_ERROR(NormalizeRole(message, place));
  const std::string role = message->Find("role")->as_string();
  for (std::string_view key : {"name", "tool_call_id", "reasoning_content", "refusal"}) {
    PORTICO_RETURN_IF_ERROR(CheckString(*message, key, place));
  }
  if (role == "assistant") PORTICO_RETURN_IF_ERROR(NormalizeToolCalls(message, place));
  return NormalizeContent(message, role, place, media);
}

// NormalizeMessage() would leave the message as it is: a role as it is spelled here and a text, as nearly all have.
bool IsNormal(const Json& message) {
  if (!message.is_object()) return false;
  bool has_role = false;
  bool has_text = false;
  for (const auto& [name, value] : message.as_object()) {
    if (name == "role") {
      has_role = value.is_string() && IsOneOf(value.as_string(), kRoles);
    } else if (name == "content") {
      has_text = value.is_string();
    } else {
      return false;
    }
  }
  return has_role && has_text;
}

}  // namespace

Status NormalizeMessages(Json* messages, std::vector<MediaItem>* media) {
  if (!messages->is_array()) return Wrong("messages", "must be a list of messages");
  if (messages->as_array().empty()) return Wrong("messages", "must not be empty");
  for (size_t i = 0; i < messages->as_array().size(); ++i) {
    Json& message = messages->as_array()[i];
    if (IsNormal(message)) continue;
    PORTICO_RETURN_IF_ERROR(NormalizeMessage(&message, MessagePlace(i), media));
  }
  return OkStatus();
}

Status CheckTools(const Json& tools) {
  auto wrong = [](size_t i, std::string_view complaint) {
    return InvalidArgument("tools", fmt::format("tools[{}]{}", i, complaint));
  };
  if (!tools.is_array()) return InvalidArgument("tools", "tools must be a list");
  for (size_t i = 0; i < tools.as_array().size(); ++i) {
    const Json& tool = tools.as_array()[i];
    if (!tool.is_object()) return wrong(i, " must be an object");
    const Json* type = tool.Find("type");
    if (!type || *type != Json("function")) return wrong(i, ".type must be \"function\"");
    const Json* function = tool.Find("function");
    if (!function || !function->is_object()) return wrong(i, ".function must be an object");
    const Json* name = function->Find("name");
    if (!name || !name->is_string() || name->as_string().empty()) {
      return wrong(i, ".function.name must be a string and not empty");
    }
    const Json* description = function->Find("description");
    if (description && !description->is_null() && !description->is_string()) {
      return wrong(i, ".function.description must be a string");
    }
    const Json* parameters = function->Find("parameters");
    if (parameters && !parameters->is_null() && !parameters->is_object()) {
      return wrong(i, ".function.parameters must be an object");
    }
    const Json* strict = function->Find("strict");
    if (strict && !strict->is_null() && !strict->is_bool()) {
      return wrong(i, ".function.strict must be true or false");
    }
  }
  return OkStatus();
}

}  // namespace portico::api::openai
