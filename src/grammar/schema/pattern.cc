#include "grammar/schema/pattern.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hex_digit.h"
#include "grammar/schema/json_text.h"
#include "grammar/schema/open_ends.h"
#include "text/utf8.h"

namespace portico::grammar {
namespace {

constexpr int kMaxDepth = 64;
// Of one pattern, with repetitions counted as often as they can occur.
constexpr int64_t kMaxStates = 20000;
constexpr int64_t kMaxRepeat = 10000;

const CharRanges kDigits{{'0', '9'}};
const CharRanges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharRanges kSpace{{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                        {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharRanges kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

Status Malformed(std::string text) { return Error(StatusCode::kInvalidArgument, std::move(text)); }
Status Unsupported(std::string text) { return Error(StatusCode::kUnimplemented, std::move(text)); }

// An expression and how many states it takes.
struct Sized {
  Expr expr;
  int64_t states = 0;
};

// Where the pattern's characters stand.
enum class Place {
  kInString,  // in a JSON string, of which the pattern may match a part
  kAlone,     // they are the whole text
};

class Parser {
 public:
  Parser(std::string_view pattern, Place place) : place_(place), rest_(pattern) {}

  StatusOr<Expr> Parse() {
    PORTICO_ASSIGN_OR_RETURN(Sized all, Choices(/*top=*/true, 0));
    if (!rest_.empty()) return Malformed("a ) without its (");
    return std::move(all.expr);
  }

 private:
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  StatusOr<char32_t> Char() {
    const size_t length = Utf8SequenceLength(rest_);
    if (length == 0) return Malformed("it ends too early");
    const char32_t c = Utf8Decode(rest_, length);
    rest_.remove_prefix(length);
    return c;
  }

  // Grammars have no NUL.
  Expr OneOf(CharRanges ranges) const {
    if (place_ == Place::kInString) return JsonChar(ranges);
    if (!ranges.empty() && ranges[0].first == 0) {
      if (ranges[0].second == 0) {
        ranges.erase(ranges.begin());
      } else {
        ranges[0].first = 1;
      }
    }
    Expr one = Expr::Class(ranges);
    one.one_char = true;
    one.chars = std::move(ranges);
    return one;
  }

  StatusOr<Sized> Choices(bool top, int depth) {
    if (depth > kMaxDepth) return Malformed("its groups are nested too deep");
    std::vector<Expr> choices;
    int64_t states = 0;
    bool one_char = true;
    CharRanges chars;
    do {
      PORTICO_ASSIGN_OR_RETURN(Sized one, Sequence(top, depth));
      one_char = one_char && one.expr.one_char;
      chars.insert(chars.end(), one.expr.chars.begin(), one.expr.chars.end());
      choices.push_back(std::move(one.expr));
      states += one.states;
    } while (Take("|"));
    Expr made = Expr::Choice(std::move(choices));
    made.one_char = one_char;
    made.chars = one_char ? Normalized(std::move(chars)) : CharRanges();
    return Sized{std::move(made), states};
  }

  StatusOr<Sized> Sequence(bool top, int depth) {
    std::vector<Expr> parts;
    int64_t states = 0;
    bool from_start = false;
    bool to_end = false;
    while (top && Take("^")) from_start = true;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      if (top && rest_[0] == '$') {
        Take("$");
        to_end = true;
        if (!rest_.empty() && rest_[0] != '|' && rest_[0] != '$') {
          return Unsupported("a $ that is not at the end");
        }
        continue;
      }
      PORTICO_ASSIGN_OR_RETURN(Sized part, Quantified(depth));
      states += part.states;
      if (states > kMaxStates) return Malformed("it is too big");
      parts.push_back(std::move(part.expr));
    }
    parts = WithRunsJoined(std::move(parts));
    const bool searched = top && place_ == Place::kInString;
    if (searched) parts = WithOpenEnds(std::move(parts), from_start, to_end);
    Expr made = Expr::Sequence(std::move(parts));
    made.searched = searched && !from_start && made.kind == Expr::Kind::kSequence;
    return Sized{std::move(made), states + 2};
  }

  StatusOr<Sized> Quantified(int depth) {
    PORTICO_ASSIGN_OR_RETURN(Sized atom, Atom(depth));
    int64_t min = 1;
    int64_t max = 1;
    if (Take("*")) {
      min = 0, max = -1;
    } else if (Take("+")) {
      max = -1;
    } else if (Take("?")) {
      min = 0;
    } else if (!Braces(&min, &max)) {
      // A text to ECMA-262, a repetition to Python.
      if (place_ == Place::kAlone && rest_.starts_with("{,")) {
        return Unsupported("a repetition without its minimum");
      }
      return atom;
    }
    Take("?");  // matches the same texts, in another order
    if (!rest_.empty() && (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?')) {
      return Malformed("two quantifiers in a row");
    }
    if (max >= 0 && min > max) return Malformed("a repetition whose bounds are out of order");
    if (min > kMaxRepeat || max > kMaxRepeat) return Malformed("a repetition that is too long");
    atom.states *= std::max<int64_t>(1, std::max(min, max));
    if (atom.states > kMaxStates) return Malformed("it is too big");
    atom.expr = Expr::Repeat(std::move(atom.expr), min, max);
    return atom;
  }

  // {m}, {m,} and {m,n}; anything else in braces is text.
  bool Braces(int64_t* min, int64_t* max) {
    std::string_view text = rest_;
    const auto number = [&text]() -> std::optional<int64_t> {
      size_t digits = 0;
      int64_t value = 0;
      while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
        value = std::min<int64_t>(value * 10 + (text[digits++] - '0'), kMaxRepeat + 1);
      }
      text.remove_prefix(digits);
      if (digits == 0) return std::nullopt;
      return value;
    };
    if (text.empty() || text[0] != '{') return false;
    text.remove_prefix(1);
    const auto low = number();
    if (!low) return false;
    int64_t high = *low;
    if (!text.empty() && text[0] == ',') {
      text.remove_prefix(1);
      high = number().value_or(-1);
    }
    if (text.empty() || text[0] != '}') return false;
    rest_ = text.substr(1);
    *min = *low;
    *max = high;
    return true;
  }

  StatusOr<Sized> Atom(int depth) {
    if (Take("(")) return Group(depth);
    if (Take("[")) {
      PORTICO_ASSIGN_OR_RETURN(CharRanges ranges, Class());
      return Sized{OneOf(ranges), 1};
    }
    if (Take(".")) return Sized{OneOf(Complement(kLineEnds)), 1};
    if (rest_[0] == '^' || rest_[0] == '$') {
      return Unsupported(fmt::format("a {} inside the pattern", rest_[0]));
    }
    if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?') {
      return Malformed("a quantifier with nothing in front of it");
    }
    if (Take("\\")) {
      PORTICO_ASSIGN_OR_RETURN(CharRanges ranges, Escape(/*in_class=*/false));
      return Sized{OneOf(ranges), 1};
    }
    PORTICO_ASSIGN_OR_RETURN(const char32_t c, Char());
    return Sized{OneOf({{c, c}}), 1};
  }

  StatusOr<Sized> Group(int depth) {
    if (Take("?")) {
      if (rest_.starts_with("=") || rest_.starts_with("!") || rest_.starts_with("<=") ||
          rest_.starts_with("<!")) {
        return Unsupported("look-around");
      }
      if (Take("<") || Take("P<")) {
        const size_t end = rest_.find('>');
        if (end == std::string_view::npos) return Malformed("a group's name without its end");
        rest_.remove_prefix(end + 1);
      } else if (!Take(":")) {
        return Unsupported("flags inside the pattern");
      }
    }
    PORTICO_ASSIGN_OR_RETURN(Sized inside, Choices(/*top=*/false, depth + 1));
    if (!Take(")")) return Malformed("a ( without its )");
    return inside;
  }

  // Behind the backslash.
  StatusOr<CharRanges> Escape(bool in_class) {
    PORTICO_ASSIGN_OR_RETURN(const char32_t c, Char());
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return Complement(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return Complement(kWord);
      case 's':
        return kSpace;
      case 'S':
        return Complement(kSpace);
      case 't':
        return One('\t');
      case 'n':
        return One('\n');
      case 'r':
        return One('\r');
      case 'f':
        return One('\f');
      case 'v':
        return One('\v');
      case 'x':
        return Hex(2);
      case 'u':
        return Unicode();
      case 'c': {
        PORTICO_ASSIGN_OR_RETURN(const char32_t letter, Char());
        if ((letter | 0x20) < 'a' || (letter | 0x20) > 'z')
          return Malformed("\\c without a letter");
        return One(letter & 0x1F);
      }
      case 'b':
        if (in_class) return One('\b');
        return Unsupported("\\b");
      case 'B':
        return Unsupported("\\B");
      case 'p':
      case 'P':
        return Unsupported("Unicode properties");
      case '0':
        if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9') return One('\0');
        return Unsupported("octal escapes");
      default:
        break;
    }
    if (c >= '1' && c <= '9') return Unsupported("back references");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      return Malformed(fmt::format("the unknown escape \\{}", static_cast<char>(c)));
    }
    return One(c);
  }

  static CharRanges One(char32_t c) { return {{c, c}}; }

  StatusOr<CharRanges> Unicode() {
    if (!Take("{")) {
      PORTICO_ASSIGN_OR_RETURN(CharRanges first, Hex(4));
      const char32_t high = first[0].first;
      if (high < 0xD800 || high > 0xDFFF) return first;
      if (high > 0xDBFF || !Take("\\u")) return Unsupported("half of a surrogate pair");
      PORTICO_ASSIGN_OR_RETURN(const CharRanges second, Hex(4));
      const char32_t low = second[0].first;
      if (low < 0xDC00 || low > 0xDFFF) return Unsupported("half of a surrogate pair");
      return One(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
    }
    const size_t end = rest_.find('}');
    if (end == std::string_view::npos || end == 0 || end > 6) return Malformed("a wrong \\u{}");
    PORTICO_ASSIGN_OR_RETURN(CharRanges value, Hex(end));
    Take("}");
    if (value[0].first > 0x10FFFF || (value[0].first >= 0xD800 && value[0].first <= 0xDFFF)) {
      return Malformed("a \\u{} that is no character");
    }
    return value;
  }

  StatusOr<CharRanges> Hex(size_t digits) {
    if (rest_.size() < digits) return Malformed("an escape that ends too early");
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const int digit = HexDigit(rest_[i]);
      if (digit < 0) return Malformed("an escape without its digits");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    rest_.remove_prefix(digits);
    return One(value);
  }

  StatusOr<CharRanges> Class() {
    const bool negated = Take("^");
    CharRanges ranges;
    while (!Take("]")) {
      if (rest_.empty()) return Malformed("a [ without its ]");
      if (place_ == Place::kAlone && rest_.starts_with("[:")) return Unsupported("POSIX classes");
      PORTICO_ASSIGN_OR_RETURN(const CharRanges first, ClassItem());
      const bool is_char = first.size() == 1 && first[0].first == first[0].second;
      if (rest_.size() < 2 || rest_[0] != '-' || rest_[1] == ']' || !is_char) {
        ranges.insert(ranges.end(), first.begin(), first.end());
        continue;
      }
      Take("-");
      PORTICO_ASSIGN_OR_RETURN(const CharRanges last, ClassItem());
      if (last.size() != 1 || last[0].first != last[0].second) {
        return Malformed("a range whose end is a class");
      }
      if (last[0].first < first[0].first) return Malformed("a range that is out of order");
      ranges.emplace_back(first[0].first, last[0].first);
    }
    ranges = Normalized(std::move(ranges));
    return negated ? Complement(ranges) : ranges;
  }

  StatusOr<CharRanges> ClassItem() {
    if (Take("\\")) return Escape(/*in_class=*/true);
    PORTICO_ASSIGN_OR_RETURN(const char32_t c, Char());
    return One(c);
  }

  const Place place_;
  std::string_view rest_;
};

}  // namespace

StatusOr<Expr> PatternInside(std::string_view pattern) {
  if (!IsValidUtf8(pattern)) return Malformed("it is not UTF-8");
  PORTICO_ASSIGN_OR_RETURN(Expr parsed, Parser(pattern, Place::kInString).Parse());
  if (!CanBeSearched(parsed)) {
    return Unsupported(
        fmt::format("more than {} characters in a pattern that may begin anywhere: begin it with ^",
                    kMostSearchedChars));
  }
  return parsed;
}

StatusOr<std::string> RegexToEbnf(std::string_view regex, const CharsAhead& ahead) {
  auto parsed = Parser(regex, Place::kAlone).Parse();
  if (parsed.status().code() == StatusCode::kUnimplemented) {
    return Malformed(fmt::format("no grammar has {}", MessageOf(parsed.status())));
  }
  if (!parsed.ok()) return parsed.status();
  RuleSet rules;
  const int32_t root = rules.Add("root");
  rules.Set(root, WithCountedPieces(*std::move(parsed), CountedChars::kCodePoints, ahead, &rules));
  return rules.Print();
}

}  // namespace portico::grammar
