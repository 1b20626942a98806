#include "template/value/bigint.h"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "template/run/failure.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

using Big = boost::multiprecision::cpp_int;

constexpr unsigned kDigitBits = 32;            // of BigInteger's digits
constexpr size_t kMaxBits = 640 * kDigitBits;  // of the magnitude

Big Load(Value v) {
  if (!v.is(Kind::kBigInt)) return v.small_int();
  Big big;
  import_bits(big, v.big->digits, v.big->digits + v.big->size, kDigitBits, /*msv_first=*/false);
  if (v.big->negative) big.backend().negate();
  return big;
}

Value Store(const Big& big, Arena* arena) {
  if (big >= std::numeric_limits<int64_t>::min() && big <= std::numeric_limits<int64_t>::max()) {
    return Value::Int(static_cast<int64_t>(big));
  }
  const Big magnitude = abs(big);
  if (msb(magnitude) >= kMaxBits) LimitReached("the integer is too large");
  std::vector<uint32_t> all;
  export_bits(magnitude, std::back_inserter(all), kDigitBits, /*msv_first=*/false);
  uint32_t* digits = arena->NewArray<uint32_t>(all.size());
  std::copy(all.begin(), all.end(), digits);
  Value v(Kind::kBigInt);
  v.big = arena->New<BigInt>(big < 0, static_cast<uint32_t>(all.size()), digits);
  return v;
}

struct Division {
  Big quotient, remainder;
};

Division DivideFloor(Value av, Value bv) {
  const Big a = Load(av);
  const Big b = Load(bv);
  if (b.is_zero()) Fail("integer division or modulo by zero");
  Division result;
  divide_qr(a, b, result.quotient, result.remainder);
  if (!result.remainder.is_zero() && (a < 0) != (b < 0)) {
    --result.quotient;
    result.remainder += b;
  }
  return result;
}

}  // namespace

Value AddIntegers(Value a, Value b, Arena* arena) {
  int64_t sum;
  if (a.is_small_int() && b.is_small_int() &&
      !__builtin_add_overflow(a.small_int(), b.small_int(), &sum)) {
    return Value::Int(sum);
  }
  return Store(Load(a) + Load(b), arena);
}

Value SubtractIntegers(Value a, Value b, Arena* arena) {
  int64_t difference;
  if (a.is_small_int() && b.is_small_int() &&
      !__builtin_sub_overflow(a.small_int(), b.small_int(), &difference)) {
    return Value::Int(difference);
  }
  return Store(Load(a) - Load(b), arena);
}

Value MultiplyIntegers(Value av, Value bv, Arena* arena) {
  int64_t product;
  if (av.is_small_int() && bv.is_small_int() &&
      !__builtin_mul_overflow(av.small_int(), bv.small_int(), &product)) {
    return Value::Int(product);
  }
  return Store(Load(av) * Load(bv), arena);
}

Value FloorDivideIntegers(Value a, Value b, Arena* arena) {
  if (a.is_small_int() && b.is_small_int()) {
    int64_t x = a.small_int();
    int64_t y = b.small_int();
    if (y != 0 && !(x == INT64_MIN && y == -1)) {
      int64_t quotient = x / y;
      if (x % y != 0 && (x < 0) != (y < 0)) --quotient;
      return Value::Int(quotient);
    }
  }
  return Store(DivideFloor(a, b).quotient, arena);
}

Value RemainderOfIntegers(Value a, Value b, Arena* arena) {
  if (a.is_small_int() && b.is_small_int()) {
    int64_t x = a.small_int();
    int64_t y = b.small_int();
    if (y == -1) return Value::Int(0);
    if (y != 0) {
      int64_t remainder = x % y;
      if (remainder != 0 && (x < 0) != (y < 0)) remainder += y;
      return Value::Int(remainder);
    }
  }
  return Store(DivideFloor(a, b).remainder, arena);
}

Value PowerOfIntegers(Value base, uint64_t exponent, Arena* arena) {
  Value result = Value::Int(1);
  if (base.is_small_int() && base.small_int() >= -1 && base.small_int() <= 1) {
    int64_t b = base.small_int();
    if (exponent == 0 || b == 1) return result;
    return Value::Int(b == 0 ? 0 : exponent % 2 == 0 ? 1 : -1);
  }
  while (exponent != 0) {
    if (exponent & 1) result = MultiplyIntegers(result, base, arena);
    exponent >>= 1;
    if (exponent != 0) base = MultiplyIntegers(base, base, arena);
  }
  return result;
}

Value NegateInteger(Value a, Arena* arena) { return SubtractIntegers(Value::Int(0), a, arena); }

int CompareIntegers(Value av, Value bv) {
  if (av.is_small_int() && bv.is_small_int()) {
    int64_t x = av.small_int();
    int64_t y = bv.small_int();
    return x < y ? -1 : x > y;
  }
  return Load(av).compare(Load(bv));
}

double IntegerToDouble(Value a) {
  if (a.is_small_int()) return static_cast<double>(a.small_int());
  // Through the decimal text: correctly rounded.
  std::string text;
  AppendInteger(a, &text);
  return ParseDouble(text);
}

double DivideIntegers(Value av, Value bv) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (av.is_small_int() && bv.is_small_int()) {
    const int64_t x = av.small_int();
    const int64_t y = bv.small_int();
    if (y == 0) Fail("division by zero");
    if (x >= -kExact && x <= kExact && y >= -kExact && y <= kExact) {
      return static_cast<double>(x) / static_cast<double>(y);
    }
  }
  Big a = Load(av);
  Big b = Load(bv);
  if (b.is_zero()) Fail("division by zero");
  if (a.is_zero()) return 0;
  const bool negative = (a < 0) != (b < 0);
  a = abs(a);
  b = abs(b);
  // A quotient of about 60 bits, or down to the smallest double; a bit for the rest lets it round as the exact one would.
  const int shift = std::min(60 - (static_cast<int>(msb(a)) - static_cast<int>(msb(b))), 1076);
  (shift > 0 ? a : b) <<= static_cast<unsigned>(std::abs(shift));
  Big quotient, remainder;
  divide_qr(a, b, quotient, remainder);
  auto bits = static_cast<uint64_t>(quotient);
  if (!remainder.is_zero()) bits |= 1;
  const double result = std::ldexp(static_cast<double>(bits), -shift);
  if (std::isinf(result)) Fail("integer division result too large for a float");
  return negative ? -result : result;
}

Value IntegerFromDouble(double value, Arena* arena) {
  value = std::trunc(value);
  if (value >= -9223372036854775808.0 && value < 9223372036854775808.0) {
    return Value::Int(static_cast<int64_t>(value));
  }
  int exponent;
  const double mantissa = std::frexp(std::fabs(value), &exponent);
  Big big = static_cast<uint64_t>(std::ldexp(mantissa, 64));
  big <<= static_cast<unsigned>(exponent - 64);
  if (value < 0) big.backend().negate();
  return Store(big, arena);
}

Value ParseInteger(std::string_view digits, int base, Arena* arena) {
  Big big;
  for (char c : digits) {
    big *= base;
    big += DigitValue(c);
    if (!big.is_zero() && msb(big) >= kMaxBits) LimitReached("the integer is too large");
  }
  return Store(big, arena);
}

void AppendInteger(Value a, std::string* out, int base) {
  if (a.is_small_int() && base == 10) {
    out->append(std::to_string(a.small_int()));
    return;
  }
  const Big big = Load(a);
  if (big < 0) out->push_back('-');
  const Big magnitude = abs(big);
  if (base == 10) {
    out->append(magnitude.str());
    return;
  }
  std::vector<uint8_t> digits;
  export_bits(magnitude, std::back_inserter(digits), base == 16 ? 4 : base == 8 ? 3 : 1);
  for (const uint8_t digit : digits) out->push_back("0123456789abcdef"[digit]);
}

}  // namespace portico::jinja
