#include "template/value/bigint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "template/run/failure.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

constexpr size_t kMaxDigits = 640;  // of base 2^32

using Magnitude = std::vector<uint32_t>;

struct Big {
  bool negative = false;
  Magnitude digits;
};

void Trim(Magnitude* m) {
  while (!m->empty() && m->back() == 0) m->pop_back();
}

Big Load(Value v) {
  Big big;
  if (v.is(Kind::kBigInt)) {
    big.negative = v.big->negative;
    big.digits.assign(v.big->digits, v.big->digits + v.big->size);
    return big;
  }
  int64_t value = v.small_int();
  big.negative = value < 0;
  uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  for (; magnitude != 0; magnitude >>= 32) big.digits.push_back(static_cast<uint32_t>(magnitude));
  return big;
}

Value Store(Big big, Arena* arena) {
  Trim(&big.digits);
  if (big.digits.size() > kMaxDigits) LimitReached("the integer is too large");
  if (big.digits.size() <= 2) {
    uint64_t magnitude = 0;
    for (size_t i = big.digits.size(); i-- > 0;) magnitude = magnitude << 32 | big.digits[i];
    const uint64_t limit = uint64_t{1} << 63;
    if (magnitude < limit) {
      int64_t value = static_cast<int64_t>(magnitude);
      return Value::Int(big.negative ? -value : value);
    }
    if (big.negative && magnitude == limit) return Value::Int(INT64_MIN);
  }
  uint32_t* digits = arena->NewArray<uint32_t>(big.digits.size());
  std::copy(big.digits.begin(), big.digits.end(), digits);
  Value v(Kind::kBigInt);
  v.big = arena->New<BigInt>(big.negative, static_cast<uint32_t>(big.digits.size()), digits);
  return v;
}

int CompareMagnitudes(const Magnitude& a, const Magnitude& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

Magnitude AddMagnitudes(const Magnitude& a, const Magnitude& b) {
  Magnitude sum;
  uint64_t carry = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
    carry += (i < a.size() ? a[i] : uint64_t{0}) + (i < b.size() ? b[i] : uint64_t{0});
    sum.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  return sum;
}

// a >= b
Magnitude SubtractMagnitudes(const Magnitude& a, const Magnitude& b) {
  Magnitude difference;
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    borrow += static_cast<int64_t>(a[i]) - (i < b.size() ? static_cast<int64_t>(b[i]) : 0);
    difference.push_back(static_cast<uint32_t>(borrow));
    borrow >>= 32;
  }
  Trim(&difference);
  return difference;
}

Big AddSigned(const Big& a, const Big& b) {
  Big sum;
  if (a.negative == b.negative) {
    sum.negative = a.negative;
    sum.digits = AddMagnitudes(a.digits, b.digits);
  } else if (CompareMagnitudes(a.digits, b.digits) >= 0) {
    sum.negative = a.negative;
    sum.digits = SubtractMagnitudes(a.digits, b.digits);
  } else {
    sum.negative = b.negative;
    sum.digits = SubtractMagnitudes(b.digits, a.digits);
  }
  return sum;
}

// Divides in place, returns the remainder.
uint32_t DivideBySmall(Magnitude* m, uint32_t divisor) {
  uint64_t remainder = 0;
  for (size_t i = m->size(); i-- > 0;) {
    remainder = remainder << 32 | (*m)[i];
    (*m)[i] = static_cast<uint32_t>(remainder / divisor);
    remainder %= divisor;
  }
  Trim(m);
  return static_cast<uint32_t>(remainder);
}

// Bit by bit: long integers are rare here, and short.
void DivideMagnitudes(const Magnitude& a, const Magnitude& b, Magnitude* quotient,
                      Magnitude* remainder) {
  quotient->assign(a.size(), 0);
  remainder->clear();
  if (b.size() == 1) {
    *quotient = a;
    uint32_t rest = DivideBySmall(quotient, b[0]);
    if (rest != 0) remainder->push_back(rest);
    return;
  }
  for (size_t bit = a.size() * 32; bit-- > 0;) {
    uint32_t carry = a[bit / 32] >> (bit % 32) & 1;
    for (uint32_t& digit : *remainder) {
      uint32_t next = digit >> 31;
      digit = digit << 1 | carry;
      carry = next;
    }
    if (carry != 0) remainder->push_back(carry);
    if (CompareMagnitudes(*remainder, b) < 0) continue;
    *remainder = SubtractMagnitudes(*remainder, b);
    (*quotient)[bit / 32] |= uint32_t{1} << (bit % 32);
  }
  Trim(quotient);
}

int BitLength(const Magnitude& m) {
  return static_cast<int>(m.size() * 32) - std::countl_zero(m.back());
}

void ShiftLeft(Magnitude* m, size_t bits) {
  uint32_t carry = 0;
  if (bits % 32 != 0) {
    for (uint32_t& digit : *m) {
      const uint32_t next = digit >> (32 - bits % 32);
      digit = digit << bits % 32 | carry;
      carry = next;
    }
  }
  if (carry != 0) m->push_back(carry);
  m->insert(m->begin(), bits / 32, 0);
}

struct Division {
  Big quotient, remainder;
};

Division DivideFloor(Value av, Value bv) {
  Big a = Load(av);
  Big b = Load(bv);
  if (b.digits.empty()) Fail("integer division or modulo by zero");
  Division result;
  DivideMagnitudes(a.digits, b.digits, &result.quotient.digits, &result.remainder.digits);
  result.quotient.negative = a.negative != b.negative;
  result.remainder.negative = a.negative;
  if (!result.remainder.digits.empty() && a.negative != b.negative) {
    result.quotient = AddSigned(result.quotient, {true, {1}});
    result.remainder = AddSigned(result.remainder, b);
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
  return Store(AddSigned(Load(a), Load(b)), arena);
}

Value SubtractIntegers(Value a, Value b, Arena* arena) {
  int64_t difference;
  if (a.is_small_int() && b.is_small_int() &&
      !__builtin_sub_overflow(a.small_int(), b.small_int(), &difference)) {
    return Value::Int(difference);
  }
  Big negated = Load(b);
  negated.negative = !negated.negative;
  return Store(AddSigned(Load(a), negated), arena);
}

Value MultiplyIntegers(Value av, Value bv, Arena* arena) {
  int64_t product;
  if (av.is_small_int() && bv.is_small_int() &&
      !__builtin_mul_overflow(av.small_int(), bv.small_int(), &product)) {
    return Value::Int(product);
  }
  Big a = Load(av);
  Big b = Load(bv);
  Big out;
  out.negative = a.negative != b.negative;
  out.digits.assign(a.digits.size() + b.digits.size(), 0);
  for (size_t i = 0; i < a.digits.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.digits.size() || carry != 0; ++j) {
      uint64_t factor = j < b.digits.size() ? b.digits[j] : uint64_t{0};
      carry += out.digits[i + j] + uint64_t{a.digits[i]} * factor;
      out.digits[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  return Store(std::move(out), arena);
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
  Big a = Load(av);
  Big b = Load(bv);
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int order = CompareMagnitudes(a.digits, b.digits);
  return a.negative ? -order : order;
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
  if (b.digits.empty()) Fail("division by zero");
  if (a.digits.empty()) return 0;
  // A quotient of about 60 bits, or down to the smallest double; a bit for the rest lets it round as the exact one would.
  const int shift = std::min(60 - (BitLength(a.digits) - BitLength(b.digits)), 1076);
  ShiftLeft(shift > 0 ? &a.digits : &b.digits, static_cast<size_t>(std::abs(shift)));
  Magnitude quotient, remainder;
  DivideMagnitudes(a.digits, b.digits, &quotient, &remainder);
  uint64_t bits = 0;
  for (size_t i = quotient.size(); i-- > 0;) bits = bits << 32 | quotient[i];
  if (!remainder.empty()) bits |= 1;
  const double result = std::ldexp(static_cast<double>(bits), -shift);
  if (std::isinf(result)) Fail("integer division result too large for a float");
  return a.negative != b.negative ? -result : result;
}

Value IntegerFromDouble(double value, Arena* arena) {
  value = std::trunc(value);
  if (value >= -9223372036854775808.0 && value < 9223372036854775808.0) {
    return Value::Int(static_cast<int64_t>(value));
  }
  Big big;
  big.negative = value < 0;
  value = std::fabs(value);
  int exponent;
  double mantissa = std::frexp(value, &exponent);
  uint64_t bits = static_cast<uint64_t>(std::ldexp(mantissa, 64));
  size_t shift = static_cast<size_t>(exponent - 64);
  big.digits.assign(shift / 32 + 3, 0);
  const size_t odd = shift % 32;
  uint64_t low = bits << odd;
  big.digits[shift / 32] = static_cast<uint32_t>(low);
  big.digits[shift / 32 + 1] = static_cast<uint32_t>(low >> 32);
  big.digits[shift / 32 + 2] = static_cast<uint32_t>(odd == 0 ? 0 : bits >> (64 - odd));
  return Store(std::move(big), arena);
}

Value ParseInteger(std::string_view digits, int base, Arena* arena) {
  Big big;
  for (char c : digits) {
    uint64_t carry = static_cast<uint64_t>(DigitValue(c));
    for (uint32_t& digit : big.digits) {
      carry += uint64_t{digit} * static_cast<uint64_t>(base);
      digit = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) big.digits.push_back(static_cast<uint32_t>(carry));
    if (big.digits.size() > kMaxDigits) LimitReached("the integer is too large");
  }
  return Store(std::move(big), arena);
}

void AppendInteger(Value a, std::string* out, int base) {
  if (a.is_small_int() && base == 10) {
    out->append(std::to_string(a.small_int()));
    return;
  }
  Big big = Load(a);
  if (big.negative) out->push_back('-');
  std::string text;
  do {
    uint32_t digit = DivideBySmall(&big.digits, static_cast<uint32_t>(base));
    text.push_back("0123456789abcdef"[digit]);
  } while (!big.digits.empty());
  out->append(text.rbegin(), text.rend());
}

}  // namespace portico::jinja
