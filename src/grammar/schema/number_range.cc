#include "grammar/schema/number_range.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace portico::grammar {
namespace {

constexpr int kMaxDigits = 400;

Expr Digit(char from, char to) {
  if (from > to) return Expr::Never();
  return Expr::Class({{static_cast<char32_t>(from), static_cast<char32_t>(to)}});
}

Expr AnyDigits(int64_t min, int64_t max) { return Expr::Repeat(Digit('0', '9'), min, max); }

int CompareWhole(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  const int order = a.compare(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

std::string Plus(std::string whole, int step) {  // step: 1 or -1, the result not below 0
  for (size_t i = whole.size(); i-- > 0;) {
    if (step > 0 ? whole[i] != '9' : whole[i] != '0') {
      whole[i] = static_cast<char>(whole[i] + step);
      break;
    }
    whole[i] = step > 0 ? '0' : '9';
    if (i == 0 && step > 0) whole.insert(0, "1");
  }
  while (whole.size() > 1 && whole[0] == '0') whole.erase(0, 1);
  return whole;
}

// What stands behind `i` digits of numbers of one length: those from low to high, where it is still equal to them.
Expr SameLength(const std::string& low, const std::string& high, size_t i, bool at_low,
                bool at_high) {
  const size_t left = low.size() - i;
  if (left == 0) return Expr::Empty();
  if (!at_low && !at_high) return AnyDigits(static_cast<int64_t>(left), static_cast<int64_t>(left));
  const char from = at_low ? low[i] : '0';
  const char to = at_high ? high[i] : '9';
  if (from == to) {
    return Expr::Sequence({Digit(from, to), SameLength(low, high, i + 1, at_low, at_high)});
  }
  std::vector<Expr> ways;
  char first = from;
  char last = to;
  if (at_low) {
    ways.push_back(Expr::Sequence({Digit(from, from), SameLength(low, high, i + 1, true, false)}));
    ++first;
  }
  if (at_high) --last;
  if (first <= last) {
    ways.push_back(
        Expr::Sequence({Digit(first, last), SameLength(low, high, i + 1, false, false)}));
  }
  if (at_high) {
    ways.push_back(Expr::Sequence({Digit(to, to), SameLength(low, high, i + 1, false, true)}));
  }
  return Expr::Choice(std::move(ways));
}

// Integers of no sign from low to high, without leading zeros.
Expr WholeBetween(const std::string& low, const std::optional<std::string>& high) {
  std::vector<Expr> ways;
  if (high && CompareWhole(low, *high) > 0) return Expr::Never();
  const size_t most = high ? high->size() : low.size();
  for (size_t length = low.size(); length <= most; ++length) {
    std::string from = length == 1 ? "0" : "1" + std::string(length - 1, '0');
    std::string to(length, '9');
    if (length == low.size()) from = low;
    if (high && length == most) to = *high;
    ways.push_back(SameLength(from, to, 0, true, true));
  }
  if (!high) {
    ways.push_back(
        Expr::Sequence({Digit('1', '9'), AnyDigits(static_cast<int64_t>(low.size()), -1)}));
  }
  return Expr::Choice(std::move(ways));
}

// Digits behind the point.
struct FractionBounds {
  const Bound* low;   // or null
  const Bound* high;  // or null

  Expr Tail(size_t i, bool at_low, bool at_high) const {
    std::vector<Expr> ways;
    const std::string& low_digits = at_low ? low->value.fraction : kNone;
    const std::string& high_digits = at_high ? high->value.fraction : kNone;
    const bool low_over = i >= low_digits.size();
    const bool high_over = i >= high_digits.size();
    const Expr zeros = Expr::Repeat(Digit('0', '0'), i == 0 ? 1 : 0, -1);
    if (!at_low && !at_high) return AnyDigits(i == 0 ? 1 : 0, -1);
    if (at_low && at_high && low_over && high_over) {
      return low->exclusive || high->exclusive ? Expr::Never() : zeros;
    }
    if (at_high && high_over && !at_low) return high->exclusive ? Expr::Never() : zeros;
    if (at_low && low_over && !at_high) {
      if (!low->exclusive) return AnyDigits(i == 0 ? 1 : 0, -1);
      return Expr::Sequence(
          {Expr::Repeat(Digit('0', '0'), 0, -1), Digit('1', '9'), AnyDigits(0, -1)});
    }
    const bool may_stop = i > 0 && (!at_low || (low_over && !low->exclusive)) &&
                          (!at_high || !high_over || !high->exclusive);
    if (may_stop) ways.push_back(Expr::Empty());
    const char from = at_low && !low_over ? low_digits[i] : '0';
    const char to = at_high ? (high_over ? '0' : high_digits[i]) : '9';
    for (char digit = from; digit <= to;) {
      const bool still_low = at_low && digit == from;
      const bool still_high = at_high && digit == to;
      char last = digit;
      if (!still_low && !still_high) last = at_high ? static_cast<char>(to - 1) : to;
      ways.push_back(Expr::Sequence({Digit(digit, last), Tail(i + 1, still_low, still_high)}));
      digit = static_cast<char>(last + 1);
    }
    return Expr::Choice(std::move(ways));
  }

  // With the point; no fraction is one of 0.
  Expr All() const {
    std::vector<Expr> ways;
    const bool zero_low = low == nullptr || (low->value.fraction.empty() && !low->exclusive);
    const bool zero_high = high == nullptr || !high->value.fraction.empty() || !high->exclusive;
    if (zero_low && zero_high) ways.push_back(Expr::Empty());
    Expr tail = Tail(0, low != nullptr, high != nullptr);
    ways.push_back(Expr::Sequence({Expr::Text("."), std::move(tail)}));
    return Expr::Choice(std::move(ways));
  }

  static inline const std::string kNone;
};

using OptionalBound = std::optional<Bound>;

// Numbers of no sign. Integers have bounds without fractions that are not exclusive.
Expr Magnitudes(const Bound& low, const OptionalBound& high, bool integers) {
  const std::string& first = low.value.whole;
  if (integers) {
    return WholeBetween(first, high ? std::optional(high->value.whole) : std::nullopt);
  }
  std::vector<Expr> ways;
  const FractionBounds any{nullptr, nullptr};
  if (high && CompareWhole(first, high->value.whole) > 0) return Expr::Never();
  if (high && first == high->value.whole) {
    return Expr::Sequence({Expr::Text(first), FractionBounds{&low, &*high}.All()});
  }
  ways.push_back(Expr::Sequence({Expr::Text(first), FractionBounds{&low, nullptr}.All()}));
  std::optional<std::string> last;
  if (high) last = Plus(high->value.whole, -1);
  ways.push_back(Expr::Sequence({WholeBetween(Plus(first, 1), last), any.All()}));
  if (high) {
    ways.push_back(
        Expr::Sequence({Expr::Text(high->value.whole), FractionBounds{nullptr, &*high}.All()}));
  }
  return Expr::Choice(std::move(ways));
}

Bound Negated(Bound bound) {
  bound.value.negative = !bound.value.negative && !bound.value.is_zero();
  return bound;
}

// To the next integer inside the bounds.
Bound RoundedIn(Bound bound, bool is_low) {
  const bool up = is_low != bound.value.negative;  // away from 0
  const bool exact = bound.value.fraction.empty();
  bound.value.fraction.clear();
  if (up && (!exact || bound.exclusive)) bound.value.whole = Plus(bound.value.whole, 1);
  if (!up && exact && bound.exclusive) {
    if (bound.value.whole == "0") {  // below 0: -1; above it: 1
      bound.value.whole = "1";
      bound.value.negative = !is_low;
    } else {
      bound.value.whole = Plus(bound.value.whole, -1);
    }
  }
  if (bound.value.is_zero()) bound.value.negative = false;
  bound.exclusive = false;
  return bound;
}

Expr InRange(const NumberBounds& bounds, bool integers) {
  OptionalBound low = bounds.low;
  OptionalBound high = bounds.high;
  if (integers && low) low = RoundedIn(*low, true);
  if (integers && high) high = RoundedIn(*high, false);
  if (low && high && Decimal::Compare(low->value, high->value) > 0) return Expr::Never();
  std::vector<Expr> ways;
  if (!low ||
      low->value.negative) {  // below 0: as far as `low`, and from `high` if that is below 0
    Bound nearest{Decimal{}, high && high->value.is_zero() && high->exclusive};
    if (high && high->value.negative) nearest = Negated(*high);
    if (integers && nearest.value.is_zero()) nearest.value.whole = "1";
    OptionalBound farthest;
    if (low) farthest = Negated(*low);
    ways.push_back(Expr::Sequence({Expr::Text("-"), Magnitudes(nearest, farthest, integers)}));
  }
  if (!high || !high->value.negative) {
    const Bound from = low && !low->value.negative ? *low : Bound{};
    ways.push_back(Magnitudes(from, high, integers));
  }
  return Expr::Choice(std::move(ways));
}

}  // namespace

std::optional<Decimal> Decimal::Of(const Json& number) {
  std::string text = number.is_big_int() ? number.as_big_int().text() : number.Dump();
  Decimal result;
  std::string_view rest = text;
  if (rest.starts_with('-')) {
    result.negative = true;
    rest.remove_prefix(1);
  }
  int exponent = 0;
  const size_t e = rest.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view power = rest.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    std::from_chars(power.data(), power.data() + power.size(), exponent);
    rest = rest.substr(0, e);
  }
  const size_t point = rest.find('.');
  std::string digits(rest.substr(0, point));
  auto whole = static_cast<int64_t>(digits.size());
  if (point != std::string_view::npos) digits += rest.substr(point + 1);
  whole += exponent;
  if (whole > kMaxDigits || whole < -kMaxDigits || digits.size() > kMaxDigits) return std::nullopt;
  if (whole < 0) {
    digits.insert(0, static_cast<size_t>(-whole), '0');
    whole = 0;
  }
  if (static_cast<size_t>(whole) > digits.size()) digits.resize(static_cast<size_t>(whole), '0');
  result.whole = digits.substr(0, static_cast<size_t>(whole));
  result.fraction = digits.substr(static_cast<size_t>(whole));
  result.whole.erase(0, std::min(result.whole.find_first_not_of('0'), result.whole.size()));
  if (result.whole.empty()) result.whole = "0";
  while (result.fraction.ends_with('0')) result.fraction.pop_back();
  if (result.is_zero()) result.negative = false;
  return result;
}

int Decimal::Compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int order = CompareWhole(a.whole, b.whole);
  if (order == 0) {
    const int fractions = a.fraction.compare(b.fraction);
    order = fractions < 0 ? -1 : fractions > 0 ? 1 : 0;
  }
  return a.negative ? -order : order;
}

void NumberBounds::AtLeast(Bound bound) {
  const int order = low ? Decimal::Compare(bound.value, low->value) : 1;
  if (order > 0 || (order == 0 && bound.exclusive)) low = std::move(bound);
}

void NumberBounds::AtMost(Bound bound) {
  const int order = high ? Decimal::Compare(bound.value, high->value) : -1;
  if (order < 0 || (order == 0 && bound.exclusive)) high = std::move(bound);
}

Expr NumberInRange(const NumberBounds& bounds) { return InRange(bounds, /*integers=*/false); }
Expr IntegerInRange(const NumberBounds& bounds) { return InRange(bounds, /*integers=*/true); }

std::optional<std::pair<int64_t, int64_t>> IntegerLimits(const NumberBounds& bounds) {
  if (!bounds.low || !bounds.high) return std::nullopt;
  const auto value = [](const Bound& bound) -> std::optional<int64_t> {
    const std::string text = (bound.value.negative ? "-" : "") + bound.value.whole;
    int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc()) return std::nullopt;
    return number;
  };
  const auto first = value(RoundedIn(*bounds.low, true));
  const auto last = value(RoundedIn(*bounds.high, false));
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace portico::grammar
