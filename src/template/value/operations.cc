#include "template/value/operations.h"

#include <cmath>

#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

constexpr int kMaxDepth = 200;

void CheckDepth(int depth) {
  if (depth > kMaxDepth) LimitReached("values are nested too deeply");
}

std::string_view OpText(CompareOp op) {
  switch (op) {
    case CompareOp::kLt:
      return "<";
    case CompareOp::kLe:
      return "<=";
    case CompareOp::kGt:
      return ">";
    default:
      return ">=";
  }
}

bool OrderHolds(CompareOp op, int order) {
  if (order == 2) return false;  // NaN
  switch (op) {
    case CompareOp::kLt:
      return order < 0;
    case CompareOp::kLe:
      return order <= 0;
    case CompareOp::kGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool EqualDicts(Interpreter& in, Value a, Value b, int depth) {
  if (DictSize(a) != DictSize(b)) return false;
  for (size_t i = 0; i < DictSize(a); ++i) {
    Value other;
    if (!DictLookup(in, b, DictKeyAt(a, i), &other) ||
        !Equal(in, DictValueAt(a, i), other, depth + 1)) {
      return false;
    }
  }
  return true;
}

// An integer and a float, exactly.
int CompareIntegerWithDouble(Value integer, double d) {
  if (std::isnan(d)) return 2;
  double i = IntegerToDouble(integer);
  if (i != d) return i < d ? -1 : 1;
  if (std::isinf(d)) return d > 0 ? -1 : 1;
  if (std::fabs(d) < 9e15) return 0;
  Arena scratch;
  return CompareIntegers(integer, IntegerFromDouble(d, &scratch));
}

}  // namespace

std::string_view TypeName(Value v) {
  switch (v.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return v.is_markup() ? "Markup" : "str";
    case Kind::kList:
    case Kind::kJsonList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
    case Kind::kJsonDict:
      return "dict";
    case Kind::kDictView:
      return v.flags == kKeysView     ? "dict_keys"
             : v.flags == kValuesView ? "dict_values"
                                      : "dict_items";
    case Kind::kRange:
      return "range";
    case Kind::kGenerator:
      return v.generator->kind == GeneratorKind::kReverse ? "list_reverseiterator" : "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kMacro:
      return "Macro";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMethod:
      return "builtin_function_or_method";
    case Kind::kFunction:
      return "function";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
    case Kind::kSelf:
      return "TemplateReference";
    case Kind::kBlock:
      return "BlockReference";
  }
  return "object";
}

std::string ObjectName(Kind kind) {
  if (kind == Kind::kNone) return "None";
  if (kind == Kind::kGenerator) return "generator object";
  return Cat(TypeName(Value(kind)), " object");
}

void FailUndefined(Value v) {
  if (v.flags == kUndefinedName) Fail("'", *v.name, "' is undefined");
  if (v.flags == kUndefinedMember) {
    std::string message = Cat("'", ObjectName(static_cast<Kind>(v.size)), "' has no attribute ");
    AppendStringRepr(*v.name, &message);
    Fail(std::move(message));
  }
  const UndefinedReason& reason = *v.reason;
  if (!reason.hint.empty() || !reason.has_object) Fail(reason.hint);
  std::string object = ObjectName(reason.object.kind);
  std::string name;
  if (reason.name.is_string()) {
    AppendStringRepr(reason.name.str(), &name);
    Fail("'", object, "' has no attribute ", name);
  }
  if (IsInteger(reason.name)) AppendInteger(reason.name, &name);
  Fail(object, " has no element ", name);
}

bool IsTrue(Value v) {
  switch (v.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return v.b;
    case Kind::kInt:
      return v.i != 0;
    case Kind::kFloat:
      return v.d != 0;
    case Kind::kString:
      return v.size != 0;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kJsonList:
      return SequenceSize(v) != 0;
    case Kind::kDict:
    case Kind::kJsonDict:
      return DictSize(v) != 0;
    case Kind::kDictView:
      return DictSize(*v.viewed) != 0;
    case Kind::kRange:
      return v.range->count != 0;
    default:
      return true;
  }
}

double ToDouble(Value number) {
  return number.is(Kind::kFloat) ? number.d : IntegerToDouble(number);
}

int CompareNumbers(Value a, Value b) {
  const bool a_float = a.is(Kind::kFloat);
  const bool b_float = b.is(Kind::kFloat);
  if (!a_float && !b_float) return CompareIntegers(a, b);
  if (a_float && b_float) {
    if (std::isnan(a.d) || std::isnan(b.d)) return 2;
    return a.d < b.d ? -1 : a.d > b.d;
  }
  if (b_float) return CompareIntegerWithDouble(a, b.d);
  int order = CompareIntegerWithDouble(b, a.d);
  return order == 2 ? 2 : -order;
}

bool NumbersEqual(Value a, Value b) {
  if (a.is_small_int() && b.is_small_int()) return a.small_int() == b.small_int();
  return CompareNumbers(a, b) == 0;
}

bool Equal(Interpreter& in, Value a, Value b, int depth) {
  if (a.is_string() && b.is_string()) return a.str() == b.str();
  if (a.is_number() && b.is_number()) return NumbersEqual(a, b);
  if (a.is_sequence() && b.is_sequence()) {
    if (a.is_list() != b.is_list()) return false;
    CheckDepth(depth);
    size_t size = SequenceSize(a);
    if (size != SequenceSize(b)) return false;
    for (size_t i = 0; i < size; ++i) {
      in.Step();
      if (!Equal(in, SequenceItem(a, i), SequenceItem(b, i), depth + 1)) return false;
    }
    return true;
  }
  if (a.is_dict() && b.is_dict()) {
    CheckDepth(depth);
    return EqualDicts(in, a, b, depth);
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNone:
    case Kind::kUndefined:
      return true;
    case Kind::kRange:
      return a.range->count == b.range->count &&
             (a.range->count == 0 || (a.range->start == b.range->start &&
                                      (a.range->count == 1 || a.range->step == b.range->step)));
    default:
      return a.i == b.i;
  }
}

bool Ordered(Interpreter& in, CompareOp op, Value a, Value b, int depth) {
  if (a.is_string() && b.is_string()) {
    int order = a.str().compare(b.str());
    return OrderHolds(op, order < 0 ? -1 : order > 0);
  }
  if (a.is_number() && b.is_number()) return OrderHolds(op, CompareNumbers(a, b));
  if (a.is_undefined()) FailUndefined(a);
  if (b.is_undefined()) FailUndefined(b);
  if (a.is_sequence() && b.is_sequence() && a.is_list() == b.is_list()) {
    CheckDepth(depth);
    size_t common = std::min(SequenceSize(a), SequenceSize(b));
    for (size_t i = 0; i < common; ++i) {
      in.Step();
      Value x = SequenceItem(a, i);
      Value y = SequenceItem(b, i);
      if (!Equal(in, x, y, depth + 1)) return Ordered(in, op, x, y, depth + 1);
    }
    size_t x = SequenceSize(a);
    size_t y = SequenceSize(b);
    return OrderHolds(op, x < y ? -1 : x > y);
  }
  Fail("'", OpText(op), "' not supported between instances of '", TypeName(a), "' and '",
       TypeName(b), "'");
}

bool Identical(Value a, Value b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return a.b == b.b;
    case Kind::kString:
      return a.str() == b.str();
    case Kind::kFloat:
      return a.d == b.d;
    case Kind::kBigInt:
      return CompareIntegers(a, b) == 0;
    default:
      return a.i == b.i;
  }
}

bool Contains(Interpreter& in, Value container, Value item) {
  if (container.is_string()) {
    if (item.is_undefined()) FailUndefined(item);
    if (!item.is_string()) {
      Fail("'in <string>' requires string as left operand, not ", TypeName(item));
    }
    in.Step(container.size / 64);
    return container.str().find(item.str()) != std::string_view::npos;
  }
  if (container.is_dict()) {
    Value ignored;
    return DictLookup(in, container, item, &ignored);
  }
  if (container.is_sequence()) {
    for (size_t i = 0, size = SequenceSize(container); i < size; ++i) {
      in.Step();
      if (Equal(in, SequenceItem(container, i), item)) return true;
    }
    return false;
  }
  if (!IsIterable(container)) {
    Fail("argument of type '", TypeName(container), "' is not iterable");
  }
  Iterator it(in, container);
  for (Value next; it.Next(in, &next);) {
    in.Step();
    if (Equal(in, next, item)) return true;
  }
  return false;
}

bool HasLength(Value v) { return IsIterable(v) && v.kind != Kind::kGenerator; }

size_t LengthOf(Interpreter& in, Value v) {
  switch (v.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return Length(v.str());
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kJsonList:
      return SequenceSize(v);
    case Kind::kDict:
    case Kind::kJsonDict:
      return DictSize(v);
    case Kind::kDictView:
      return DictSize(*v.viewed);
    case Kind::kRange:
      return static_cast<size_t>(v.range->count);
    case Kind::kLoop:
      return static_cast<size_t>(v.loop->Length(in));
    default:
      Fail("object of type '", TypeName(v), "' has no len()");
  }
}

size_t DictSize(Value dict) {
  return dict.is(Kind::kJsonDict) ? dict.json_dict->size() : dict.dict->size;
}

Value DictKeyAt(Value dict, size_t index) {
  return dict.is(Kind::kJsonDict) ? Value::String((*dict.json_dict)[index].first)
                                  : dict.dict->entries[index].key;
}

Value DictValueAt(Value dict, size_t index) {
  return dict.is(Kind::kJsonDict) ? FromJson((*dict.json_dict)[index].second)
                                  : dict.dict->entries[index].value;
}

bool DictLookup(Interpreter& in, Value dict, Value key, Value* out) {
  if (dict.is(Kind::kJsonDict)) {
    if (!key.is_string()) {
      HashKey(key);
      return false;
    }
    in.Step(dict.json_dict->size() / 8);
    const Json* found = JsonFind(*dict.json_dict, key.str());
    if (found == nullptr) return false;
    *out = FromJson(*found);
    return true;
  }
  const Value* found = DictFind(dict.dict, key);
  if (found == nullptr) return false;
  *out = *found;
  return true;
}

Value ViewItemAt(Interpreter& in, Value view, size_t index) {
  Value dict = *view.viewed;
  if (view.flags == kKeysView) return DictKeyAt(dict, index);
  if (view.flags == kValuesView) return DictValueAt(dict, index);
  return in.NewPair(DictKeyAt(dict, index), DictValueAt(dict, index));
}

}  // namespace portico::jinja
