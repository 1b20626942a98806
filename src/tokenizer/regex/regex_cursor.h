// A place in a pattern that is being read, and the sentences about patterns.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/regex/regex.h"

namespace portico::tokenizer {

// "the pattern '…'", its beginning where it is long: for messages.
std::string PatternText(std::string_view pattern);

struct PatternCursor {
  std::string_view pattern;
  Regex::Syntax syntax = Regex::Syntax::kOniguruma;
  size_t at = 0;

  bool AtEnd() const { return at >= pattern.size(); }
  std::string_view rest() const { return pattern.substr(at); }
  // '\0' behind the end.
  char Peek(size_t ahead = 0) const {
    return at + ahead < pattern.size() ? pattern[at + ahead] : '\0';
  }
  // Whether `text` is here; if so it is read.
  bool Take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at += text.size();
    return true;
  }
  // Reads one character that means itself: its bytes. Nothing where they are not UTF-8.
  std::string_view TakeCharacter();

  bool is_oniguruma() const { return syntax == Regex::Syntax::kOniguruma; }
  // "the pattern '…' uses `what`, which is not supported"
  Status Refuse(std::string_view what) const;
};

}  // namespace portico::tokenizer
