#include "template/syntax/string_literal.h"

#include <cstdio>
#include <string>

#include "template/run/failure.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

// Names for \N{…}: those that texts use. The full list of Unicode is not carried.
struct NamedCharacter {
  std::string_view name;
  uint32_t code_point;
};
constexpr NamedCharacter kNames[] = {
    {"BULLET", 0x2022},
    {"EM DASH", 0x2014},
    {"EN DASH", 0x2013},
    {"HORIZONTAL ELLIPSIS", 0x2026},
    {"NO-BREAK SPACE", 0xA0},
    {"ZERO WIDTH SPACE", 0x200B},
    {"LEFT SINGLE QUOTATION MARK", 0x2018},
    {"RIGHT SINGLE QUOTATION MARK", 0x2019},
    {"LEFT DOUBLE QUOTATION MARK", 0x201C},
    {"RIGHT DOUBLE QUOTATION MARK", 0x201D},
    {"FULLWIDTH VERTICAL LINE", 0xFF5C},
    {"LOWER ONE EIGHTH BLOCK", 0x2581},
    {"ZERO WIDTH JOINER", 0x200D},
    {"COPYRIGHT SIGN", 0xA9},
    {"DEGREE SIGN", 0xB0},
    {"MIDDLE DOT", 0xB7},
    {"RIGHTWARDS ARROW", 0x2192},
    {"LEFTWARDS ARROW", 0x2190},
    {"CHECK MARK", 0x2713},
    {"EURO SIGN", 0x20AC},
    {"SPACE", 0x20},
    {"LINE FEED", 0x0A},
    {"LATIN SMALL LETTER E WITH ACUTE", 0xE9},
};

class Unescaper {
 public:
  Unescaper(std::string_view body, int line) : body_(body), line_(line) {}

  std::string Run() {
    while (at_ < body_.size()) {
      if (body_[at_] != '\\') {
        out_.push_back(body_[at_++]);
      } else {
        ++at_;
        Escape();
      }
    }
    return std::move(out_);
  }

 private:
  void Escape() {
    if (at_ >= body_.size()) SyntaxError(line_, "\\ at end of string");
    char c = body_[at_];
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    size_t simple = kFrom.find(c);
    if (simple != std::string_view::npos) {
      out_.push_back(kTo[simple]);
      ++at_;
    } else if (c == '\n') {
      ++at_;
    } else if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      for (int i = 0; i < 3 && at_ < body_.size() && body_[at_] >= '0' && body_[at_] <= '7'; ++i) {
        value = value * 8 + static_cast<uint32_t>(body_[at_++] - '0');
      }
      AppendUtf8(value, &out_);
    } else if (c == 'x') {
      Hex(2);
    } else if (c == 'u') {
      Hex(4);
    } else if (c == 'U') {
      Hex(8);
    } else if (c == 'N') {
      Named();
    } else {
      Unknown();
    }
  }

  void Hex(size_t digits) {
    uint32_t value = 0;
    ++at_;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      int digit = at_ < body_.size() ? DigitValue(body_[at_]) : 99;
      if (digit >= 16) SyntaxError(line_, "truncated escape in a string");
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (value > 0x10FFFF) SyntaxError(line_, "illegal Unicode character");
    bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    AppendUtf8(surrogate ? 0xFFFD : value, &out_);
  }

  void Named() {
    size_t end = body_.find('}', at_);
    if (at_ + 1 >= body_.size() || body_[at_ + 1] != '{' || end == std::string_view::npos) {
      SyntaxError(line_, "malformed \\N character escape");
    }
    std::string name;
    for (char c : body_.substr(at_ + 2, end - at_ - 2)) {
      name.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c);
    }
    for (const NamedCharacter& known : kNames) {
      if (known.name != name) continue;
      AppendUtf8(known.code_point, &out_);
      at_ = end + 1;
      return;
    }
    SyntaxError(line_, "unknown Unicode character name '", name, "'");
  }

  void Unknown() {
    out_.push_back('\\');
    size_t length = Utf8SequenceLength(body_.substr(at_));
    if (length <= 1) {
      out_.push_back(body_[at_++]);
      return;
    }
    uint32_t code_point = Utf8Decode(body_.substr(at_), length);
    char text[12];
    const char* form = code_point < 0x100 ? "x%02x" : code_point < 0x10000 ? "u%04x" : "U%08x";
    std::snprintf(text, sizeof(text), form, code_point);
    out_.append(text);
    at_ += length;
  }

  std::string_view body_;
  int line_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string_view Unescape(std::string_view body, int line, Arena* arena) {
  return arena->Copy(Unescaper(body, line).Run());
}

}  // namespace portico::jinja
