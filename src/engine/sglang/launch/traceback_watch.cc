#include "engine/sglang/launch/traceback_watch.h"

#include <fmt/format.h>

#include "absl/strings/ascii.h"

namespace portico::sglang {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";

// "module.Name: message", or the name alone: how a traceback ends. Its other lines are indented.
bool EndsTraceback(std::string_view line) {
  if (!absl::ascii_isalpha(static_cast<unsigned char>(line.front()))) return false;
  size_t end = 0;
  while (end < line.size() && (absl::ascii_isalnum(static_cast<unsigned char>(line[end])) ||
                               line[end] == '_' || line[end] == '.')) {
    ++end;
  }
  return end == line.size() || line[end] == ':';
}

}  // namespace

bool TracebackWatch::Add(std::string_view line) {
  while (!line.empty() && absl::ascii_isspace(static_cast<unsigned char>(line.back()))) {
    line.remove_suffix(1);
  }
  if (line.empty()) return false;
  if (line.find(kTraceback) != std::string_view::npos) {
    state_ = State::kInside;
    return false;
  }
  if (state_ == State::kInside && EndsTraceback(line)) {
    // A message may begin with an empty line, as sgl_kernel's does.
    state_ = line.back() == ':' ? State::kNeedsMessage : State::kOutside;
    last_ = fmt::format("{:.300}", line);
    return true;
  }
  if (state_ != State::kNeedsMessage) return false;
  state_ = State::kOutside;
  last_ = fmt::format("{:.300}", fmt::format("{} {}", last_, line));
  return true;
}

}  // namespace portico::sglang
