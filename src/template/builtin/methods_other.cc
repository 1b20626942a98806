// Methods and properties of everything that is no str.
#include <bit>
#include <cmath>

#include "template/builtin/globals.h"
#include "template/builtin/methods.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict_access.h"

namespace portico::jinja {
namespace {

Value View(Interpreter& in, Value dict, uint8_t flags) {
  Value view(Kind::kDictView);
  view.flags = flags;
  view.viewed = in.arena().New<Value>(dict);
  return view;
}

Value FindItem(Interpreter& in, Value object, Member member, Value wanted) {
  int64_t count = 0;
  int64_t index = 0;
  Iterator it(in, object);
  for (Value item; it.Next(in, &item); ++index) {
    in.Step();
    if (!Equal(in, item, wanted)) continue;
    if (member == Member::kIndex) return Value::Int(index);
    ++count;
  }
  if (member == Member::kIndex) Fail("the value is not in the list");
  return Value::Int(count);
}

Value LoopProperty(Interpreter& in, Loop& loop, Member member) {
  switch (member) {
    case Member::kIndex:
      return Value::Int(loop.index0 + 1);
    case Member::kLoopIndex0:
      return Value::Int(loop.index0);
    case Member::kLoopFirst:
      return Value::Bool(loop.index0 == 0);
    case Member::kLoopLast:
      return Value::Bool(!loop.Peek(in));
    case Member::kLoopLength:
      return Value::Int(loop.Length(in));
    case Member::kLoopRevindex:
      return Value::Int(loop.Length(in) - loop.index0);
    case Member::kLoopRevindex0:
      return Value::Int(loop.Length(in) - loop.index0 - 1);
    case Member::kLoopDepth:
      return Value::Int(loop.depth0 + 1);
    case Member::kLoopDepth0:
      return Value::Int(loop.depth0);
    case Member::kLoopPrevitem:
      return loop.index0 == 0 ? in.Undefined("there is no previous item") : loop.before;
    default:
      return loop.Peek(in) ? loop.after : in.Undefined("there is no next item");
  }
}

Value CycleLoop(const Loop& loop, const CallArguments& arguments) {
  if (arguments.count == 0) Fail("no items for cycling given");
  return arguments.positional[static_cast<size_t>(loop.index0) % arguments.count];
}

Value LoopChanged(Interpreter& in, Loop* loop, const CallArguments& arguments) {
  Value values = in.NewList(arguments.positional, arguments.count, Kind::kTuple);
  if (!loop->last_changed.is(Kind::kMissing) && Equal(in, loop->last_changed, values)) {
    return Value::Bool(false);
  }
  loop->last_changed = values;
  return Value::Bool(true);
}

Value MacroProperty(Interpreter& in, const Macro& macro, Member member) {
  const MacroCode& code = *macro.code;
  switch (member) {
    case Member::kMacroName:
      return code.name.empty() ? Value::None() : Value::String(code.name);
    case Member::kMacroCatchKwargs:
      return Value::Bool(code.kwargs_slot >= 0);
    case Member::kMacroCatchVarargs:
      return Value::Bool(code.varargs_slot >= 0);
    case Member::kMacroCaller:
      return Value::Bool(code.caller_slot >= 0 || code.explicit_caller);
    default: {
      std::vector<Value> names;
      for (const NameExpr* p : code.parameters) names.push_back(Value::String(p->name));
      return in.NewList(names, Kind::kTuple);
    }
  }
}

int64_t BitCount(Value v, bool length) {
  std::string hex;
  AppendInteger(v, &hex, 16);
  int64_t bits = 0;
  bool first = true;
  for (char c : hex) {
    if (c == '-') continue;
    unsigned digit = static_cast<unsigned>(c >= 'a' ? c - 'a' + 10 : c - '0');
    if (!length) {
      bits += std::popcount(digit);
    } else {
      bits += first ? static_cast<int64_t>(std::bit_width(digit)) : 4;
    }
    first = false;
  }
  return bits;
}

}  // namespace

Value Interpreter::ReadMember(Value object, Member member, std::string_view) {
  switch (object.kind) {
    case Kind::kLoop:
      if (member == Member::kLoopCycle || member == Member::kLoopChanged) break;
      return LoopProperty(*this, *object.loop, member);
    case Kind::kRange:
      if (member == Member::kStart) return Value::Int(object.range->start);
      if (member == Member::kStep) return Value::Int(object.range->step);
      if (member == Member::kStop) return Value::Int(object.range->stop);
      break;
    case Kind::kMacro:
      return MacroProperty(*this, *object.macro, member);
    case Kind::kCycler:
      if (member == Member::kCyclerCurrent) {
        return object.cycler->items->data[object.cycler->position];
      }
      break;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kFloat:
      if (member == Member::kReal || member == Member::kNumerator) return Plus(*this, object);
      if (member == Member::kImag) {
        return object.is(Kind::kFloat) ? Value::Float(0) : Value::Int(0);
      }
      if (member == Member::kDenominator) return Value::Int(1);
      break;
    default:
      break;
  }
  Value method(Kind::kMethod);
  method.method = arena_->New<BoundMethod>(object, member);
  return method;
}

Value CallDictMethod(Interpreter& in, Value dict, Member member, const CallArguments& arguments) {
  switch (member) {
    case Member::kGet: {
      Parameters p(arguments, "get", {"key", "default"}, 1, 2);
      Value found;
      return DictLookup(in, dict, p.Get(0), &found) ? found : p.Get(1);
    }
    case Member::kItems:
    case Member::kKeys:
    case Member::kValues: {
      Parameters p(arguments, "dict view", {});
      return View(in, dict,
                  member == Member::kItems  ? kItemsView
                  : member == Member::kKeys ? kKeysView
                                            : kValuesView);
    }
    case Member::kCopy: {
      Parameters p(arguments, "copy", {});
      return dict;
    }
    default:
      break;
  }
  return CallOtherMethod(in, dict, member, arguments);
}

Value CallOtherMethod(Interpreter& in, Value object, Member member,
                      const CallArguments& arguments) {
  switch (member) {
    case Member::kIndex:
    case Member::kCount: {
      Parameters p(arguments, "index", {"value"}, 1, 1);
      return FindItem(in, object, member, p.Get(0));
    }
    case Member::kCopy:
      return object;
    case Member::kLoopCycle:
      return CycleLoop(*object.loop, arguments);
    case Member::kLoopChanged:
      return LoopChanged(in, object.loop, arguments);
    case Member::kCyclerNext: {
      Cycler* cycler = object.cycler;
      Value item = cycler->items->data[cycler->position];
      cycler->position = (cycler->position + 1) % cycler->items->size;
      return item;
    }
    case Member::kCyclerReset:
      object.cycler->position = 0;
      return Value::None();
    case Member::kIsInteger:
      return Value::Bool(std::isfinite(object.d) && std::trunc(object.d) == object.d);
    case Member::kBitLength:
    case Member::kBitCount:
      return Value::Int(BitCount(object, member == Member::kBitLength));
    case Member::kConjugate:
      return Plus(in, object);
    case Member::kFromkeys: {
      Parameters p(arguments, "fromkeys", {"iterable", "value"}, 1, 2);
      Value keys = ListOf(in, p.Get(0));
      std::vector<Value> pairs;
      for (size_t i = 0; i < SequenceSize(keys); ++i) {
        pairs.push_back(in.NewPair(SequenceItem(keys, i), p.Get(1)));
      }
      Value list = in.NewList(pairs);
      CallArguments all;
      all.positional = &list;
      all.count = 1;
      return Value::Of(BuildDict(in, all));
    }
    default:
      Fail("this method is not supported");
  }
}

}  // namespace portico::jinja
