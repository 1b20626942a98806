// Python's integers: 64 bits where they fit, longer ones in the arena, at most about 6,000 decimal digits.
// All functions take values of kind kBool, kInt or kBigInt and return kInt where the result fits. They throw
// Failure at the limit and for a zero divisor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "template/value/arena.h"
#include "template/value/value.h"

namespace portico::jinja {

inline bool IsInteger(Value v) {
  return v.is(Kind::kInt) || v.is(Kind::kBool) || v.is(Kind::kBigInt);
}

Value AddIntegers(Value a, Value b, Arena* arena);
Value SubtractIntegers(Value a, Value b, Arena* arena);
Value MultiplyIntegers(Value a, Value b, Arena* arena);
// Rounded down, as Python does; the remainder has the divisor's sign.
Value FloorDivideIntegers(Value a, Value b, Arena* arena);
Value RemainderOfIntegers(Value a, Value b, Arena* arena);
Value PowerOfIntegers(Value base, uint64_t exponent, Arena* arena);
Value NegateInteger(Value a, Arena* arena);

int CompareIntegers(Value a, Value b);  // <0, 0, >0
double IntegerToDouble(Value a);        // infinite beyond the range
// a / b as the nearest double, as Python divides integers.
double DivideIntegers(Value a, Value b);
// `value` is finite; its fraction is dropped.
Value IntegerFromDouble(double value, Arena* arena);
// `digits` are valid digits of the base (2-36), at least one.
Value ParseInteger(std::string_view digits, int base, Arena* arena);
// In base 10, or 2, 8, 16.
void AppendInteger(Value a, std::string* out, int base = 10);

}  // namespace portico::jinja
