// Numbers between bounds as grammars. Bounded numbers are written without an exponent, so that digits decide.
#pragma once

#include <optional>
#include <string>

#include "grammar/schema/expr.h"
#include "text/json.h"

namespace portico::grammar {

// A decimal number of any size, without leading zeros in front or trailing ones behind the point; "0" for nothing in front.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction;

  // nullopt: it has more than a few hundred digits.
  static std::optional<Decimal> Of(const Json& number);
  bool is_zero() const { return whole == "0" && fraction.empty(); }
  // -1, 0 or 1.
  static int Compare(const Decimal& a, const Decimal& b);
};

struct Bound {
  Decimal value;
  bool exclusive = false;
};

struct NumberBounds {
  std::optional<Bound> low;
  std::optional<Bound> high;
  bool any() const { return low || high; }
  // Keeps the narrower one.
  void AtLeast(Bound bound);
  void AtMost(Bound bound);
};

// Never() where no number lies between them.
Expr NumberInRange(const NumberBounds& bounds);
Expr IntegerInRange(const NumberBounds& bounds);

// The integers between them, if both are given and lie within int64; first > last: none.
std::optional<std::pair<int64_t, int64_t>> IntegerLimits(const NumberBounds& bounds);

}  // namespace portico::grammar
