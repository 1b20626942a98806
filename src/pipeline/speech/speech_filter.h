// What of a text is not read aloud at all, found as the text comes in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace portico::pipeline {

// Drops what models think aloud, <think>…</think>. A text whose first tag is </think> began within the
// thoughts: what is there before the tag is dropped too, unless it was given out already.
class ThinkFilter {
 public:
  // The part of what came so far that may be said.
  std::string Feed(std::string_view piece);
  // What may have begun a tag. Thoughts go on behind it.
  std::string Finish();

 private:
  std::string held_;  // may begin a tag
  bool thinking_ = false;
  bool tagged_ = false;  // a tag has come
};

// Drops Markdown's fenced blocks of code, with their fences ("```python").
class CodeFilter {
 public:
  std::string Feed(std::string_view piece);
  // The line so far is whole. A block that is open goes on behind it.
  std::string Finish();

 private:
  bool MayBeFence() const;
  bool EndsBlock() const;
  void EndLine(std::string* out);

  std::string line_;     // its begin, while it may be a fence or is in a block
  bool holding_ = true;  // else the rest of the line is passed on
  size_t fence_ = 0;     // marks of the open block; 0: none is open
};

// Both, in this order.
class SpeechFilter {
 public:
  std::string Feed(std::string_view piece) { return code_.Feed(thoughts_.Feed(piece)); }
  std::string Finish() {
    std::string rest = code_.Feed(thoughts_.Finish());
    rest += code_.Finish();
    return rest;
  }

 private:
  ThinkFilter thoughts_;
  CodeFilter code_;
};

}  // namespace portico::pipeline
