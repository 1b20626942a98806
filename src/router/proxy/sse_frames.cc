#include "router/proxy/sse_frames.h"

#include <utility>

namespace portico::router {
namespace {

constexpr std::string_view kDone = "data: [DONE]";

}  // namespace

size_t LastEventEnd(std::string_view bytes) {
  for (size_t end = bytes.size(); end >= 2; --end) {
    const char last = bytes[end - 1];
    if (last != '\n' && last != '\r') continue;
    const char before = bytes[end - 2];
    if (last == '\n' && before == '\n') return end;
    if (last == '\r' && before == '\r') return end;
    if (last == '\n' && before == '\r' && end >= 4 && bytes[end - 3] == '\n' &&
        bytes[end - 4] == '\r') {
      return end;
    }
  }
  return 0;
}

std::string_view SseFrames::Take(std::string_view bytes) {
  std::string_view all = bytes;
  if (!held_.empty()) {
    held_.append(bytes);
    out_ = std::exchange(held_, {});
    all = out_;
  }
  size_t end = LastEventEnd(all);
  if (all.size() - end > kMaxEvent) end = all.size();
  const std::string_view ready = all.substr(0, end);
  // The last event of a stream comes in its last bytes.
  if (!done_ && ready.size() >= kDone.size()) {
    const size_t tail = ready.size() < 64 ? 0 : ready.size() - 64;
    done_ = ready.find(kDone, tail) != std::string_view::npos;
  }
  held_.assign(all.substr(end));
  return ready;
}

}  // namespace portico::router
