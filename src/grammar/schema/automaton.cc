#include "grammar/schema/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text/utf8.h"

namespace portico::grammar {
namespace {

// The last code points of one, two, three and four bytes.
constexpr std::array<char32_t, 4> kWidths{0x7F, 0x7FF, 0xFFFF, 0x10FFFF};

std::string RegexChar(char32_t c) {
  const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  if (plain || c == ' ') return std::string(1, static_cast<char>(c));
  return fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(c));
}

Automaton OfText(std::string_view utf8) {
  Automaton made;
  made.regex = "(";
  made.states = static_cast<int64_t>(utf8.size());
  while (!utf8.empty()) {
    const size_t length = std::max<size_t>(Utf8SequenceLength(utf8), 1);
    made.regex += RegexChar(Utf8Decode(utf8, length));
    utf8.remove_prefix(length);
  }
  made.regex += ')';
  return made;
}

// Of characters of different numbers of bytes the library would take overlong forms as well.
Automaton OfClass(const std::vector<std::pair<char32_t, char32_t>>& ranges) {
  Automaton made;
  made.regex = "(";
  char32_t first = 0;
  for (const char32_t last : kWidths) {
    std::string items;
    for (const auto& [from, to] : ranges) {
      const char32_t low = std::max(from, first);
      const char32_t high = std::min(to, last);
      if (low > high) continue;
      items += RegexChar(low);
      if (high > low) items += '-' + RegexChar(high);
    }
    if (!items.empty()) {
      made.regex += fmt::format("{}[{}]", made.regex.size() > 1 ? "|" : "", items);
      made.states += first == 0 ? 1 : 3;
    }
    first = last + 1;
  }
  made.regex += ')';
  return made;
}

std::optional<Automaton> OfParts(const Expr& expr, int64_t most_states) {
  const bool is_choice = expr.kind == Expr::Kind::kChoice;
  if (expr.parts.empty()) return std::nullopt;
  Automaton made;
  made.nullable = !is_choice;
  made.regex = "(";
  for (const Expr& part : expr.parts) {
    auto one = AutomatonOf(part, most_states - made.states);
    if (!one) return std::nullopt;
    if (is_choice && made.regex.size() > 1) made.regex += '|';
    made.regex += one->regex;
    made.states += one->states;
    made.nullable = is_choice ? made.nullable || one->nullable : made.nullable && one->nullable;
  }
  made.regex += ')';
  return made;
}

// The core's `x?` skips from the beginning of x to one of its ends, and `x{2,}` goes back to one of them: where x may come back to its
// beginning, or go on behind that end, they match too much, as (a*b)? matches "a".
std::string TimesRegex(const std::string& regex, int64_t min, int64_t max) {
  if (min == 0 && max == 1) return fmt::format("({}{{0,1}})", regex);
  if (max < 0 && min > 1) return fmt::format("({0}{{{1},{1}}}{0}*)", regex, min);
  return fmt::format("({}{})", regex, Quantifier(min, max));
}

}  // namespace

std::optional<Automaton> WholeRepeat(const Expr& repeat) {
  if (auto all = AutomatonOf(repeat, kGroupStates)) return all;
  // As ([a-z]{1,9} ){10}: as a rule that is repeated, each mask took milliseconds.
  if (!AutomatonOf(repeat.parts[0], kGroupStates / 2)) return std::nullopt;
  return AutomatonOf(repeat, 2 * kGroupStates);
}

std::string Quantifier(int64_t min, int64_t max) {
  if (min == 0 && max == 1) return "?";
  if (min == 0 && max < 0) return "*";
  if (min == 1 && max < 0) return "+";
  if (max < 0) return fmt::format("{{{},}}", min);
  return fmt::format("{{{},{}}}", min, max);
}

std::optional<Automaton> AutomatonOf(const Expr& expr, int64_t most_states) {
  std::optional<Automaton> made;
  switch (expr.kind) {
    case Expr::Kind::kText:
      made = OfText(expr.text);
      break;
    case Expr::Kind::kClass:
      made = OfClass(expr.ranges);
      break;
    case Expr::Kind::kSequence:
    case Expr::Kind::kChoice:
      made = OfParts(expr, most_states);
      break;
    case Expr::Kind::kRepeat: {
      const bool some_and_more = expr.max < 0 && expr.min > 1;
      const int64_t times =
          some_and_more ? expr.min + 1 : std::max({int64_t{1}, expr.min, expr.max});
      made = AutomatonOf(expr.parts[0], most_states / times);
      if (!made) return std::nullopt;
      made->regex = TimesRegex(made->regex, expr.min, expr.max);
      made->states *= times;
      made->nullable = made->nullable || expr.min == 0;
      break;
    }
    case Expr::Kind::kRule:
    case Expr::Kind::kJsonChars:
      return std::nullopt;
  }
  if (made && made->states > most_states) return std::nullopt;
  return made;
}

}  // namespace portico::grammar
