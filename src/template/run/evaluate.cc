// Expressions.
#include <algorithm>

#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict.h"
#include "template/value/dict_access.h"

namespace portico::jinja {

Value Interpreter::Eval(const Expr* expr) {
  switch (expr->kind) {
    case ExprKind::kConst:
      return static_cast<const ConstExpr*>(expr)->value;
    case ExprKind::kName:
      return EvalName(*static_cast<const NameExpr*>(expr));
    case ExprKind::kGetAttr:
      return EvalGetAttr(*static_cast<const GetAttrExpr*>(expr));
    case ExprKind::kGetItem:
      return EvalGetItem(*static_cast<const GetItemExpr*>(expr));
    case ExprKind::kCall:
      return EvalCall(*static_cast<const CallExpr*>(expr));
    case ExprKind::kFilter:
      return EvalFilter(*static_cast<const FilterExpr*>(expr));
    case ExprKind::kAdd:
      return EvalAdd(*static_cast<const ListExpr*>(expr));
    case ExprKind::kConcat:
      return EvalConcat(*static_cast<const ListExpr*>(expr));
    case ExprKind::kTest:
    case ExprKind::kNot:
    case ExprKind::kCompare:
      return Value::Bool(EvalTest(expr));
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const auto& items = static_cast<const ListExpr*>(expr)->items;
      const bool stop_at = expr->kind == ExprKind::kOr;
      Value value;
      for (const Expr* item : items) {
        value = Eval(item);
        if (IsTrue(value) == stop_at) break;
      }
      return value;
    }
    case ExprKind::kConditional: {
      const auto& conditional = *static_cast<const ConditionalExpr*>(expr);
      if (EvalTest(conditional.test)) return Eval(conditional.yes);
      if (conditional.no != nullptr) return Eval(conditional.no);
      return Undefined(
          "the inline if-expression evaluated to false and no else section was defined.");
    }
    case ExprKind::kBinary: {
      const auto& binary = *static_cast<const BinaryExpr*>(expr);
      Value left = Eval(binary.left);
      return Binary(*this, binary.op, left, Eval(binary.right));
    }
    case ExprKind::kNegate:
      return Negate(*this, Eval(static_cast<const UnaryExpr*>(expr)->operand));
    case ExprKind::kPlus:
      return Plus(*this, Eval(static_cast<const UnaryExpr*>(expr)->operand));
    case ExprKind::kList:
    case ExprKind::kTuple:
      return EvalSequence(*static_cast<const ListExpr*>(expr));
    case ExprKind::kDict:
      return EvalDict(*static_cast<const DictExpr*>(expr));
    case ExprKind::kSlice:
      Fail("slices cannot be part of a tuple here");
    case ExprKind::kNamespaceRef:
      break;
  }
  Fail("this expression cannot be evaluated");
}

bool Interpreter::EvalTest(const Expr* expr) {
  switch (expr->kind) {
    case ExprKind::kTest:
      return EvalTestExpr(*static_cast<const TestExpr*>(expr));
    case ExprKind::kCompare:
      return EvalCompare(*static_cast<const CompareExpr*>(expr));
    case ExprKind::kNot:
      return !EvalTest(static_cast<const UnaryExpr*>(expr)->operand);
    case ExprKind::kAnd:
      for (const Expr* item : static_cast<const ListExpr*>(expr)->items) {
        if (!EvalTest(item)) return false;
      }
      return true;
    case ExprKind::kOr:
      for (const Expr* item : static_cast<const ListExpr*>(expr)->items) {
        if (EvalTest(item)) return true;
      }
      return false;
    default:
      return IsTrue(Eval(expr));
  }
}

Value Interpreter::EvalName(const NameExpr& name) {
  Value value = Slot(name.depth, name.slot);
  return value.is(Kind::kMissing) ? Value::UndefinedName(&name.name) : value;
}

Value Interpreter::EvalGetAttr(const GetAttrExpr& expr) {
  return GetAttr(Eval(expr.object), &expr.name, expr.member);
}

Value Interpreter::EvalGetItem(const GetItemExpr& expr) {
  Value object = Eval(expr.object);
  if (expr.is_name) {
    if (object.is(Kind::kJsonDict)) {
      if (const Json* found = JsonFind(*object.json_dict, expr.name)) return FromJson(*found);
    } else if (object.is(Kind::kDict)) {
      if (const Value* found = DictFind(object.dict, expr.name)) return *found;
    }
    if (object.is_dict() && !HasMember(object, expr.member, expr.name)) {
      Value undefined(Kind::kUndefined);
      undefined.flags = kUndefinedMember;
      undefined.size = static_cast<uint32_t>(object.kind);
      undefined.name = &expr.name;
      return undefined;
    }
  }
  if (expr.index->kind == ExprKind::kSlice) {
    const auto& slice = *static_cast<const SliceExpr*>(expr.index);
    Value start = slice.start ? Eval(slice.start) : Value::None();
    Value stop = slice.stop ? Eval(slice.stop) : Value::None();
    Value step = slice.step ? Eval(slice.step) : Value::None();
    return Slice(*this, object, start, stop, step);
  }
  return GetItem(object, Eval(expr.index));
}

Value Interpreter::BindMember(Value object, Member member, std::string_view name) {
  if (member == Member::kUnsafe) {
    return Undefined("access to attribute '" + std::string(name) + "' of '" +
                     std::string(TypeName(object)) + "' object is unsafe.");
  }
  return ReadMember(object, member, name);
}

Value Interpreter::GetAttr(Value object, const std::string_view* name, Member member) {
  if (member != Member::kNone && HasMember(object, member, *name)) {
    return BindMember(object, member, *name);
  }
  switch (object.kind) {
    case Kind::kJsonDict:
      if (const Json* found = JsonFind(*object.json_dict, *name)) return FromJson(*found);
      break;
    case Kind::kDict:
    case Kind::kNamespace:
      if (const Value* found = DictFind(object.dict, *name)) return *found;
      break;
    case Kind::kUndefined:
      FailUndefined(object);
    case Kind::kSelf: {
      Value block;
      if (Subscript(*this, object, Value::String(*name), &block)) return block;
      break;
    }
    default:
      break;
  }
  Value undefined(Kind::kUndefined);
  undefined.flags = kUndefinedMember;
  undefined.size = static_cast<uint32_t>(object.kind);
  undefined.name = name;
  return undefined;
}

Value Interpreter::GetItem(Value object, Value index) {
  Value item;
  if (Subscript(*this, object, index, &item)) return item;
  if (index.is_string()) {
    std::string_view name = index.str();
    Member member = FindMember(name);
    if (HasMember(object, member, name)) return BindMember(object, member, name);
    if (object.is(Kind::kNamespace)) {
      if (const Value* found = DictFind(object.dict, name)) return *found;
    }
  }
  return UndefinedItem(object, index);
}

Value Interpreter::EvalSequence(const ListExpr& expr) {
  Value* items = arena_->NewArray<Value>(expr.items.size());
  for (size_t i = 0; i < expr.items.size(); ++i) items[i] = Eval(expr.items[i]);
  Kind kind = expr.kind == ExprKind::kList ? Kind::kList : Kind::kTuple;
  return Value::Of(kind, arena_->New<Items>(items, expr.items.size()));
}

Value Interpreter::EvalDict(const DictExpr& expr) {
  Dict* dict = arena_->New<Dict>();
  for (size_t i = 0; i < expr.keys.size(); ++i) {
    Value key = Eval(expr.keys[i]);
    DictSet(dict, key, Eval(expr.values[i]), arena_);
  }
  return Value::Of(dict);
}

CallArguments Interpreter::EvalArguments(const Arguments& arguments) {
  CallArguments out;
  if (arguments.empty()) return out;
  std::vector<Value> more;
  std::vector<NamedValue> more_named;
  if (arguments.star != nullptr || arguments.double_star != nullptr) {
    for (const Expr* expr : arguments.positional) more.push_back(Eval(expr));
    for (const KeywordArgument& k : arguments.keywords)
      more_named.push_back({k.name, Eval(k.value)});
    if (arguments.star != nullptr) {
      Value items = ListOf(*this, Eval(arguments.star));
      for (size_t i = 0; i < SequenceSize(items); ++i) more.push_back(SequenceItem(items, i));
    }
    if (arguments.double_star != nullptr) {
      Value dict = Eval(arguments.double_star);
      if (!dict.is_dict()) Fail("argument after ** must be a mapping");
      for (size_t i = 0; i < DictSize(dict); ++i) {
        Value key = DictKeyAt(dict, i);
        if (!key.is_string()) Fail("keywords must be strings");
        for (const NamedValue& other : more_named) {
          if (other.name == key.str()) Fail("got multiple values for a keyword argument");
        }
        more_named.push_back({key.str(), DictValueAt(dict, i)});
      }
    }
    Value list = NewList(more);
    out.positional = list.items->data;
    out.count = more.size();
    NamedValue* named = arena_->NewArray<NamedValue>(more_named.size());
    std::copy(more_named.begin(), more_named.end(), named);
    out.named = named;
    out.named_count = more_named.size();
    return out;
  }
  Value* positional = arena_->NewArray<Value>(arguments.positional.size());
  out.count = arguments.positional.size();
  for (size_t i = 0; i < out.count; ++i) positional[i] = Eval(arguments.positional[i]);
  out.positional = positional;
  out.named_count = arguments.keywords.size();
  if (out.named_count != 0) {
    NamedValue* named = arena_->NewArray<NamedValue>(out.named_count);
    for (size_t i = 0; i < out.named_count; ++i) {
      named[i] = {arguments.keywords[i].name, Eval(arguments.keywords[i].value)};
    }
    out.named = named;
  }
  return out;
}

Value Interpreter::EvalFilter(const FilterExpr& expr) {
  if (expr.function == nullptr) Fail("No filter named '", expr.name, "' found.");
  Value object = expr.object != nullptr ? Eval(expr.object) : captured_;
  return expr.function(*this, object, EvalArguments(expr.arguments));
}

bool Interpreter::EvalTestExpr(const TestExpr& expr) {
  if (expr.function == nullptr) Fail("No test named '", expr.name, "' found.");
  Value object = Eval(expr.object);
  return expr.function(*this, object, EvalArguments(expr.arguments));
}

bool Interpreter::CompareOnce(CompareOp op, Value left, Value right) {
  switch (op) {
    case CompareOp::kEq:
      return Equal(*this, left, right);
    case CompareOp::kNe:
      return !Equal(*this, left, right);
    case CompareOp::kIn:
      return Contains(*this, right, left);
    case CompareOp::kNotIn:
      return !Contains(*this, right, left);
    default:
      return Ordered(*this, op, left, right);
  }
}

bool Interpreter::EvalCompare(const CompareExpr& expr) {
  Value left = Eval(expr.first);
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    Value right = Eval(expr.operands[i]);
    if (!CompareOnce(expr.ops[i], left, right)) return false;
    left = right;
  }
  return true;
}

Value Interpreter::EvalAdd(const ListExpr& expr) {
  constexpr size_t kPieces = 32;
  std::string_view pieces[kPieces];
  Value value = Eval(expr.items[0]);
  size_t i = 1;
  // Plain strings are joined at once; the first piece that is none ends that.
  while (i < expr.items.size() && value.is_string() && !value.is_markup()) {
    size_t count = 0;
    size_t total = value.size;
    pieces[count++] = value.str();
    Value next;
    for (; i < expr.items.size() && count < kPieces; ++i) {
      next = Eval(expr.items[i]);
      if (!next.is_string() || next.is_markup()) break;
      total += next.size;
      pieces[count++] = next.str();
    }
    const bool stopped = i < expr.items.size() && count < kPieces;
    if (count > 1) {
      char* to = arena_->NewChars(total);
      char* at = to;
      for (size_t p = 0; p < count; ++p) {
        at = std::copy(pieces[p].begin(), pieces[p].end(), at);
      }
      value = Value::String({to, total});
    }
    if (stopped) {
      value = Add(*this, value, next);
      ++i;
    }
  }
  for (; i < expr.items.size(); ++i) value = Add(*this, value, Eval(expr.items[i]));
  return value;
}

Value Interpreter::EvalConcat(const ListExpr& expr) {
  std::string text;
  for (const Expr* item : expr.items) {
    AppendStr(*this, Eval(item), &text);
    CheckSize(text);
  }
  return NewString(text);
}

}  // namespace portico::jinja
