#include "tokenizer/regex/regex_class_parser.h"

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
  explicit ClassParser(PatternCursor* in) : in_(*in) {}

  StatusOr<CharacterClass> Class(size_t depth = 0) {
    if (depth > kMaxDepth) return in_.Refuse("classes inside of classes too deeply");
    CharacterClass out;
    ++in_.at;
    if (in_.Take("^")) out.negated = true;
    CodePoints left;
    char operation = '\0';  // between `left` and what is read now
    RangeList read;
    bool first = true;
    while (true) {
      if (in_.AtEnd()) return in_.Refuse("an unfinished class");
      if (in_.Peek() == ']' && !first) break;
      if (const char next = Operation()) {
        in_.at += 2;
        left = Combined(operation, left, read.Take());
        operation = next;
      } else {
        PORTICO_RETURN_IF_ERROR(Item(depth, &read));
      }
      first = false;
    }
    ++in_.at;
    out.members = Combined(operation, left, read.Take());
    return out;
  }

  StatusOr<CharacterProperty> Property() {
    CharacterProperty out;
    out.negated = in_.Peek(1) == 'P';
    std::string_view name;
    size_t next = 0;
    if (in_.Peek(2) == '{') {
      size_t end = in_.pattern.find('}', in_.at);
      if (end == std::string_view::npos) return in_.Refuse("an unfinished \\p{");
      name = in_.pattern.substr(in_.at + 3, end - in_.at - 3);
      next = end + 1;
    } else if (!in_.is_oniguruma() && in_.Peek(2) != '\0') {
      name = in_.pattern.substr(in_.at + 2, 1);
      next = in_.at + 3;
    } else {
      return in_.Refuse("\\p without braces");
    }
    const std::string whole(in_.pattern.substr(in_.at, next - in_.at));
    if (name.starts_with('^')) {
      out.negated = !out.negated;
      name.remove_prefix(1);
    }
    // The regex crate's "Script=Greek" and "gc=Lu".
    const size_t equals = name.find('=');
    if (!in_.is_oniguruma() && equals != name.npos) {
      constexpr std::array<std::string_view, 4> kKeys = {"sc", "Script", "gc", "General_Category"};
      if (std::find(kKeys.begin(), kKeys.end(), name.substr(0, equals)) == kKeys.end()) {
        return in_.Refuse(whole);
      }
      name.remove_prefix(equals + 1);
    }
    out.characters = PropertyNamed(name);
    if (out.characters == nullptr) return in_.Refuse(whole);
    in_.at = next;
    return out;
  }

  StatusOr<uint32_t> Character(bool in_class) {
    const char c = in_.Peek(1);
    if (c == '\0') return in_.Refuse("a backslash at its end");
    const bool octal = c == '0' || (c >= '1' && c <= '7' && (in_class || IsOctal(3)));
    if (octal) return Octal();
    if (c >= '1' && c <= '9') return in_.Refuse("a back-reference");
    constexpr std::string_view kNames = "nrtfaev";
    constexpr std::string_view kMeanings = "\n\r\t\f\a\x1B\v";
    const size_t named = kNames.find(c);
    if (named != kNames.npos) {
      in_.at += 2;
      return static_cast<uint32_t>(kMeanings[named]);
    }
    if (c == 'b' && in_class) {
      in_.at += 2;
      return uint32_t{8};
    }
    if (c == 'c' && in_.Peek(2) != '\0') {
      in_.at += 3;
      return static_cast<uint32_t>(in_.pattern[in_.at - 1] & 0x1F);
    }
    if (c == 'x' || c == 'u') return Hex();
    if (IsUpper(static_cast<char>(c & ~32))) return in_.Refuse("\\" + std::string(1, c));
    ++in_.at;
    return Plain();
  }

 private:
  // "&&", and in the regex crate "--" and "~~", told by one character; else 0.
  char Operation() const {
    const std::string_view two = in_.pattern.substr(in_.at, 2);
    const bool fancy = !in_.is_oniguruma();
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

  // Whether `count` octal digits follow the backslash.
  bool IsOctal(size_t count) const {
    for (size_t i = 1; i <= count; ++i) {
      if (in_.Peek(i) < '0' || in_.Peek(i) > '7') return false;
    }
    return true;
  }

  uint32_t Octal() {
    uint32_t value = 0;
    ++in_.at;
    for (int i = 0; i < 3 && in_.Peek() >= '0' && in_.Peek() <= '7'; ++i, ++in_.at) {
      value = value * 8 + static_cast<uint32_t>(in_.Peek() - '0');
    }
    return value & 0xFF;
  }

  StatusOr<uint32_t> Hex() {
    const bool four = in_.Peek(1) == 'u';
    in_.at += 2;
    const bool braces = in_.Take("{");
    const size_t most = braces ? 8 : four ? 4 : 2;
    uint64_t value = 0;
    size_t digits = 0;
    for (; digits < most && HexValue(in_.Peek()) < 16; ++digits, ++in_.at) {
      value = value * 16 + static_cast<uint64_t>(HexValue(in_.Peek()));
    }
    if (digits == 0 || (four && !braces && digits < 4) || (braces && !in_.Take("}"))) {
      return in_.Refuse("an unfinished \\x or \\u");
    }
    // Oniguruma takes two digits for a byte, also of a longer character.
    const bool byte = !braces && !four && value > 0x7F && in_.is_oniguruma();
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000) || byte) {
      return in_.Refuse("a number that is no character");
    }
    return static_cast<uint32_t>(value);
  }

  // A character that means itself.
  StatusOr<uint32_t> Plain() {
    const std::string_view character = in_.TakeCharacter();
    if (character.empty()) return in_.Refuse("bytes that are not UTF-8");
    return Utf8Decode(character, character.size());
  }

  // One member of a class, a range or a class inside of it.
  Status Item(size_t depth, RangeList* out) {
    if (in_.Peek() == '[') {
      if (in_.Peek(1) == ':' && in_.pattern.find(":]", in_.at) != in_.pattern.npos)
        return Posix(out);
      PORTICO_ASSIGN_OR_RETURN(CharacterClass inner, Class(depth + 1));
      out->Add(inner.members, inner.negated);
      return OkStatus();
    }
    if (in_.Peek() == '\\') {
      if (in_.Peek(1) == 'p' || in_.Peek(1) == 'P') {
        PORTICO_ASSIGN_OR_RETURN(CharacterProperty property, Property());
        out->Add(property.characters->members, property.negated);
        return CheckNoRange();
      }
      const char lower = static_cast<char>(in_.Peek(1) | 32);
      if (const NamedCharacters* named = LetterClass(lower, in_.syntax, /*in_class=*/true)) {
        out->Add(named->members, IsUpper(in_.Peek(1)));
        in_.at += 2;
        return CheckNoRange();
      }
    }
    PORTICO_ASSIGN_OR_RETURN(uint32_t first, One());
    const bool ends =
        in_.Peek(1) == ']' || in_.Peek(1) == '\0' || in_.pattern.substr(in_.at + 1, 2) == "&&";
    if (in_.Peek() != '-' || ends || Operation() != '\0') {
      out->Add(first, first);
      return OkStatus();
    }
    ++in_.at;
    if (in_.Peek() == '[') {
      out->Add(first, first);
      out->Add('-', '-');
      return OkStatus();
    }
    PORTICO_ASSIGN_OR_RETURN(uint32_t last, One());
    if (last < first) return in_.Refuse("a range that ends before it begins");
    out->Add(first, last);
    return OkStatus();
  }

  // A set cannot begin a range.
  Status CheckNoRange() const {
    if (in_.Peek() == '-' && in_.Peek(1) != ']' && in_.Peek(1) != '[' && in_.Peek(1) != '\0') {
      return in_.Refuse("a range that begins with a class");
    }
    return OkStatus();
  }

  StatusOr<uint32_t> One() { return in_.Peek() == '\\' ? Character(/*in_class=*/true) : Plain(); }

  Status Posix(RangeList* out) {
    size_t end = in_.pattern.find(":]", in_.at);
    std::string_view name = in_.pattern.substr(in_.at + 2, end - in_.at - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const NamedCharacters* named = PosixClassNamed(name, in_.syntax);
    if (named == nullptr) return in_.Refuse("[:" + std::string(name) + ":]");
    out->Add(named->members, negated);
    in_.at = end + 2;
    return OkStatus();
  }

  PatternCursor& in_;
};

}  // namespace

StatusOr<CharacterClass> ParseClass(PatternCursor* in) { return ClassParser(in).Class(); }

StatusOr<CharacterProperty> ParseProperty(PatternCursor* in) { return ClassParser(in).Property(); }

StatusOr<uint32_t> ParseCharacter(PatternCursor* in, bool in_class) {
  return ClassParser(in).Character(in_class);
}

}  // namespace portico::tokenizer
