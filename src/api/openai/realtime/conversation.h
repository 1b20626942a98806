// The items of a realtime conversation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "text/json.h"

namespace portico::api::openai {

struct RealtimeItem {
  enum class Kind { kMessage, kCall, kCallOutput };

  std::string id;  // "item_…"
  Kind kind = Kind::kMessage;
  std::string role;  // of a message: system, user, assistant
  std::string type;  // of its content: input_text, input_audio, output_text, output_audio
  std::string text;  // or transcript; a call's arguments; the output of one
  std::string call_id;
  std::string name;                  // of the function that is called
  std::string status = "completed";  // in_progress, completed, incomplete
  bool unheard = false;              // its sound is being heard
  int64_t audio_ms = 0;

  bool is_audio() const { return type.ends_with("audio"); }
  // A turn of the user that has been heard, and has no words: a silence, or noise.
  bool says_nothing() const {
    return kind == Kind::kMessage && type == "input_audio" && !unheard && text.empty();
  }
  size_t bytes() const { return text.size() + call_id.size() + name.size(); }
  Json Content() const;
  Json ToJson() const;
};

class Conversation {
 public:
  static constexpr size_t kMaxItems = 512;
  static constexpr size_t kMaxBytes = 8 << 20;  // of their texts

  const std::vector<RealtimeItem>& items() const { return items_; }
  const RealtimeItem* Find(std::string_view id) const;
  // Calls `change` with the item of this id and returns it; null if there is none. Items change here
  // only, so that bytes() stays right; one that grows in a full conversation pushes out older ones.
  const RealtimeItem* Change(std::string_view id, absl::FunctionRef<void(RealtimeItem&)> change);
  // The id of the item before `id`; "" of the first.
  std::string Before(std::string_view id) const;
  // Of their texts. A running total: it takes no time.
  size_t bytes() const { return bytes_; }
  // At the end; of a full conversation the oldest go.
  const RealtimeItem& Append(RealtimeItem item);
  // Behind the item `previous`, or first for "root"; of a full conversation the oldest of the others
  // go. INVALID_ARGUMENT: there is no such item.
  Status Insert(RealtimeItem item, std::string_view previous);
  bool Remove(std::string_view id);
  // A function was called by this id.
  bool HasCall(std::string_view call_id) const;
  // Some sound has not been heard to its end.
  bool unheard() const;

  // The messages of a chat request. Templates may demand that user and assistant alternate, so a turn that says
  // nothing is a message of the user, "(silence)", unless it comes beside one that has words or another of its kind.
  Json Messages(std::string_view instructions) const;

 private:
  // Removes the oldest until the item has room; how many they were.
  size_t MakeRoom(const RealtimeItem& item);

  std::vector<RealtimeItem> items_;
  size_t bytes_ = 0;  // the sum of their bytes()
};

// What conversation.item.create sends: a message of text, a call or the output of one. `sound` gets
// the base64 of an input_audio part, whose text is not known yet. INVALID_ARGUMENT names the field.
StatusOr<RealtimeItem> ReadItem(const Json& item, std::string* sound);

// The item of a client's event. INVALID_ARGUMENT (field "item_id", `reason`) if there is none.
StatusOr<const RealtimeItem*> ItemOf(const Conversation& conversation, const Json& event,
                                     std::string_view reason);

// conversation.item.truncate: the user has not heard the rest, so that the item, one of the
// conversation, forgets about as many of its words. The milliseconds that are kept.
StatusOr<int64_t> Truncate(Conversation& conversation, const RealtimeItem& item, const Json& event);

}  // namespace portico::api::openai
