// Calls, and output without a detour over values.
#include "template/builtin/globals.h"
#include "template/builtin/json_filter.h"
#include "template/builtin/methods.h"
#include "template/run/interpreter.h"
#include "template/value/dict.h"
#include "template/value/dict_access.h"

namespace portico::jinja {

Value Interpreter::NewString(std::string_view text, uint8_t flags) {
  return Value::String(arena_->Copy(text), flags);
}

Value Interpreter::NewList(const Value* items, size_t count, Kind kind) {
  Value* copy = arena_->NewArray<Value>(count);
  std::copy(items, items + count, copy);
  return Value::Of(kind, arena_->New<Items>(copy, count));
}

Value Interpreter::NewPair(Value a, Value b) {
  Value pair[] = {a, b};
  return NewList(pair, 2, Kind::kTuple);
}

Value Interpreter::Undefined(std::string_view hint) {
  Value v(Kind::kUndefined);
  v.flags = kUndefinedReason;
  v.reason = arena_->New<UndefinedReason>(arena_->Copy(hint), Value(), Value(), false);
  return v;
}

Value Interpreter::UndefinedItem(Value object, Value name) {
  Value v(Kind::kUndefined);
  v.flags = kUndefinedReason;
  v.reason = arena_->New<UndefinedReason>(std::string_view(), name, object, true);
  return v;
}

void Interpreter::EmitValue(Value value) {
  if (value.is_string()) {
    out_->append(value.s, value.size);
  } else {
    AppendStr(*this, value, out_);
  }
}

void Interpreter::EmitString(Value value) {
  if (!value.is_string()) Fail("expected a string, not ", TypeName(value));
  out_->append(value.s, value.size);
}

void Interpreter::Emit(const Expr* expr) {
  // Spans are counted from whole statements, so nothing may be written before its time.
  if (track_spans_) return EmitValue(Eval(expr));
  switch (expr->kind) {
    case ExprKind::kAdd:
      return EmitAdd(*static_cast<const ListExpr*>(expr));
    case ExprKind::kConcat:
      for (const Expr* item : static_cast<const ListExpr*>(expr)->items) Emit(item);
      return;
    case ExprKind::kConditional: {
      const auto& conditional = *static_cast<const ConditionalExpr*>(expr);
      if (EvalTest(conditional.test)) return Emit(conditional.yes);
      if (conditional.no != nullptr) Emit(conditional.no);
      return;
    }
    case ExprKind::kFilter: {
      const auto& filter = *static_cast<const FilterExpr*>(expr);
      if (filter.function == FilterToJson && filter.object != nullptr) {
        Value value = Eval(filter.object);
        return AppendToJson(*this, value, EvalArguments(filter.arguments), out_);
      }
      break;
    }
    case ExprKind::kCall:
      if (EmitCall(*static_cast<const CallExpr*>(expr))) return;
      break;
    default:
      break;
  }
  EmitValue(Eval(expr));
}

void Interpreter::EmitAdd(const ListExpr& expr) {
  const size_t start = out_->size();
  for (size_t i = 0; i < expr.items.size(); ++i) {
    Value value = Eval(expr.items[i]);
    if (value.is_string() && !value.is_markup()) {
      out_->append(value.s, value.size);
      continue;
    }
    // Not plain text: the general sum takes over from what stands there.
    if (i > 0) {
      Value left = NewString(std::string_view(*out_).substr(start));
      out_->resize(start);
      value = Add(*this, left, value);
    }
    for (++i; i < expr.items.size(); ++i) value = Add(*this, value, Eval(expr.items[i]));
    return EmitValue(value);
  }
}

bool Interpreter::EmitCall(const CallExpr& expr) {
  if (expr.callee->kind != ExprKind::kName) return false;
  Value callee = EvalName(*static_cast<const NameExpr*>(expr.callee));
  if (!callee.is(Kind::kMacro)) return false;
  RunMacro(*callee.macro, EvalArguments(expr.arguments));
  return true;
}

Value Interpreter::EvalCall(const CallExpr& expr, Value caller) {
  if (expr.callee->kind == ExprKind::kGetAttr) {
    const auto& attribute = *static_cast<const GetAttrExpr*>(expr.callee);
    if (attribute.member != Member::kNone && attribute.member != Member::kUnsafe) {
      Value object = Eval(attribute.object);
      if ((object.is_string() || object.is_dict() || object.is_sequence()) &&
          HasMember(object, attribute.member, attribute.name)) {
        CallArguments arguments = EvalArguments(expr.arguments);
        arguments.caller = caller;
        return CallMethod(object, attribute.member, arguments);
      }
      Value callee = GetAttr(object, &attribute.name, attribute.member);
      CallArguments arguments = EvalArguments(expr.arguments);
      arguments.caller = caller;
      return Call(callee, arguments);
    }
  }
  Value callee = Eval(expr.callee);
  CallArguments arguments = EvalArguments(expr.arguments);
  arguments.caller = caller;
  return Call(callee, arguments);
}

Value Interpreter::Call(Value callee, const CallArguments& arguments) {
  Step();
  switch (callee.kind) {
    case Kind::kMacro:
      return CallMacro(*callee.macro, arguments);
    case Kind::kFunction:
      return CallGlobal(*this, callee, arguments);
    case Kind::kMethod:
      return CallMethod(callee.method->object, callee.method->member, arguments);
    case Kind::kLoop: {
      Parameters parameters(arguments, "loop", {"iterable"}, 1);
      return RecurseLoop(callee.loop, parameters.Get(0));
    }
    case Kind::kJoiner:
      if (callee.joiner->used) return callee.joiner->separator;
      callee.joiner->used = true;
      return Value::String({});
    case Kind::kBlock:
      return RenderBlock(*callee.block->stmt);
    case Kind::kUndefined:
      FailUndefined(callee);
    default:
      Fail("'", TypeName(callee), "' object is not callable");
  }
}

Value Interpreter::CallMacro(const Macro& macro, const CallArguments& arguments) {
  Capture capture(this);
  RunMacro(macro, arguments);
  return capture.Take();
}

void Interpreter::RunMacro(const Macro& macro, const CallArguments& arguments) {
  CallDepth depth(this);
  const MacroCode& code = *macro.code;
  const size_t wanted = code.parameters.size();
  Frame* frame = NewFrame(code.function, macro.frame);
  Value* slots = frame->slots;

  // Positional arguments, then keywords by name; what is left over goes to varargs and kwargs.
  const size_t taken = std::min(arguments.count, wanted);
  for (size_t i = 0; i < taken; ++i) slots[code.parameters[i]->slot] = arguments.positional[i];
  Dict* rest = nullptr;
  bool found_caller = taken == wanted && code.explicit_caller;
  auto keyword = [&](std::string_view name, Value value) {
    for (size_t p = taken; p < wanted; ++p) {
      if (code.parameters[p]->name != name) continue;
      slots[code.parameters[p]->slot] = value;
      return;
    }
    if (code.caller_slot >= 0 && !found_caller && name == "caller") {
      slots[code.caller_slot] = value;
      return;
    }
    if (code.kwargs_slot < 0) {
      Fail("macro '", code.name, "' takes no keyword argument '", name, "'");
    }
    if (rest == nullptr) rest = arena_->New<Dict>();
    DictSet(rest, Value::String(name), value, arena_);
  };
  for (size_t i = 0; i < arguments.named_count; ++i) {
    keyword(arguments.named[i].name, arguments.named[i].value);
  }
  if (!arguments.caller.is(Kind::kMissing)) keyword("caller", arguments.caller);
  if (code.caller_slot >= 0 &&
      (slots[code.caller_slot].is(Kind::kMissing) || slots[code.caller_slot].is_none())) {
    slots[code.caller_slot] = Undefined("No caller defined");
  }
  if (code.kwargs_slot >= 0) {
    slots[code.kwargs_slot] = Value::Of(rest != nullptr ? rest : arena_->New<Dict>());
  }
  if (code.varargs_slot >= 0) {
    slots[code.varargs_slot] =
        NewList(arguments.positional + taken, arguments.count - taken, Kind::kTuple);
  } else if (arguments.count > wanted) {
    Fail("macro '", code.name, "' takes not more than ", std::to_string(wanted), " argument(s)");
  }

  Frame* saved = frame_;
  const int saved_line = line_;
  frame_ = frame;
  Enter(code.function.scope);
  const size_t first_default = wanted - code.defaults.size();
  for (size_t i = taken; i < wanted; ++i) {
    Value& slot = slots[code.parameters[i]->slot];
    if (!slot.is(Kind::kMissing)) continue;
    slot = i >= first_default ? Eval(code.defaults[i - first_default])
                              : Undefined("parameter '" + std::string(code.parameters[i]->name) +
                                          "' was not provided");
  }
  Execute(code.function.body);
  frame_ = saved;
  line_ = saved_line;
}

Value Interpreter::CallMethod(Value object, Member member, const CallArguments& arguments) {
  Step();
  if (object.is_string()) return CallStringMethod(*this, object, member, arguments);
  if (object.is_dict()) return CallDictMethod(*this, object, member, arguments);
  return CallOtherMethod(*this, object, member, arguments);
}

}  // namespace portico::jinja
