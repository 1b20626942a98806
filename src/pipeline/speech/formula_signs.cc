#include "pipeline/speech/formula_signs.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"

namespace portico::pipeline {
namespace {

constexpr size_t kLongestFormula = 64;  // bytes that are looked at on either side of a sign

bool IsAlpha(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }
bool IsDecimal(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Of the bytes at the end of `text`, or with `forward` at its begin, those of a formula: digits, letters that stand
// alone, signs and blanks. How many they are up to '='; npos if there is none.
size_t FindEquals(std::string_view text, bool forward) {
  constexpr std::string_view kSigns = "+-*/^(). ";
  size_t letters = 0;
  for (size_t i = 0; i < std::min(text.size(), kLongestFormula); ++i) {
    const char c = forward ? text[i] : text[text.size() - 1 - i];
    if (c == '=') return i;
    letters = IsAlpha(c) ? letters + 1 : 0;
    if (letters > 1) return std::string_view::npos;
    if (letters == 0 && !IsDecimal(c) && kSigns.find(c) == std::string_view::npos) {
      return std::string_view::npos;
    }
  }
  return std::string_view::npos;
}

// "x-5": a variable that stands alone, and a number.
bool IsVariableMinusNumber(std::string_view text, size_t at) {
  constexpr std::string_view kVariables = "nxyz";
  if (at == 0 || kVariables.find(text[at - 1]) == std::string_view::npos) return false;
  if (at > 1 && text[at - 2] != ' ' && text[at - 2] != '(') return false;
  size_t end = at + 1;
  while (end < text.size() && IsDecimal(text[end])) ++end;
  return end > at + 1 && (end == text.size() || (!IsAlpha(text[end]) && text[end] != '-'));
}

struct RateUnit {
  std::string_view unit;
  std::string_view words;
};
constexpr RateUnit kTimes[] = {{"h", "per hour"},     {"hr", "per hour"},
                               {"s", "per second"},   {"sec", "per second"},
                               {"min", "per minute"}, {"ms", "per millisecond"}};
constexpr RateUnit kMeasures[] = {{"kg", "per kilogram"},  {"l", "per liter"}, {"L", "per liter"},
                                  {"km", "per kilometer"}, {"m", "per meter"}, {"mol", "per mole"}};
// Those that are rates of time without a number before them, too.
constexpr std::string_view kMeasured[] = {"km",   "m",  "cm", "mm",  "mi", "ft", "kg",
                                          "g",    "mg", "kB", "KB",  "MB", "GB", "Mbit",
                                          "Gbit", "Mb", "Gb", "rad", "l",  "L"};

template <typename Table>
const RateUnit* FindUnit(const Table& table, std::string_view unit) {
  const auto* found = std::find_if(std::begin(table), std::end(table),
                                   [unit](const RateUnit& one) { return one.unit == unit; });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace

bool Subtracts(std::string_view text, size_t at) {
  if (at == 0 || at + 1 >= text.size()) return false;
  const char left = text[at - 1];
  const char right = text[at + 1];
  const bool between = (IsDecimal(left) || IsAlpha(left) || left == ')') &&
                       (IsDecimal(right) || IsAlpha(right) || right == '(');
  if (!between) return false;
  if (IsVariableMinusNumber(text, at)) return true;
  if (!IsDecimal(left) && !IsDecimal(right)) return false;
  // What is on this side of the '=' is a formula, and so is what is beside it on the other.
  const std::string_view before = text.substr(0, at);
  const std::string_view behind = text.substr(at + 1);
  const size_t ahead = FindEquals(behind, /*forward=*/true);
  if (ahead != std::string_view::npos) {
    size_t other = ahead + 1;
    while (other < behind.size() && behind[other] == ' ') ++other;
    return other == behind.size() || !IsAlpha(behind[other]) || other + 1 == behind.size() ||
           !IsAlpha(behind[other + 1]);
  }
  const size_t back = FindEquals(before, /*forward=*/false);
  if (back == std::string_view::npos) return false;
  size_t other = before.size() - 1 - back;  // of the '='
  while (other > 0 && before[other - 1] == ' ') --other;
  return other > 0 && (IsDecimal(before[other - 1]) || before[other - 1] == ')' ||
                       (IsAlpha(before[other - 1]) && (other == 1 || !IsAlpha(before[other - 2]))));
}

SpokenRate RateOf(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && IsAlpha(text[end])) ++end;
  const std::string_view unit = text.substr(at + 1, end - at - 1);
  if (unit.empty() || (end < text.size() && (IsDecimal(text[end]) || text[end] == '/'))) return {};
  size_t begin = at;
  while (begin > 0 && at - begin <= kLongestFormula && IsAlpha(text[begin - 1])) --begin;
  const std::string_view measured = text.substr(begin, at - begin);
  size_t number = begin;
  if (!measured.empty() && number > 0 && text[number - 1] == ' ') --number;
  const bool counted = number > 0 && IsDecimal(text[number - 1]);
  const RateUnit* found = FindUnit(kTimes, unit);
  if (found != nullptr) {
    const bool known =
        std::find(std::begin(kMeasured), std::end(kMeasured), measured) != std::end(kMeasured);
    if (!counted && !known) return {};
  } else {
    found = FindUnit(kMeasures, unit);
    if (found == nullptr || !counted || measured.empty()) return {};
  }
  return {found->words, end - at};
}

}  // namespace portico::pipeline
