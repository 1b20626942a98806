#include "tokenizer/regex/regex_cursor.h"

#include "text/utf8.h"

namespace portico::tokenizer {

std::string_view PatternCursor::TakeCharacter() {
  const std::string_view character = rest().substr(0, Utf8SequenceLength(rest()));
  at += character.size();
  return character;
}

Status PatternCursor::Refuse(std::string_view what) const {
  return Error(StatusCode::kUnimplemented,
               PatternText(pattern) + " uses " + std::string(what) + ", which is not supported");
}

std::string PatternText(std::string_view pattern) {
  constexpr size_t kLongest = 200;
  std::string text(pattern);
  if (text.size() > kLongest) {
    size_t end = kLongest;
    while (IsTailByte(text[end])) --end;
    text.resize(end);
    text += "…";
  }
  return "the pattern '" + text + "'";
}

}  // namespace portico::tokenizer
