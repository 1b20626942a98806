#include "router/proxy/sse_frames.h"

#include <algorithm>
#include <utility>

namespace portico::router {
namespace {

constexpr std::string_view kDone = "data: [DONE]";

}  // namespace

size_t LastEventEnd(std::string_view bytes, size_t none_before) {
  for (size_t end = bytes.size(); end >= 2 && end > none_before; --end) {
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

bool SseFrames::half() const {
  if (held_.empty()) return begun_;
  if (held_ == kDone) return false;
  if (held_.back() != '\n' && held_.back() != '\r') return true;
  if (begun_) return false;
  bool fields = false;  // other than its data
  std::string_view rest = held_;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find_first_of("\r\n"));
    if (line.starts_with("data")) return false;
    fields = fields || (!line.empty() && line[0] != ':');
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return fields;
}

std::string_view SseFrames::Take(std::string_view bytes) {
  const size_t known = held_.size();
  if (known > 0) held_.append(bytes);
  std::string_view all = known > 0 ? std::string_view(held_) : bytes;
  size_t end = LastEventEnd(all, known);
  begun_ = begun_ && end == 0;
  if (all.size() - end > kMaxEvent) {
    end = all.size();
    begun_ = true;
  }
  if (known > 0) {
    if (end == 0) return {};
    out_ = std::exchange(held_, {});
    all = out_;
  }
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
