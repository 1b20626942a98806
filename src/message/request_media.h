// What a prompt has beside its text: media, for engines whose models take them (EngineCapabilities::media).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace portico {

enum class MediaKind : uint8_t { kImage, kVideo, kAudio };
inline constexpr MediaKind kEachMediaKind[] = {MediaKind::kImage, MediaKind::kVideo,
                                               MediaKind::kAudio};
inline constexpr size_t kMediaKinds = std::size(kEachMediaKind);

// What a kind is called; of static storage.
struct MediaWords {
  std::string_view name;    // SGLang's, in limits and columns
  std::string_view data;    // SGLang's field, over HTTP and gRPC
  std::string_view part;    // OpenAI's part of a message's content, and its member
  std::string_view phrase;  // "is …", for messages
  std::string_view plural;  // for messages
};
inline constexpr MediaWords kMediaWords[kMediaKinds] = {
    {"image", "image_data", "image_url", "an image", "images"},
    {"video", "video_data", "video_url", "a video", "videos"},
    {"audio", "audio_data", "audio_url", "audio", "audio files"},
};
constexpr const MediaWords& WordsOf(MediaKind kind) {
  return kMediaWords[static_cast<size_t>(kind)];
}
constexpr std::string_view NameOf(MediaKind kind) { return WordsOf(kind).name; }

// The kind that has this word: FindMediaKind("image_url", &MediaWords::part).
constexpr std::optional<MediaKind> FindMediaKind(std::string_view word,
                                                 std::string_view MediaWords::* which) {
  for (const MediaKind kind : kEachMediaKind) {
    if (WordsOf(kind).*which == word) return kind;
  }
  return std::nullopt;
}

// No limit of one prompt's items of one kind is higher.
inline constexpr size_t kMaxMediaOfKind = 1024;

// ReasonOf() an error that concerns what reads media alone: it says nothing of the engine, which takes text as before.
inline constexpr std::string_view kMediaFailed = "media_failed";
// The header of an HTTP answer of 5xx with ReasonOf() its error: a gateway reads it before the body comes, whatever form that has.
inline constexpr std::string_view kFailureHeader = "x-portico-failure";

struct MediaItem {
  MediaKind kind = MediaKind::kImage;
  std::string field;                         // of the API, for messages: "image_data"
  std::string place;                         // for messages: "messages[0].content[1].image_url"
  std::string url;                           // as the client gave it, until the bytes are there
  std::shared_ptr<const std::string> bytes;  // a file, still encoded; null: not yet
  std::string detail;                        // OpenAI's, of an image; empty: not given
};

// Immutable once submitted; shared between the choices of a request.
struct RequestMedia {
  // Not empty; those of one kind in the order of their places in the prompt.
  std::vector<MediaItem> items;
  // The prompt with a mark for each item, as the chat template or the client wrote it. Empty: the prompt's ids stand
  // for it.
  std::string text;
  // The client named the limit of new tokens, so that it is refused rather than cut once the prompt has grown.
  bool limit_is_asked = false;
  // Each choice's request has all that an engine makes of the media, together no more than so many bytes.
  int32_t choices = 1;
  int64_t max_made_bytes = INT64_MAX;
  // Counts the bytes of the request that they came with, while anyone has them; null: they are not counted there.
  std::shared_ptr<void> lease;

  // The field that all items came in; empty: there are several.
  std::string_view field() const {
    const std::string_view first = items.front().field;
    for (const MediaItem& item : items) {
      if (item.field != first) return {};
    }
    return first;
  }
};

}  // namespace portico
