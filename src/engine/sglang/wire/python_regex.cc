#include "engine/sglang/wire/python_regex.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "engine/sglang/wire/regex_shape.h"

namespace portico::sglang {
namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxRepeats = 1000;
// A search over n characters takes at most some n³ steps: n places to begin, and two repeats that share text.
constexpr int kMaxDegree = 2;
// Each way through options and alternatives may take as many steps: the fewer ways, the more repeats that share text.
constexpr double kMaxWays[kMaxDegree + 1] = {1024, 64, 8};
constexpr std::string_view kClassEscapes = "dDwWsS";
constexpr std::string_view kAnchorEscapes = "bBAZ";
constexpr std::string_view kCharacterEscapes = "nrtfva";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool Holds(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }

constexpr uint32_t kAsciiEnd = 128;
constexpr size_t kOtherSpace = 128, kOtherDigit = 129, kOtherWord = 130;

// What a character beyond ASCII is, is not looked up: it may be any of them.
void AddRange(uint32_t low, uint32_t high, CharacterSet* set) {
  for (uint32_t c = low; c <= high && c < kAsciiEnd; ++c) set->set(c);
  for (size_t i = kAsciiEnd; high >= kAsciiEnd && i < set->size(); ++i) set->set(i);
}

CharacterSet Just(uint32_t c) {
  CharacterSet set;
  AddRange(c, c, &set);
  return set;
}

CharacterSet ClassOf(char escape) {
  CharacterSet set;
  const auto lower = static_cast<char>(escape | 0x20);
  if (lower == 's') {
    AddRange('\t', '\r', &set);
    AddRange(0x1c, ' ', &set);
    set.set(kOtherSpace);
  } else {
    AddRange('0', '9', &set);
    set.set(kOtherDigit);
  }
  if (lower == 'w') {
    AddRange('a', 'z', &set);
    AddRange('A', 'Z', &set);
    set.set('_').set(kOtherWord);
  }
  return escape == lower ? set : ~set;
}

class Checker {
 public:
  explicit Checker(std::string_view pattern) : pattern_(pattern) {}

  // Null, or why Python might refuse it.
  const char* Check() {
    const RegexShape whole = Alternatives(0);
    if (wrong_ == nullptr && at_ < pattern_.size()) Fail("there is a ) too many");
    const int degree = whole.degree + ahead_degree_;
    if (degree > kMaxDegree) {
      Fail("more than two repeats without an end can share the same text");
    } else if (!whole.deterministic && whole.ways > kMaxWays[degree]) {
      Fail("its options and alternatives match the same text in too many ways");
    }
    return wrong_;
  }
  size_t at() const { return at_; }

 private:
  struct Atom {
    RegexShape shape;
    bool repeatable = false;
  };

  bool Done() const { return wrong_ != nullptr || at_ >= pattern_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  void Fail(const char* why) {
    if (wrong_ == nullptr) wrong_ = why;
  }

  // Up to the end or the ) of the group that it is in.
  RegexShape Alternatives(int depth) {
    RegexShape all;
    if (depth > kMaxDepth) {
      Fail("groups are nested too deep");
      return all;
    }
    RegexShape one;
    bool several = false;
    const auto add = [&] {
      if (several) {
        AddAlternative(one, &all);
      } else {
        all = one;
      }
      one = RegexShape();
    };
    while (!Done() && Peek() != ')') {
      if (Peek() == '|') {
        add();
        several = true;
        ++at_;
        continue;
      }
      Atom atom = OneAtom(depth);
      if (wrong_ == nullptr) Repeats(&atom);
      Append(atom.shape, &one);
    }
    add();
    return all;
  }

  Atom OneAtom(int depth) {
    const char c = Peek();
    switch (c) {
      case '(':
        return Group(depth);
      case '[':
        return {OneOf(Class()), true};
      case '\\':
        return Escape();
      case '^':
      case '$':
        ++at_;
        return {};
      case '*':
      case '+':
      case '?':
        Fail("there is nothing to repeat");
        return {};
      case '{':
        // A literal to Python where it is no count, which is left to it.
        Fail("a { that repeats nothing must be written \\{");
        return {};
      case '.':
        ++at_;
        return {OneOf(~Just('\n')), true};
      default:
        return {OneOf(Just(Letter())), true};
    }
  }

  Atom Group(int depth) {
    ++at_;
    bool ahead = false;
    if (Peek() == '?') {
      if (Peek(1) != ':' && Peek(1) != '=' && Peek(1) != '!') {
        Fail("of the groups that begin with (? only (?:, (?= and (?! are taken");
        return {};
      }
      ahead = Peek(1) != ':';
      at_ += 2;
    }
    RegexShape shape = Alternatives(depth + 1);
    if (wrong_ == nullptr && Peek() != ')') Fail("a ( is not closed");
    ++at_;
    if (!ahead) return {shape, true};
    // What it finds is not gone back to; what it searches is searched once more wherever it stands.
    ahead_degree_ += shape.degree;
    RegexShape nothing;
    nothing.ways = shape.deterministic ? 1 : shape.ways;
    nothing.deterministic = shape.deterministic;
    return {nothing, true};
  }

  // A character that stands for itself.
  uint32_t Letter() {
    const auto lead = static_cast<unsigned char>(Peek());
    ++at_;
    if (lead < 0x80) return lead;
    uint32_t value = lead & (lead >= 0xf0 ? 0x07u : lead >= 0xe0 ? 0x0fu : 0x1fu);
    while (at_ < pattern_.size() && (static_cast<unsigned char>(Peek()) & 0xc0) == 0x80) {
      value = value << 6 | (static_cast<unsigned char>(pattern_[at_++]) & 0x3fu);
    }
    return value;
  }

  // The hexadecimal digits behind \x or \u; nothing: there are too few.
  std::optional<uint32_t> Digits(size_t count) {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const char c = Peek();
      if (!IsHex(c)) {
        Fail("a number behind \\x or \\u is too short");
        return {};
      }
      value = value * 16 + static_cast<uint32_t>(IsDigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
      ++at_;
    }
    return value;
  }

  // The character behind a \ that stands for one: `c`, which has been read.
  std::optional<uint32_t> Escaped(char c) {
    if (c == 'x' || c == 'u') return Digits(c == 'x' ? 2 : 4);
    constexpr std::string_view kValues = "\n\r\t\f\v\a";
    if (const size_t which = kCharacterEscapes.find(c); which != std::string_view::npos) {
      return static_cast<uint32_t>(kValues[which]);
    }
    if (IsLetter(c) || IsDigit(c) || static_cast<unsigned char>(c) >= 0x80) {
      Fail("an escape that is not taken");
      return {};
    }
    return static_cast<uint32_t>(c);
  }

  Atom Escape() {
    ++at_;
    if (at_ >= pattern_.size()) {
      Fail("it ends with a \\");
      return {};
    }
    const char c = pattern_[at_++];
    if (Holds(kAnchorEscapes, c)) return {};
    if (Holds(kClassEscapes, c)) return {OneOf(ClassOf(c)), true};
    const std::optional<uint32_t> value = Escaped(c);
    return {value ? OneOf(Just(*value)) : RegexShape(), true};
  }

  // One member of a class, which is added to it; its value where it can begin or end a range.
  std::optional<uint32_t> Member(CharacterSet* set) {
    if (Peek() != '\\') {
      const uint32_t value = Letter();
      AddRange(value, value, set);
      return value;
    }
    ++at_;
    if (at_ >= pattern_.size()) {
      Fail("it ends with a \\");
      return {};
    }
    const char c = pattern_[at_++];
    if (Holds(kClassEscapes, c)) {
      *set |= ClassOf(c);
      return {};
    }
    const std::optional<uint32_t> value = Escaped(c);
    if (value) AddRange(*value, *value, set);
    return value;
  }

  CharacterSet Class() {
    ++at_;
    CharacterSet set, unsure;  // `unsure`: some of these are in it
    const bool negated = Peek() == '^';
    if (negated) ++at_;
    for (bool first = true; !Done(); first = false) {
      if (Peek() == ']' && !first) {
        ++at_;
        return negated ? ~set | unsure : set;
      }
      const std::optional<uint32_t> low = Member(&set);
      if (low >= kAsciiEnd) unsure |= Just(*low);
      if (Peek() != '-' || Peek(1) == ']' || at_ + 1 >= pattern_.size()) continue;
      ++at_;
      const std::optional<uint32_t> high = Member(&set);
      if (!low || !high || *high < *low) {
        Fail("a range that has no order");
        return set;
      }
      AddRange(*low, *high, &set);
      if (*high >= kAsciiEnd) unsure |= Just(*high);
    }
    Fail("a [ is not closed");
    return set;
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

  void Repeats(Atom* atom) {
    const char c = Peek();
    bool optional = c != '+', several = c != '?';
    int choices = c == '?' ? 2 : 0;
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
      optional = low.value_or(0) == 0;
      several = !high || *high > 1;
      choices = high ? *high - low.value_or(0) + 1 : 0;
      ++at_;
    } else if (at_ < pattern_.size() && (c == '*' || c == '+' || c == '?')) {
      ++at_;
    } else {
      return;
    }
    if (several && !RepeatsClearly(atom->shape)) {
      return Fail("a group is repeated whose own repeats or alternatives match in several ways");
    }
    if (!atom->repeatable) return Fail("there is nothing to repeat");
    Repeat(optional, several, choices, &atom->shape);
    if (Peek() == '?') ++at_;
    const char next = Peek();
    if (at_ < pattern_.size() && (next == '*' || next == '+' || next == '?' || next == '{')) {
      Fail("a repeat is repeated");
    }
  }

  std::string_view pattern_;
  size_t at_ = 0;
  int ahead_degree_ = 0;  // of what (?= and (?! search
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
