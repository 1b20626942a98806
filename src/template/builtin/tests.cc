#include "template/builtin/tests.h"

#include <unordered_map>

#include "template/builtin/filters.h"
#include "template/builtin/methods.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict.h"

namespace portico::jinja {
namespace {

void NoArguments(const CallArguments& arguments) {
  if (arguments.count != 0 || arguments.named_count != 0) Fail("this test takes no arguments");
}

Value OneArgument(const CallArguments& arguments, std::string_view name) {
  return Parameters(arguments, "test", {name}, 1).Get(0);
}

Value Modulo(Interpreter& in, Value v, Value divisor) {
  return Binary(in, BinaryOp::kModulo, v, divisor);
}

bool IsDefined(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return !v.is_undefined();
}
bool IsUndefined(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is_undefined();
}
bool IsNone(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is_none();
}
bool IsBoolean(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is(Kind::kBool);
}
bool IsFalse(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is(Kind::kBool) && !v.b;
}
bool IsTrueTest(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is(Kind::kBool) && v.b;
}
bool IsIntegerTest(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is(Kind::kInt) || v.is(Kind::kBigInt);
}
bool IsFloat(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is(Kind::kFloat);
}
bool IsNumber(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is_number();
}
bool IsString(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is_string();
}
bool IsMapping(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is_dict();
}
bool IsSequence(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  // What has a length and items by index; an undefined value has both in Jinja.
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is_dict() || v.is(Kind::kRange);
}
bool IsIterableTest(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return IsIterable(v);
}
bool IsCallable(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  switch (v.kind) {
    case Kind::kUndefined:
    case Kind::kMacro:
    case Kind::kMethod:
    case Kind::kFunction:
    case Kind::kLoop:
    case Kind::kJoiner:
    case Kind::kBlock:
      return true;
    default:
      return false;
  }
}
bool IsEscaped(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  return v.is_markup();
}
bool IsLower(Interpreter& in, Value v, const CallArguments& a) {
  return IsTrue(CallStringMethod(in, ToStr(in, v), Member::kIslower, a));
}
bool IsUpper(Interpreter& in, Value v, const CallArguments& a) {
  return IsTrue(CallStringMethod(in, ToStr(in, v), Member::kIsupper, a));
}
bool IsOdd(Interpreter& in, Value v, const CallArguments& a) {
  NoArguments(a);
  return Equal(in, Modulo(in, v, Value::Int(2)), Value::Int(1));
}
bool IsEven(Interpreter& in, Value v, const CallArguments& a) {
  NoArguments(a);
  return Equal(in, Modulo(in, v, Value::Int(2)), Value::Int(0));
}
bool IsDivisibleBy(Interpreter& in, Value v, const CallArguments& a) {
  return Equal(in, Modulo(in, v, OneArgument(a, "num")), Value::Int(0));
}
bool IsSameAs(Interpreter&, Value v, const CallArguments& a) {
  return Identical(v, OneArgument(a, "other"));
}
bool IsIn(Interpreter& in, Value v, const CallArguments& a) {
  return Contains(in, OneArgument(a, "seq"), v);
}
bool IsEqual(Interpreter& in, Value v, const CallArguments& a) {
  return Equal(in, v, OneArgument(a, "b"));
}
bool IsUnequal(Interpreter& in, Value v, const CallArguments& a) {
  return !Equal(in, v, OneArgument(a, "b"));
}
template <CompareOp kOp>
bool IsOrdered(Interpreter& in, Value v, const CallArguments& a) {
  return Ordered(in, kOp, v, OneArgument(a, "b"));
}
bool IsFilter(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  HashKey(v);  // fails for what cannot be a key
  return v.is_string() && FindFilter(v.str()) != nullptr;
}
bool IsTest(Interpreter&, Value v, const CallArguments& a) {
  NoArguments(a);
  HashKey(v);
  return v.is_string() && FindTest(v.str()) != nullptr;
}

}  // namespace

TestFunction FindTest(std::string_view name) {
  static const auto* const kTable = new std::unordered_map<std::string_view, TestFunction>{
      {"odd", IsOdd},
      {"even", IsEven},
      {"divisibleby", IsDivisibleBy},
      {"defined", IsDefined},
      {"undefined", IsUndefined},
      {"filter", IsFilter},
      {"test", IsTest},
      {"none", IsNone},
      {"boolean", IsBoolean},
      {"false", IsFalse},
      {"true", IsTrueTest},
      {"integer", IsIntegerTest},
      {"float", IsFloat},
      {"lower", IsLower},
      {"upper", IsUpper},
      {"string", IsString},
      {"mapping", IsMapping},
      {"number", IsNumber},
      {"sequence", IsSequence},
      {"iterable", IsIterableTest},
      {"callable", IsCallable},
      {"sameas", IsSameAs},
      {"escaped", IsEscaped},
      {"in", IsIn},
      {"==", IsEqual},
      {"eq", IsEqual},
      {"equalto", IsEqual},
      {"!=", IsUnequal},
      {"ne", IsUnequal},
      {">", IsOrdered<CompareOp::kGt>},
      {"gt", IsOrdered<CompareOp::kGt>},
      {"greaterthan", IsOrdered<CompareOp::kGt>},
      {">=", IsOrdered<CompareOp::kGe>},
      {"ge", IsOrdered<CompareOp::kGe>},
      {"<", IsOrdered<CompareOp::kLt>},
      {"lt", IsOrdered<CompareOp::kLt>},
      {"lessthan", IsOrdered<CompareOp::kLt>},
      {"<=", IsOrdered<CompareOp::kLe>},
      {"le", IsOrdered<CompareOp::kLe>},
  };
  auto it = kTable->find(name);
  return it == kTable->end() ? nullptr : it->second;
}

bool Interpreter::ApplyTest(Value name, Value object, const CallArguments& arguments) {
  TestFunction test = name.is_string() ? FindTest(name.str()) : nullptr;
  if (test == nullptr) {
    std::string text;
    AppendRepr(*this, name, &text);
    Fail("No test named ", text, ".");
  }
  return test(*this, object, arguments);
}

}  // namespace portico::jinja
