#include "engine/sglang/wire/python_regex.h"

#include <fmt/format.h>

#include <bitset>
#include <optional>
#include <utility>

namespace portico::sglang {
namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxRepeats = 1000;
constexpr std::string_view kClassEscapes = "dDwWsS";
constexpr std::string_view kAnchorEscapes = "bBAZ";
constexpr std::string_view kCharacterEscapes = "nrtfva";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool Holds(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }

class Checker {
 public:
  explicit Checker(std::string_view pattern) : pattern_(pattern) {}

  // Null, or why Python might refuse it.
  const char* Check() {
    Alternatives(0);
    if (wrong_ == nullptr && at_ < pattern_.size()) Fail("there is a ) too many");
    return wrong_;
  }
  size_t at() const { return at_; }

 private:
  // kAmbiguous: a group that can match the same text in several ways.
  enum class Atom { kNone, kRepeatable, kAmbiguous, kAnchor };

  bool Done() const { return wrong_ != nullptr || at_ >= pattern_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  void Fail(const char* why) {
    if (wrong_ == nullptr) wrong_ = why;
  }

  // What the text begins with that the atom here matches, if that is one ASCII character.
  std::optional<unsigned char> FirstLetter() const {
    char c = Peek();
    if (c == '\\') {
      constexpr std::string_view kValues = "\n\r\t\f\v\a";
      const size_t which = kCharacterEscapes.find(Peek(1));
      if (which != std::string_view::npos) return static_cast<unsigned char>(kValues[which]);
      c = Peek(1);
      if (IsLetter(c) || IsDigit(c)) return {};
    } else if (Holds("([.^$", c)) {
      return {};
    }
    if (c == '\0' || static_cast<unsigned char>(c) >= 0x80) return {};
    return static_cast<unsigned char>(c);
  }

  // Up to the end or the ) of the group that it is in.
  void Alternatives(int depth) {
    if (depth > kMaxDepth) return Fail("groups are nested too deep");
    std::bitset<128> firsts;  // what the alternatives begin with
    bool several = false, unclear = false, first = true;
    while (!Done() && Peek() != ')') {
      if (Peek() == '|') {
        several = true;
        unclear |= first;  // an empty one
        first = true;
        ++at_;
        continue;
      }
      if (std::exchange(first, false)) {
        const std::optional<unsigned char> c = FirstLetter();
        unclear |= !c || firsts.test(*c);
        if (!unclear) firsts.set(*c);
      }
      const Atom atom = OneAtom(depth);
      if (wrong_ == nullptr) Repeats(atom);
    }
    if (several && (unclear || first)) ++choices_;
  }

  Atom OneAtom(int depth) {
    const char c = Peek();
    switch (c) {
      case '(':
        return Group(depth);
      case '[':
        Class();
        return Atom::kRepeatable;
      case '\\':
        return Escape();
      case '^':
      case '$':
        ++at_;
        return Atom::kAnchor;
      case '*':
      case '+':
      case '?':
        Fail("there is nothing to repeat");
        return Atom::kNone;
      case '{':
        // A literal to Python where it is no count, which is left to it.
        Fail("a { that repeats nothing must be written \\{");
        return Atom::kNone;
      default:
        ++at_;
        while (!Done() && (static_cast<unsigned char>(Peek()) & 0xc0) == 0x80) ++at_;
        return Atom::kRepeatable;
    }
  }

  Atom Group(int depth) {
    ++at_;
    if (Peek() == '?') {
      if (Peek(1) != ':' && Peek(1) != '=' && Peek(1) != '!') {
        Fail("of the groups that begin with (? only (?:, (?= and (?! are taken");
        return Atom::kNone;
      }
      at_ += 2;
    }
    const int choices = choices_;
    Alternatives(depth + 1);
    if (wrong_ == nullptr && Peek() != ')') Fail("a ( is not closed");
    ++at_;
    return choices_ > choices ? Atom::kAmbiguous : Atom::kRepeatable;
  }

  // Hexadecimal digits behind \x or \u.
  bool Digits(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!IsHex(Peek())) {
        Fail("a number behind \\x or \\u is too short");
        return false;
      }
      ++at_;
    }
    return true;
  }

  Atom Escape() {
    ++at_;
    if (at_ >= pattern_.size()) {
      Fail("it ends with a \\");
      return Atom::kNone;
    }
    const char c = pattern_[at_++];
    if (Holds(kAnchorEscapes, c)) return Atom::kAnchor;
    if (c == 'x' || c == 'u') {
      Digits(c == 'x' ? 2 : 4);
    } else if ((IsLetter(c) && !Holds(kClassEscapes, c) && !Holds(kCharacterEscapes, c)) ||
               IsDigit(c) || static_cast<unsigned char>(c) >= 0x80) {
      Fail("an escape that is not taken");
    }
    return Atom::kRepeatable;
  }

  // One member of a class; its value where it can begin or end a range.
  std::optional<uint32_t> Member() {
    if (Peek() == '\\') {
      ++at_;
      const char c = Peek();
      if (at_ >= pattern_.size()) {
        Fail("it ends with a \\");
        return {};
      }
      ++at_;
      if (Holds(kClassEscapes, c)) return {};
      if (c == 'x' || c == 'u') {
        const size_t from = at_;
        if (!Digits(c == 'x' ? 2 : 4)) return {};
        uint32_t value = 0;
        for (size_t i = from; i < at_; ++i) {
          const char d = pattern_[i];
          value = value * 16 + static_cast<uint32_t>(IsDigit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
        }
        return value;
      }
      constexpr std::string_view kValues = "\n\r\t\f\v\a";
      if (const size_t which = kCharacterEscapes.find(c); which != std::string_view::npos) {
        return static_cast<uint32_t>(kValues[which]);
      }
      if (IsLetter(c) || IsDigit(c) || static_cast<unsigned char>(c) >= 0x80) {
        Fail("an escape that is not taken");
      }
      return static_cast<uint32_t>(c);
    }
    const auto lead = static_cast<unsigned char>(Peek());
    ++at_;
    if (lead < 0x80) return lead;
    uint32_t value = lead & (lead >= 0xf0 ? 0x07u : lead >= 0xe0 ? 0x0fu : 0x1fu);
    while (at_ < pattern_.size() && (static_cast<unsigned char>(Peek()) & 0xc0) == 0x80) {
      value = value << 6 | (static_cast<unsigned char>(pattern_[at_++]) & 0x3fu);
    }
    return value;
  }

  void Class() {
    ++at_;
    if (Peek() == '^') ++at_;
    for (bool first = true; !Done(); first = false) {
      if (Peek() == ']' && !first) {
        ++at_;
        return;
      }
      const std::optional<uint32_t> low = Member();
      if (Peek() != '-' || Peek(1) == ']' || at_ + 1 >= pattern_.size()) continue;
      ++at_;
      const std::optional<uint32_t> high = Member();
      if (!low || !high || *high < *low) return Fail("a range that has no order");
    }
    Fail("a [ is not closed");
  }

  // A number of at most kMaxRepeats; nothing where there is no digit.
  std::optional<int> Number() {
    if (!IsDigit(Peek())) return {};
    int value = 0;
    while (IsDigit(Peek())) {
      value = value * 10 + (Peek() - '0');
      if (value > kMaxRepeats) Fail("a count above 1000");
      if (wrong_ != nullptr) return {};
      ++at_;
    }
    return value;
  }

  void Repeats(Atom atom) {
    const char c = Peek();
    bool varies = true, several = c != '?';
    if (c == '{') {
      ++at_;
      const std::optional<int> low = Number();
      std::optional<int> high = low;
      bool comma = false;
      if (Peek() == ',') {
        comma = true;
        ++at_;
        high = Number();
      }
      if (wrong_ != nullptr) return;
      if (Peek() != '}' || (!low && !(comma && high))) return Fail("a { that is no count");
      if (low && high && *high < *low) return Fail("a count that has no order");
      if (high && *high == 0) return Fail("a count of 0");
      varies = low != high;
      several = !high || *high > 1;
      ++at_;
    } else if (at_ < pattern_.size() && (c == '*' || c == '+' || c == '?')) {
      ++at_;
    } else {
      return;
    }
    if (atom == Atom::kAmbiguous && several) {
      return Fail("a group is repeated whose own repeats or alternatives match in several ways");
    }
    if (atom != Atom::kRepeatable && atom != Atom::kAmbiguous) {
      return Fail("there is nothing to repeat");
    }
    choices_ += varies ? 1 : 0;
    if (Peek() == '?') ++at_;
    const char next = Peek();
    if (at_ < pattern_.size() && (next == '*' || next == '+' || next == '?' || next == '{')) {
      Fail("a repeat is repeated");
    }
  }

  std::string_view pattern_;
  size_t at_ = 0;
  int choices_ = 0;  // repeats without a fixed count, and alternatives that begin alike
  const char* wrong_ = nullptr;
};

}  // namespace

Status CheckPythonRegex(std::string_view pattern, std::string_view field) {
  Checker checker(pattern);
  const char* wrong = checker.Check();
  if (wrong == nullptr) return OkStatus();
  return InvalidArgument(
      field, fmt::format("{}: `{:.100}`, at byte {}: {}", field, pattern, checker.at(), wrong));
}

}  // namespace portico::sglang
