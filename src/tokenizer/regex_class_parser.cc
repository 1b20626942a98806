#include "tokenizer/regex_class_parser.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

constexpr size_t kMaxDepth = 64;

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 32);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// What is read of a class: brought into order now and then, so that a long class takes little more than its length.
class RangeList {
 public:
  void Add(uint32_t first, uint32_t last) { ranges_.push_back({first, last + 1}); }
  void Add(const CodePoints& set, bool negated) {
    const CodePoints complement = negated ? set.Complement() : CodePoints();
    const std::vector<CodePoints::Range>& added = negated ? complement.ranges() : set.ranges();
    ranges_.insert(ranges_.end(), added.begin(), added.end());
    if (ranges_.size() < next_order_) return;
    ranges_ = CodePoints(std::move(ranges_)).ranges();
    next_order_ = std::max(kFirstOrder, ranges_.size() * 2);
  }
  CodePoints Take() { return CodePoints(std::exchange(ranges_, {})); }

 private:
  static constexpr size_t kFirstOrder = 16384;

  std::vector<CodePoints::Range> ranges_;
  size_t next_order_ = kFirstOrder;
};

class ClassParser {
 public:
  ClassParser(std::string_view pattern, Regex::Syntax syntax, size_t at)
      : pattern_(pattern), syntax_(syntax), at_(at) {}

  size_t at() const { return at_; }

  StatusOr<CharacterClass> Class(size_t depth = 0) {
    if (depth > kMaxDepth) return Refuse("classes inside of classes too deeply");
    CharacterClass out;
    ++at_;
    if (Take("^")) out.negated = true;
    CodePoints left;
    char operation = '\0';  // between `left` and what is read now
    RangeList read;
    bool first = true;
    while (true) {
      if (at_ >= pattern_.size()) return Refuse("an unfinished class");
      if (Peek() == ']' && !first) break;
      if (const char next = Operation()) {
        at_ += 2;
        left = Combined(operation, left, read.Take());
        operation = next;
      } else {
        PORTICO_RETURN_IF_ERROR(Item(depth, &read));
      }
      first = false;
    }
    ++at_;
    out.members = Combined(operation, left, read.Take());
    return out;
  }

  StatusOr<CharacterProperty> Property() {
    CharacterProperty out;
    out.negated = Peek(1) == 'P';
    std::string_view name;
    size_t next = 0;
    if (Peek(2) == '{') {
      size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos) return Refuse("an unfinished \\p{");
      name = pattern_.substr(at_ + 3, end - at_ - 3);
      next = end + 1;
    } else if (syntax_ == Regex::Syntax::kFancyRegex && Peek(2) != '\0') {
      name = pattern_.substr(at_ + 2, 1);
      next = at_ + 3;
    } else {
      return Refuse("\\p without braces");
    }
    const std::string whole(pattern_.substr(at_, next - at_));
    if (name.starts_with('^')) {
      out.negated = !out.negated;
      name.remove_prefix(1);
    }
    // The regex crate's "Script=Greek" and "gc=Lu".
    const size_t equals = name.find('=');
    if (syntax_ == Regex::Syntax::kFancyRegex && equals != name.npos) {
      constexpr std::array<std::string_view, 4> kKeys = {"sc", "Script", "gc", "General_Category"};
      if (std::find(kKeys.begin(), kKeys.end(), name.substr(0, equals)) == kKeys.end()) {
        return Refuse(whole);
      }
      name.remove_prefix(equals + 1);
    }
    out.characters = PropertyNamed(name);
    if (out.characters == nullptr) return Refuse(whole);
    at_ = next;
    return out;
  }

  StatusOr<uint32_t> Character(bool in_class) {
    const char c = Peek(1);
    if (c == '\0') return Refuse("a backslash at its end");
    const bool octal = c == '0' || (c >= '1' && c <= '7' && (in_class || IsOctal(3)));
    if (octal) return Octal();
    if (c >= '1' && c <= '9') return Refuse("a back-reference");
    constexpr std::string_view kNames = "nrtfaev";
    constexpr std::string_view kMeanings = "\n\r\t\f\a\x1B\v";
    const size_t named = kNames.find(c);
    if (named != kNames.npos) {
      at_ += 2;
      return static_cast<uint32_t>(kMeanings[named]);
    }
    if (c == 'b' && in_class) {
      at_ += 2;
      return uint32_t{8};
    }
    if (c == 'c' && Peek(2) != '\0') {
      at_ += 3;
      return static_cast<uint32_t>(pattern_[at_ - 1] & 0x1F);
    }
    if (c == 'x' || c == 'u') return Hex();
    if (IsUpper(static_cast<char>(c & ~32))) return Refuse("\\" + std::string(1, c));
    ++at_;
    return Plain();
  }

 private:
  // "&&", and in the regex crate "--" and "~~", told by one character; else 0.
  char Operation() const {
    const std::string_view two = pattern_.substr(at_, 2);
    const bool fancy = syntax_ == Regex::Syntax::kFancyRegex;
    return two == "&&" || (fancy && (two == "--" || two == "~~")) ? two[0] : '\0';
  }

  static CodePoints Combined(char operation, const CodePoints& a, const CodePoints& b) {
    switch (operation) {
      case '&':
        return a & b;
      case '-':
        return a - b;
      case '~':
        return (a | b) - (a & b);
      default:
        return b;
    }
  }

  Status Refuse(std::string_view what) const { return RefusePattern(pattern_, what); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool Take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  // Whether `count` octal digits follow the backslash.
  bool IsOctal(size_t count) const {
    for (size_t i = 1; i <= count; ++i) {
      if (Peek(i) < '0' || Peek(i) > '7') return false;
    }
    return true;
  }

  uint32_t Octal() {
    uint32_t value = 0;
    ++at_;
    for (int i = 0; i < 3 && Peek() >= '0' && Peek() <= '7'; ++i, ++at_) {
      value = value * 8 + static_cast<uint32_t>(Peek() - '0');
    }
    return value & 0xFF;
  }

  StatusOr<uint32_t> Hex() {
    const bool four = Peek(1) == 'u';
    at_ += 2;
    const bool braces = Take("{");
    const size_t most = braces ? 8 : four ? 4 : 2;
    uint64_t value = 0;
    size_t digits = 0;
    for (; digits < most && HexValue(Peek()) < 16; ++digits, ++at_) {
      value = value * 16 + static_cast<uint64_t>(HexValue(Peek()));
    }
    if (digits == 0 || (four && !braces && digits < 4) || (braces && !Take("}"))) {
      return Refuse("an unfinished \\x or \\u");
    }
    // Oniguruma takes two digits for a byte, also of a longer character.
    const bool byte = !braces && !four && value > 0x7F && syntax_ == Regex::Syntax::kOniguruma;
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000) || byte) {
      return Refuse("a number that is no character");
    }
    return static_cast<uint32_t>(value);
  }

  // A character that means itself.
  StatusOr<uint32_t> Plain() {
    const std::string_view rest = pattern_.substr(at_);
    const size_t length = Utf8SequenceLength(rest);
    if (length == 0) return Refuse("bytes that are not UTF-8");
    at_ += length;
    return Utf8Decode(rest, length);
  }

  // One member of a class, a range or a class inside of it.
  Status Item(size_t depth, RangeList* out) {
    if (Peek() == '[') {
      if (Peek(1) == ':' && pattern_.find(":]", at_) != pattern_.npos) return Posix(out);
      PORTICO_ASSIGN_OR_RETURN(CharacterClass inner, Class(depth + 1));
      out->Add(inner.members, inner.negated);
      return OkStatus();
    }
    if (Peek() == '\\') {
      if (Peek(1) == 'p' || Peek(1) == 'P') {
        PORTICO_ASSIGN_OR_RETURN(CharacterProperty property, Property());
        out->Add(property.characters->members, property.negated);
        return CheckNoRange();
      }
      const char lower = static_cast<char>(Peek(1) | 32);
      if (const NamedCharacters* named = LetterClass(lower, syntax_, /*in_class=*/true)) {
        out->Add(named->members, IsUpper(Peek(1)));
        at_ += 2;
        return CheckNoRange();
      }
    }
    PORTICO_ASSIGN_OR_RETURN(uint32_t first, One());
    const bool ends = Peek(1) == ']' || Peek(1) == '\0' || pattern_.substr(at_ + 1, 2) == "&&";
    if (Peek() != '-' || ends || Operation() != '\0') {
      out->Add(first, first);
      return OkStatus();
    }
    ++at_;
    if (Peek() == '[') {
      out->Add(first, first);
      out->Add('-', '-');
      return OkStatus();
    }
    PORTICO_ASSIGN_OR_RETURN(uint32_t last, One());
    if (last < first) return Refuse("a range that ends before it begins");
    out->Add(first, last);
    return OkStatus();
  }

  // A set cannot begin a range.
  Status CheckNoRange() const {
    if (Peek() == '-' && Peek(1) != ']' && Peek(1) != '[' && Peek(1) != '\0') {
      return Refuse("a range that begins with a class");
    }
    return OkStatus();
  }

  StatusOr<uint32_t> One() { return Peek() == '\\' ? Character(/*in_class=*/true) : Plain(); }

  Status Posix(RangeList* out) {
    size_t end = pattern_.find(":]", at_);
    std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const NamedCharacters* named = PosixClassNamed(name, syntax_);
    if (named == nullptr) return Refuse("[:" + std::string(name) + ":]");
    out->Add(named->members, negated);
    at_ = end + 2;
    return OkStatus();
  }

  std::string_view pattern_;
  Regex::Syntax syntax_;
  size_t at_;
};

}  // namespace

std::string PatternText(std::string_view pattern) {
  constexpr size_t kLongest = 200;
  std::string text(pattern);
  if (text.size() > kLongest) {
    size_t end = kLongest;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    text += "…";
  }
  return "the pattern '" + text + "'";
}

Status RefusePattern(std::string_view pattern, std::string_view what) {
  return Error(StatusCode::kUnimplemented,
               PatternText(pattern) + " uses " + std::string(what) + ", which is not supported");
}

StatusOr<CharacterClass> ParseClass(std::string_view pattern, Regex::Syntax syntax, size_t* at) {
  ClassParser parser(pattern, syntax, *at);
  PORTICO_ASSIGN_OR_RETURN(CharacterClass out, parser.Class());
  *at = parser.at();
  return out;
}

StatusOr<CharacterProperty> ParseProperty(std::string_view pattern, Regex::Syntax syntax,
                                          size_t* at) {
  ClassParser parser(pattern, syntax, *at);
  PORTICO_ASSIGN_OR_RETURN(CharacterProperty out, parser.Property());
  *at = parser.at();
  return out;
}

StatusOr<uint32_t> ParseCharacter(std::string_view pattern, Regex::Syntax syntax, bool in_class,
                                  size_t* at) {
  ClassParser parser(pattern, syntax, *at);
  PORTICO_ASSIGN_OR_RETURN(uint32_t out, parser.Character(in_class));
  *at = parser.at();
  return out;
}

}  // namespace portico::tokenizer
