#include "api/openai/realtime/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "api/reply.h"

namespace portico::api::openai {
namespace {

// What a chat is told of a turn in which the user said nothing: some templates leave out a message that is empty.
constexpr std::string_view kNothingSaid = "(silence)";

Status Bad(std::string_view field, std::string_view why) {
  return InvalidArgument(field, fmt::format("{} {}", field, why));
}

Status ReadMessage(const Json& item, RealtimeItem* read, std::string* sound) {
  read->role = item.GetString("role");
  if (read->role != "user" && read->role != "assistant" && read->role != "system") {
    return Bad("item.role", "must be user, assistant or system");
  }
  const Json* content = item.Find("content");
  if (content == nullptr || !content->is_array() || content->as_array().empty()) {
    return Bad("item.content", "must be a list of parts");
  }
  for (const Json& part : content->as_array()) {
    const std::string type = part.GetString("type");
    if (type == "input_text" || type == "output_text" || type == "text") {
      const Json* text = part.Find("text");
      if (text == nullptr || !text->is_string()) {
        return Bad("item.content", fmt::format("has an {} without a text", type));
      }
      if (!read->text.empty()) read->text += "\n";
      read->text += text->as_string();
      read->type = read->role == "assistant" ? "output_text" : "input_text";
    } else if (type == "input_audio" && read->role == "user" && content->as_array().size() == 1) {
      *sound = part.GetString("audio");
      read->type = type;
      read->unheard = true;
    } else {
      return Bad("item.content",
                 "must have parts input_text, output_text, or one input_audio of the user");
    }
  }
  return OkStatus();
}

Status ReadCall(const Json& item, RealtimeItem* read) {
  read->call_id = item.GetString("call_id");
  if (read->call_id.empty()) return Bad("item.call_id", "is missing");
  if (read->kind == RealtimeItem::Kind::kCallOutput) {
    const Json* output = item.Find("output");
    if (output == nullptr || !output->is_string()) return Bad("item.output", "must be a text");
    read->text = output->as_string();
    return OkStatus();
  }
  read->name = item.GetString("name");
  read->text = item.GetString("arguments");
  if (read->name.empty()) return Bad("item.name", "is missing");
  if (!Json::Parse(read->text).ok()) return Bad("item.arguments", "must be JSON in a text");
  return OkStatus();
}

Json CallOf(const RealtimeItem& item) {
  return Json(
      JsonObject{{"id", item.call_id},
                 {"type", "function"},
                 {"function", Json(JsonObject{{"name", item.name}, {"arguments", item.text}})}});
}

}  // namespace

Json RealtimeItem::Content() const {
  Json content(JsonObject{{"type", type}});
  content.Set(is_audio() ? "transcript" : "text", unheard ? Json() : Json(text));
  return content;
}

Json RealtimeItem::ToJson() const {
  Json json(JsonObject{{"id", id}, {"object", "realtime.item"}});
  if (kind == Kind::kCallOutput) {
    json.Set("type", "function_call_output");
    json.Set("call_id", call_id);
    json.Set("output", text);
    return json;
  }
  json.Set("type", kind == Kind::kCall ? "function_call" : "message");
  json.Set("status", status);
  if (kind == Kind::kCall) {
    json.Set("name", name);
    json.Set("call_id", call_id);
    json.Set("arguments", text);
    return json;
  }
  JsonArray content;
  if (status != "in_progress") content.push_back(Content());
  json.Set("role", role);
  json.Set("content", Json(std::move(content)));
  return json;
}

const RealtimeItem* Conversation::Find(std::string_view id) const {
  const auto found = std::find_if(items_.begin(), items_.end(),
                                  [id](const RealtimeItem& item) { return item.id == id; });
  return found == items_.end() ? nullptr : &*found;
}

const RealtimeItem* Conversation::Change(std::string_view id,
                                         absl::FunctionRef<void(RealtimeItem&)> change) {
  const auto found = std::find_if(items_.begin(), items_.end(),
                                  [id](const RealtimeItem& item) { return item.id == id; });
  if (found == items_.end()) return nullptr;
  bytes_ -= found->bytes();
  change(*found);
  bytes_ += found->bytes();
  const auto at = static_cast<size_t>(found - items_.begin());
  size_t gone = 0;
  while (gone < at && bytes_ > kMaxBytes) bytes_ -= items_[gone++].bytes();
  items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(gone));
  return &items_[at - gone];
}

std::string Conversation::Before(std::string_view id) const {
  std::string before;
  for (const RealtimeItem& item : items_) {
    if (item.id == id) break;
    before = item.id;
  }
  return before;
}

size_t Conversation::MakeRoom(const RealtimeItem& item) {
  const size_t more = item.bytes();
  size_t gone = 0;
  while (gone < items_.size() && (items_.size() - gone >= kMaxItems || bytes_ + more > kMaxBytes)) {
    bytes_ -= items_[gone++].bytes();
  }
  items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(gone));
  return gone;
}

const RealtimeItem& Conversation::Append(RealtimeItem item) {
  MakeRoom(item);
  bytes_ += item.bytes();
  return items_.emplace_back(std::move(item));
}

Status Conversation::Insert(RealtimeItem item, std::string_view previous) {
  size_t at = 0;
  if (previous != "root") {
    const auto found =
        std::find_if(items_.begin(), items_.end(),
                     [previous](const RealtimeItem& one) { return one.id == previous; });
    if (found == items_.end()) {
      return Error(StatusCode::kInvalidArgument, "there is no item of this id", "previous_item_id",
                   "item_create_invalid_previous_item_id");
    }
    at = static_cast<size_t>(found - items_.begin()) + 1;
  }
  at -= std::min(at, MakeRoom(item));
  bytes_ += item.bytes();
  items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
  return OkStatus();
}

bool Conversation::HasCall(std::string_view call_id) const {
  return std::any_of(items_.begin(), items_.end(), [call_id](const RealtimeItem& item) {
    return item.kind == RealtimeItem::Kind::kCall && item.call_id == call_id;
  });
}

bool Conversation::Remove(std::string_view id) {
  return std::erase_if(items_, [this, id](const RealtimeItem& item) {
           if (item.id != id) return false;
           bytes_ -= item.bytes();
           return true;
         }) > 0;
}

bool Conversation::unheard() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const RealtimeItem& item) { return item.unheard; });
}

Json Conversation::Messages(std::string_view instructions) const {
  JsonArray messages;
  if (!instructions.empty()) {
    messages.push_back(Json(JsonObject{{"role", "system"}, {"content", Json(instructions)}}));
  }
  bool calls = false;  // the last message has calls, and the next one joins them
  bool user = false;   // it is the user's
  bool said = false;   // and has words
  for (const RealtimeItem& item : items_) {
    if (item.kind == RealtimeItem::Kind::kCall) {
      if (item.status != "completed") continue;
      user = false;
      if (!std::exchange(calls, true)) {
        messages.push_back(Json(JsonObject{
            {"role", "assistant"}, {"content", Json()}, {"tool_calls", Json(JsonArray{})}}));
      }
      messages.back().Find("tool_calls")->as_array().push_back(CallOf(item));
      continue;
    }
    if (item.kind == RealtimeItem::Kind::kCallOutput) {
      messages.push_back(Json(
          JsonObject{{"role", "tool"}, {"tool_call_id", item.call_id}, {"content", item.text}}));
    } else if (!item.text.empty()) {
      if (item.role == "user" && user && !said) messages.pop_back();
      messages.push_back(Json(JsonObject{{"role", item.role}, {"content", item.text}}));
    } else if (item.says_nothing() && !user) {
      messages.push_back(Json(JsonObject{{"role", item.role}, {"content", Json(kNothingSaid)}}));
    } else {
      continue;
    }
    calls = false;
    user = item.kind == RealtimeItem::Kind::kMessage && item.role == "user";
    said = !item.text.empty();
  }
  return Json(std::move(messages));
}

StatusOr<RealtimeItem> ReadItem(const Json& item, std::string* sound) {
  RealtimeItem read;
  const std::string type = item.is_object() ? item.GetString("type") : "";
  if (type == "function_call") {
    read.kind = RealtimeItem::Kind::kCall;
  } else if (type == "function_call_output") {
    read.kind = RealtimeItem::Kind::kCallOutput;
  } else if (type != "message") {
    return Bad("item.type", "must be message, function_call or function_call_output");
  }
  read.id = item.GetString("id");
  if (read.id.size() > 64) return Bad("item.id", "is too long");
  if (read.id.empty()) read.id = "item_" + NewRequestId();
  if (read.kind == RealtimeItem::Kind::kMessage) {
    PORTICO_RETURN_IF_ERROR(ReadMessage(item, &read, sound));
  } else {
    PORTICO_RETURN_IF_ERROR(ReadCall(item, &read));
  }
  return read;
}

StatusOr<const RealtimeItem*> ItemOf(const Conversation& conversation, const Json& event,
                                     std::string_view reason) {
  const RealtimeItem* item = conversation.Find(event.GetString("item_id"));
  if (item != nullptr) return item;
  return Error(StatusCode::kInvalidArgument, "there is no item of this id", "item_id", reason);
}

// The end of the last word before `keep`; of a text that has no spaces, of the last character.
size_t WordEnd(std::string_view text, size_t keep) {
  if (text.find(' ') != std::string_view::npos) {
    const size_t space = text.rfind(' ', keep);
    return space == std::string_view::npos ? 0 : space;
  }
  while (keep > 0 && (static_cast<uint8_t>(text[keep]) & 0xC0) == 0x80) --keep;
  return keep;
}

StatusOr<int64_t> Truncate(Conversation& conversation, const RealtimeItem& item,
                           const Json& event) {
  const int64_t end = event.GetInt("audio_end_ms", -1);
  if (item.role != "assistant" || !item.is_audio()) {
    return Error(StatusCode::kInvalidArgument, "only sound of the assistant can be truncated",
                 "item_id", "item_truncate_invalid_item_id");
  }
  if (event.GetInt("content_index", 0) != 0) return Bad("content_index", "must be 0");
  if (end < 0 || end > item.audio_ms) {
    return Bad("audio_end_ms", fmt::format("must be in 0..{}", item.audio_ms));
  }
  if (item.audio_ms > 0) {
    conversation.Change(item.id, [end](RealtimeItem& kept) {
      const size_t keep =
          kept.text.size() * static_cast<size_t>(end) / static_cast<size_t>(kept.audio_ms);
      if (keep < kept.text.size()) kept.text.resize(WordEnd(kept.text, keep));
      kept.audio_ms = end;
    });
  }
  return end;
}

}  // namespace portico::api::openai
