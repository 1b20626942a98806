#include "parser/json/literal_relay.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "parser/json/literal_word.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::parser {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// For half a pair of surrogates, which many readers of JSON refuse.
constexpr std::string_view kReplacement = "\\ufffd";

bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsIdentifierByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '+' ||
         c == '-' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
}

// A quote between two letters.
bool IsApostrophe(char before, std::string_view behind) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  return is_letter(before) && !behind.empty() && is_letter(behind[0]);
}

void AppendCodePoint(uint32_t code, std::string* out) {
  if (code == '"' || code == '\\' || code < 0x20) {
    char c = static_cast<char>(code);
    AppendJsonEscaped(std::string_view(&c, 1), out);
  } else if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000 && (code < 0xD800 || code > 0xDFFF)) {
    out->push_back(static_cast<char>(0xE0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code >= 0x10000 && code <= 0x10FFFF) {
    out->push_back(static_cast<char>(0xF0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->append("\xEF\xBF\xBD");
  }
}

// The bytes of `text` from `from` on; they may be parts of characters.
void AppendByte(std::string_view text, size_t from, std::string* out) {
  for (char c : text.substr(std::min(from, text.size()))) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      out->push_back(c);
    } else {
      AppendJsonEscaped(std::string_view(&c, 1), out);
    }
  }
}

// How many hexadecimal digits the escape wants; 0 for other escapes.
size_t HexDigits(char c) { return c == 'u' ? 4 : c == 'x' ? 2 : c == 'U' ? 8 : 0; }

}  // namespace

bool IsJson(std::string_view text) { return Json::Parse(text).ok(); }

LiteralRelay::Quote LiteralRelay::QuoteBefore(std::string_view behind, bool final) const {
  if (!options_.inner_quotes) return Quote::kEnds;
  constexpr size_t kMaxLook = 64;  // of white space
  const auto next = [behind](size_t from) {
    return std::min(behind.find_first_not_of(kWhiteSpace, from), behind.size());
  };
  const size_t at = next(0);
  const std::string_view rest = behind.substr(at);
  if (at > kMaxLook) return Quote::kInner;
  if (!final && (rest.empty() || rest == "<")) return Quote::kUnknown;
  if (rest.empty() || rest.starts_with("<|") || rest.starts_with("</")) return Quote::kEnds;
  if (std::string_view(",)]}:").find(rest[0]) == std::string_view::npos) return Quote::kInner;
  // Quotes within a string come in pairs: before the second, only what ends all arguments ends the string.
  if (inner_quotes_ % 2 == 0 || !open_.empty() || rest[0] != ')') return Quote::kEnds;
  const size_t more = next(at + 1);
  if (more - at > kMaxLook) return Quote::kEnds;
  if (more == behind.size()) return final ? Quote::kEnds : Quote::kUnknown;
  const bool line_ends = behind.substr(at, more - at).find('\n') != std::string_view::npos;
  return line_ends || std::string_view(",]<").find(behind[more]) != std::string_view::npos
             ? Quote::kEnds
             : Quote::kInner;
}

size_t LiteralRelay::Push(std::string_view text, std::string* out, bool final) {
  size_t i = 0;
  const bool was_quoted = has_inner_quotes();
  while (i < text.size() && !done_) {
    if (quote_ != 0) {
      const size_t used = PushString(text.substr(i), out, final);
      if (used == 0) break;
      i += used;
      if (quoted_ && !was_quoted) break;
      continue;
    }
    if (!PushOutside(text[i], out)) break;
    ++i;
    if (broken_) break;
  }
  return i;
}

size_t LiteralRelay::PushString(std::string_view text, std::string* out, bool final) {
  size_t i = 0;
  while (i < text.size()) {
    char c = text[i];
    if (!escape_.empty()) {
      size_t hex = escape_.size() > 1 ? HexDigits(escape_[1]) : 0;
      if (hex > 0 && !IsHex(c)) {  // a hexadecimal escape that is none; `c` is the string's
        EndEscape(out);
        continue;
      }
      ++i;
      PushEscape(c, out);
      continue;
    }
    if (c != '\\') FlushHalf(out);
    size_t run = i;
    while (run < text.size() && text[run] != quote_ && text[run] != '\\' && text[run] != '"' &&
           static_cast<unsigned char>(text[run]) >= 0x20) {
      ++run;
    }
    out->append(text.substr(i, run - i));
    if (run > i) before_ = text[run - 1];
    i = run;
    if (i == text.size()) break;
    c = text[i];
    const Quote quote =
        c == quote_ && !broken_ ? QuoteBefore(text.substr(i + 1), final) : Quote::kInner;
    if (quote == Quote::kUnknown) break;
    ++i;
    if (quote == Quote::kEnds) {
      out->push_back('"');
      quote_ = 0;
      if (string_is_key_) {
        expect_ = Expect::kColon;
      } else {
        AfterValue();
      }
      break;
    }
    if (c == '\\' && !broken_) {
      escape_ = "\\";
    } else {
      AppendJsonEscaped(std::string_view(&c, 1), out);
      if (c == quote_) {
        if (!IsApostrophe(before_, text.substr(i))) ++inner_quotes_;
        before_ = c;
        if (!std::exchange(quoted_, true)) break;
      }
    }
    before_ = c;
  }
  return i;
}

void LiteralRelay::PushEscape(char c, std::string* out) {
  escape_.push_back(c);
  if (escape_.size() == 2) {
    if (HexDigits(c) > 0) return;
    EndEscape(out);
  } else if (escape_.size() == 2 + HexDigits(escape_[1])) {
    EndEscape(out);
  }
}

void LiteralRelay::EndEscape(std::string* out) {
  std::string escape;
  escape.swap(escape_);
  char kind = escape.size() > 1 ? escape[1] : 0;
  size_t hex = HexDigits(kind);
  if (hex > 0 && escape.size() == 2 + hex) {
    const auto code = static_cast<uint32_t>(std::stoul(escape.substr(2), nullptr, 16));
    if (kind == 'u' && code >= 0xDC00 && code <= 0xDFFF) {
      if (half_.empty()) escape = kReplacement;
      out->append(half_).append(escape);
      half_.clear();
      return;
    }
    FlushHalf(out);
    if (kind == 'u' && code >= 0xD800 && code <= 0xDBFF) {
      half_ = escape;
    } else if (kind == 'u') {
      out->append(escape);  // JSON's own
    } else {
      AppendCodePoint(code, out);
    }
    return;
  }
  FlushHalf(out);
  if (escape.size() == 2 && std::string_view("\"\\bfnrt").find(kind) != std::string_view::npos) {
    out->append(escape);
  } else if (kind == '/' && !options_.python) {
    out->append(escape);
  } else if (kind == '\'') {
    out->push_back('\'');
  } else if (kind == '\n' && options_.python) {
    // A line that goes on.
  } else {  // the first byte of a character, perhaps: the rest follows
    out->append("\\\\");
    AppendByte(escape, 1, out);
  }
}

void LiteralRelay::FlushHalf(std::string* out) {
  if (half_.empty()) return;
  half_.clear();
  out->append(kReplacement);
}

bool LiteralRelay::PushOutside(char c, std::string* out) {
  if (!word_.empty()) {
    if (IsIdentifierByte(c) && word_.size() < kMaxWord) {
      word_.push_back(c);
      return true;
    }
    PushWord(out);
    if (done_) return false;
  }
  if (IsWhiteSpace(c)) {
    if (comma_) {
      if (space_.size() < kMaxWord) space_.push_back(c);
    } else if (started_) {
      out->push_back(c);
    }
    return true;
  }
  switch (expect_) {
    case Expect::kColon:
      if (c != ':') {
        out->push_back(':');
        Break(c, out);
        return true;
      }
      out->push_back(c);
      expect_ = Expect::kValue;
      return true;
    case Expect::kCommaOrEnd:
      if (c == ',') {
        comma_ = true;
        expect_ = in_object() ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
        return true;
      }
      if (Shut(c, out)) return true;
      comma_ = true;
      Break(c, out);
      return true;
    case Expect::kKeyOrEnd:
    case Expect::kValueOrEnd:
      if (Shut(c, out)) return true;
      break;
    case Expect::kValue:
      break;
  }
  if (c == '"' || c == '\'') {
    Separate(out);
    started_ = true;
    quote_ = c;
    quoted_ = false;
    inner_quotes_ = 0;
    before_ = 0;
    string_is_key_ = expect_ == Expect::kKeyOrEnd;
    out->push_back('"');
    return true;
  }
  if (IsIdentifierByte(c)) {
    started_ = true;
    word_.push_back(c);
    return true;
  }
  if (expect_ != Expect::kKeyOrEnd && (c == '{' || c == '[' || c == '(') &&
      open_.size() < kMaxDepth) {
    Open(c, out);
    return true;
  }
  Break(c, out);
  return true;
}

void LiteralRelay::PushWord(std::string* out) {
  std::string word;
  word.swap(word_);
  Separate(out);
  const bool key = expect_ == Expect::kKeyOrEnd;
  if (key) {
    AppendJsonString(word, out);
    expect_ = Expect::kColon;
    return;
  }
  if (!AppendWord(word, options_.python, out)) guessed_ = true;
  AfterValue();
}

void LiteralRelay::Open(char c, std::string* out) {
  Separate(out);
  started_ = true;
  open_.push_back(c);
  out->push_back(c == '(' ? '[' : c);
  expect_ = c == '{' ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
}

bool LiteralRelay::Shut(char c, std::string* out) {
  if (open_.empty()) return false;
  char open = open_.back();
  if (c != (open == '{' ? '}' : open == '[' ? ']' : ')')) return false;
  comma_ = false;
  out->append(space_);
  space_.clear();
  out->push_back(open == '{' ? '}' : ']');
  open_.pop_back();
  AfterValue();
  return true;
}

void LiteralRelay::Separate(std::string* out) {
  if (!comma_) return;
  comma_ = false;
  out->push_back(',');
  out->append(space_);
  space_.clear();
}

void LiteralRelay::AfterValue() {
  expect_ = Expect::kCommaOrEnd;
  if (open_.empty()) done_ = true;
}

void LiteralRelay::Break(char c, std::string* out) {
  Separate(out);
  started_ = true;
  broken_ = true;
  string_is_key_ = in_object() && (expect_ == Expect::kKeyOrEnd || expect_ == Expect::kCommaOrEnd);
  quote_ = '\1';  // no byte of the text ends it
  out->push_back('"');
  AppendByte(std::string_view(&c, 1), 0, out);
}

void LiteralRelay::Cut(std::string* out) {
  out->append(std::exchange(half_, {}));
  if (!escape_.empty()) {
    const bool whole = escape_.size() == 1 || escape_[1] == 'u';  // JSON so far
    if (!whole) return EndEscape(out);
    out->append(std::exchange(escape_, {}));
  }
  const std::string word = std::exchange(word_, {});
  if (comma_) Separate(out);
  if (word.empty()) return;
  if (expect_ != Expect::kKeyOrEnd && AppendWordPart(word, out)) return;
  AppendJsonString(word, out);
  out->pop_back();
}

void LiteralRelay::Close(std::string* out) {
  if (done_) return;
  if (!escape_.empty()) EndEscape(out);
  FlushHalf(out);
  if (!word_.empty()) PushWord(out);
  if (quote_ != 0) {
    out->push_back('"');
    quote_ = 0;
    if (string_is_key_) {
      expect_ = Expect::kColon;
    } else {
      AfterValue();
    }
  }
  if (!started_) {
    out->append("null");
    done_ = true;
    return;
  }
  if (!done_ && expect_ == Expect::kColon) out->append(":null");
  if (!done_ && expect_ == Expect::kValue) out->append("null");
  comma_ = false;
  space_.clear();
  while (!open_.empty()) {
    out->push_back(open_.back() == '{' ? '}' : ']');
    open_.pop_back();
  }
  done_ = true;
}

}  // namespace portico::parser
