// What a prompt has beside its text: images, for engines whose models see (EngineCapabilities::media).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace portico {

struct MediaItem {
  std::string place;                         // for messages: "messages[0].content[1].image_url"
  std::string url;                           // as the client gave it, until the bytes are there
  std::shared_ptr<const std::string> bytes;  // a file, still encoded; null: not yet
  std::string detail;                        // OpenAI's; empty: not given
};

// Immutable once submitted; shared between the choices of a request.
struct RequestMedia {
  std::string field;              // of the API, for messages
  std::vector<MediaItem> images;  // not empty; in the order of their places in the prompt
  // The prompt with a mark for each item, as the chat template or the client wrote it. Empty: the prompt's ids stand
  // for it.
  std::string text;
  // The client named the limit of new tokens, so that it is refused rather than cut once the prompt has grown.
  bool limit_is_asked = false;
};

}  // namespace portico
