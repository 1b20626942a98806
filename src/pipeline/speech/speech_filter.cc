#include "pipeline/speech/speech_filter.h"

#include <algorithm>
#include <utility>

#include "text/white_space.h"

namespace portico::pipeline {
namespace {

constexpr std::string_view kOpenThoughts = "<think>";
constexpr std::string_view kCloseThoughts = "</think>";
constexpr size_t kMinFence = 3;    // marks
constexpr size_t kMaxFence = 256;  // bytes of its line that are looked at

// Bytes at the end of `text` that may begin `tag`.
size_t MayBegin(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == tag.substr(0, n)) return n;
  }
  return 0;
}

std::string_view WithoutIndent(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
}

size_t MarksOf(std::string_view line) { return std::min(line.find_first_not_of('`'), line.size()); }

}  // namespace

std::string ThinkFilter::Feed(std::string_view piece) {
  held_ += piece;
  std::string out;
  while (true) {
    const size_t close = held_.find(kCloseThoughts);
    const size_t open = thinking_ ? std::string::npos : held_.find(kOpenThoughts);
    const size_t found = std::min(open, close);
    if (found == std::string::npos) {
      size_t tail = MayBegin(held_, kCloseThoughts);
      if (!thinking_) tail = std::max(tail, MayBegin(held_, kOpenThoughts));
      const size_t upto = held_.size() - tail;
      if (!thinking_) out.append(held_, 0, upto);
      held_.erase(0, upto);
      return out;
    }
    const bool opens = open < close;
    if (!thinking_) out.append(held_, 0, found);
    if (!opens && !tagged_) out.clear();
    held_.erase(0, found + (opens ? kOpenThoughts : kCloseThoughts).size());
    thinking_ = opens;
    tagged_ = true;
  }
}

std::string ThinkFilter::Finish() {
  std::string rest;
  if (!thinking_) rest.swap(held_);
  held_.clear();
  return rest;
}

// "```", "```python"; not "```ls``` is a command".
bool CodeFilter::MayBeFence() const {
  const std::string_view text = WithoutIndent(line_);
  const size_t marks = MarksOf(text);
  if (marks < kMinFence && line_.size() >= kMaxFence) return false;
  if (marks == text.size()) return true;
  return marks >= kMinFence && text.find('`', marks) == std::string_view::npos;
}

bool CodeFilter::EndsBlock() const {
  const std::string_view text = WithoutIndent(line_);
  const size_t marks = MarksOf(text);
  return marks >= fence_ && text.find_first_not_of(kWhiteSpace, marks) == std::string_view::npos;
}

void CodeFilter::EndLine(std::string* out) {
  if (fence_ > 0) {
    if (EndsBlock()) fence_ = 0;
  } else if (const size_t marks = MarksOf(WithoutIndent(line_)); marks >= kMinFence) {
    fence_ = marks;
  } else {
    *out += line_;
  }
  line_.clear();
}

std::string CodeFilter::Feed(std::string_view piece) {
  std::string out;
  for (const char c : piece) {
    if (c == '\n') {
      if (std::exchange(holding_, true)) EndLine(&out);
      out.push_back('\n');
    } else if (!holding_) {
      out.push_back(c);
    } else {
      if (line_.size() < kMaxFence) line_.push_back(c);
      if (fence_ > 0 || MayBeFence()) continue;
      out += std::exchange(line_, {});
      holding_ = false;
    }
  }
  return out;
}

std::string CodeFilter::Finish() {
  std::string rest;
  if (std::exchange(holding_, true)) EndLine(&rest);
  return rest;
}

}  // namespace portico::pipeline
