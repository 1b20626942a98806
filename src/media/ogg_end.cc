#include "media/ogg_end.h"

#include <cstddef>
#include <cstdint>

namespace portico::media {
namespace {

constexpr std::string_view kPage = "OggS";
constexpr size_t kFlagsAt = 5;
constexpr size_t kLacesAt = 26;  // how many sizes follow, a byte each
constexpr uint8_t kLastOfStream = 4;

}  // namespace

bool OggIsCut(std::string_view bytes) {
  bool ended = false;
  size_t at = 0;
  // What is no page behind the last one is not read.
  while (bytes.substr(at).starts_with(kPage)) {
    const std::string_view page = bytes.substr(at);
    const auto byte = [page](size_t i) { return static_cast<uint8_t>(page[i]); };
    if (page.size() <= kLacesAt) return true;
    const size_t head = kLacesAt + 1 + byte(kLacesAt);
    if (page.size() < head) return true;
    size_t size = head;
    for (size_t i = kLacesAt + 1; i < head; ++i) size += byte(i);
    if (page.size() < size) return true;
    ended = (byte(kFlagsAt) & kLastOfStream) != 0;
    at += size;
  }
  return !ended;
}

}  // namespace portico::media
