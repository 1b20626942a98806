#include <algorithm>
#include <cmath>

#include "template/format/format.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"

namespace portico::jinja {
namespace {

[[noreturn]] void Unsupported(std::string_view op, Value a, Value b) {
  if (a.is_undefined()) FailUndefined(a);
  if (b.is_undefined()) FailUndefined(b);
  Fail("unsupported operand type(s) for ", op, ": '", TypeName(a), "' and '", TypeName(b), "'");
}

// The text a piece has inside marked-up text.
std::string_view Escaped(Value v, std::string* scratch) {
  if (v.is_markup()) return v.str();
  scratch->clear();
  AppendEscaped(v.str(), scratch);
  return *scratch;
}

Value Join(Interpreter& in, std::string_view a, std::string_view b, uint8_t flags) {
  if (a.empty()) return Value::String(b, flags);
  if (b.empty()) return Value::String(a, flags);
  char* to = in.arena().NewChars(a.size() + b.size());
  std::copy(a.begin(), a.end(), to);
  std::copy(b.begin(), b.end(), to + a.size());
  return Value::String({to, a.size() + b.size()}, flags);
}

Value AddStrings(Interpreter& in, Value a, Value b) {
  if (!a.is_markup() && !b.is_markup()) return Join(in, a.str(), b.str(), 0);
  std::string left, right;
  std::string_view x = Escaped(a, &left);
  std::string_view y = Escaped(b, &right);
  return in.NewString(std::string(x).append(y), kMarkup);
}

Value AddSequences(Interpreter& in, Value a, Value b) {
  size_t first = SequenceSize(a);
  size_t second = SequenceSize(b);
  in.Step((first + second) / 8);
  Value* items = in.arena().NewArray<Value>(first + second);
  for (size_t i = 0; i < first; ++i) items[i] = SequenceItem(a, i);
  for (size_t i = 0; i < second; ++i) items[first + i] = SequenceItem(b, i);
  return Value::Of(a.is_list() ? Kind::kList : Kind::kTuple,
                   in.arena().New<Items>(items, first + second));
}

Value Repeat(Interpreter& in, Value v, Value count) {
  int64_t times = std::max<int64_t>(0, ToIndex(count, "count"));
  if (v.is_string()) {
    if (v.size == 0 || times == 0) return Value::String({}, v.flags);
    if (static_cast<uint64_t>(times) > in.options().max_memory_bytes / v.size) throw OutOfMemory{};
    char* to = in.arena().NewChars(v.size * static_cast<size_t>(times));
    for (int64_t i = 0; i < times; ++i)
      std::memcpy(to + static_cast<size_t>(i) * v.size, v.s, v.size);
    return Value::String({to, v.size * static_cast<size_t>(times)}, v.flags);
  }
  size_t size = SequenceSize(v);
  if (size != 0 && static_cast<uint64_t>(times) > in.options().max_memory_bytes / (size * 16)) {
    throw OutOfMemory{};
  }
  size_t total = size * static_cast<size_t>(size == 0 ? 0 : times);
  in.Step(total / 8);
  Value* items = in.arena().NewArray<Value>(total);
  for (size_t i = 0; i < total; ++i) items[i] = SequenceItem(v, i % size);
  return Value::Of(v.is_list() ? Kind::kList : Kind::kTuple, in.arena().New<Items>(items, total));
}

double FloorDivide(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

double Remainder(double a, double b) {
  double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (b < 0) != (remainder < 0) ? remainder + b : remainder;
}

Value Power(Interpreter& in, Value a, Value b) {
  if (IsInteger(a) && IsInteger(b)) {
    if (b.is(Kind::kBigInt)) LimitReached("the exponent is too large");
    if (b.small_int() >= 0) {
      return PowerOfIntegers(a, static_cast<uint64_t>(b.small_int()), &in.arena());
    }
  }
  double x = ToDouble(a);
  double y = ToDouble(b);
  if (x == 0 && y < 0) Fail("0.0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(y) && std::trunc(y) != y) Fail("complex numbers are not supported");
  double power = std::pow(x, y);
  if (std::isinf(power) && std::isfinite(x) && std::isfinite(y)) Fail("Result too large");
  return Value::Float(power);
}

std::string_view OpText(BinaryOp op) {
  switch (op) {
    case BinaryOp::kSubtract:
      return "-";
    case BinaryOp::kMultiply:
      return "*";
    case BinaryOp::kDivide:
      return "/";
    case BinaryOp::kFloorDivide:
      return "//";
    case BinaryOp::kModulo:
      return "%";
    case BinaryOp::kPower:
      return "** or pow()";
  }
  return "";
}

Value IntegerBinary(Interpreter& in, BinaryOp op, Value a, Value b) {
  switch (op) {
    case BinaryOp::kSubtract:
      return SubtractIntegers(a, b, &in.arena());
    case BinaryOp::kMultiply:
      return MultiplyIntegers(a, b, &in.arena());
    case BinaryOp::kFloorDivide:
      return FloorDivideIntegers(a, b, &in.arena());
    default:
      return RemainderOfIntegers(a, b, &in.arena());
  }
}

}  // namespace

Value Add(Interpreter& in, Value a, Value b) {
  if (a.is_string() && b.is_string()) return AddStrings(in, a, b);
  if (IsInteger(a) && IsInteger(b)) return AddIntegers(a, b, &in.arena());
  if (a.is_number() && b.is_number()) return Value::Float(ToDouble(a) + ToDouble(b));
  if (a.is_sequence() && b.is_sequence() && a.is_list() == b.is_list()) {
    return AddSequences(in, a, b);
  }
  if (b.is_undefined()) FailUndefined(b);
  if (a.is_string() || a.is_sequence()) {
    std::string type = a.is_string() ? "str" : std::string(TypeName(a));
    Fail("can only concatenate ", type, " (not \"", TypeName(b), "\") to ", type);
  }
  Unsupported("+", a, b);
}

Value Binary(Interpreter& in, BinaryOp op, Value a, Value b) {
  if (a.is_number() && b.is_number()) {
    if (op == BinaryOp::kPower) return Power(in, a, b);
    const bool integers = IsInteger(a) && IsInteger(b);
    if (integers && op == BinaryOp::kDivide) return Value::Float(DivideIntegers(a, b));
    if (integers) return IntegerBinary(in, op, a, b);
    double x = ToDouble(a);
    double y = ToDouble(b);
    if (op == BinaryOp::kSubtract) return Value::Float(x - y);
    if (op == BinaryOp::kMultiply) return Value::Float(x * y);
    if (y == 0) {
      Fail(op == BinaryOp::kDivide ? "float division by zero"
                                   : "float floor division or modulo by zero");
    }
    if (op == BinaryOp::kDivide) return Value::Float(x / y);
    return Value::Float(op == BinaryOp::kFloorDivide ? FloorDivide(x, y) : Remainder(x, y));
  }
  if (op == BinaryOp::kModulo && a.is_string()) return PercentFormat(in, a, b);
  if (op == BinaryOp::kMultiply) {
    if ((a.is_string() || a.is_sequence()) && IsInteger(b)) return Repeat(in, a, b);
    if ((b.is_string() || b.is_sequence()) && IsInteger(a)) return Repeat(in, b, a);
    if ((a.is_string() || a.is_sequence()) && !b.is_undefined()) {
      Fail("can't multiply sequence by non-int of type '", TypeName(b), "'");
    }
  }
  Unsupported(OpText(op), a, b);
}

Value Negate(Interpreter& in, Value a) {
  if (IsInteger(a)) return NegateInteger(a, &in.arena());
  if (a.is(Kind::kFloat)) return Value::Float(-a.d);
  if (a.is_undefined()) FailUndefined(a);
  Fail("bad operand type for unary -: '", TypeName(a), "'");
}

Value Plus(Interpreter& in, Value a) {
  if (a.is(Kind::kBool)) return Value::Int(a.small_int());
  if (a.is_number()) return a;
  if (a.is_undefined()) FailUndefined(a);
  in.Step();
  Fail("bad operand type for unary +: '", TypeName(a), "'");
}

int64_t ToIndex(Value v, std::string_view what) {
  if (v.is_small_int()) return v.small_int();
  if (v.is_undefined()) FailUndefined(v);
  if (v.is(Kind::kBigInt)) Fail("cannot fit 'int' into an index-sized integer");
  Fail("'", TypeName(v), "' object cannot be interpreted as an integer (", what, ")");
}

}  // namespace portico::jinja
