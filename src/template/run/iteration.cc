#include "template/run/iteration.h"

#include "template/run/interpreter.h"
#include "template/value/dict.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"

namespace portico::jinja {

bool IsIterable(Value v) {
  switch (v.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kJsonList:
    case Kind::kDict:
    case Kind::kJsonDict:
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kGenerator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

Iterator::Iterator(Interpreter& in, Value iterable) : source_(iterable) {
  switch (iterable.kind) {
    case Kind::kUndefined:
      break;
    case Kind::kString:
      size_ = iterable.size;
      break;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kJsonList:
    case Kind::kDict:
    case Kind::kJsonDict:
    case Kind::kDictView:
    case Kind::kRange:
      size_ = LengthOf(in, iterable);
      break;
    case Kind::kGenerator:
    case Kind::kLoop:
      break;
    default:
      Fail("'", TypeName(iterable), "' object is not iterable");
  }
}

bool Iterator::Next(Interpreter& in, Value* out) {
  if (source_.is(Kind::kGenerator) || source_.is(Kind::kLoop)) return NextOfLazy(in, out);
  if (position_ >= size_) return false;
  switch (source_.kind) {
    case Kind::kString: {
      size_t length;
      CodePointAt(source_.str(), position_, &length);
      *out = Value::String(source_.str().substr(position_, length));  // of marked-up text too
      position_ += length;
      return true;
    }
    case Kind::kList:
    case Kind::kTuple:
      *out = source_.items->data[position_];
      break;
    case Kind::kJsonList:
      *out = FromJson((*source_.json_list)[position_]);
      break;
    case Kind::kDict:
    case Kind::kJsonDict:
      *out = DictKeyAt(source_, position_);
      break;
    case Kind::kDictView:
      *out = ViewItemAt(in, source_, position_);
      break;
    default:
      *out =
          Value::Int(source_.range->start + static_cast<int64_t>(position_) * source_.range->step);
      break;
  }
  ++position_;
  return true;
}

bool Iterator::NextOfLazy(Interpreter& in, Value* out) {
  // What it takes its items from may be lazy too, and so on: a template can chain any number.
  const CallDepth depth(&in);
  if (source_.is(Kind::kGenerator)) return source_.generator->Next(in, out);
  // A loop yields pairs of the item and itself.
  Value item;
  if (!source_.loop->Next(in, &item)) return false;
  *out = in.NewPair(item, source_);
  return true;
}

Value ListOf(Interpreter& in, Value iterable) {
  if (iterable.is(Kind::kList)) return iterable;
  std::vector<Value> items;
  Iterator it(in, iterable);
  for (Value item; it.Next(in, &item);) {
    in.Step();
    if (items.size() == items.capacity()) in.arena().Charge(items.size() * sizeof(Value));
    items.push_back(item);
  }
  return in.NewList(items);
}

bool Loop::Advance(Interpreter& in, Value* out) {
  while (iterator.Next(in, out)) {
    in.Step();
    if (filter == nullptr) return true;
    in.Enter(filter->test_scope);
    in.Assign(filter->test_target, *out);
    if (in.EvalTest(filter->test)) return true;
  }
  return false;
}

bool Loop::Peek(Interpreter& in) {
  if (!has_after) {
    after_is_end = !Advance(in, &after);
    has_after = true;
  }
  return !after_is_end;
}

bool Loop::Next(Interpreter& in, Value* out) {
  if (has_after) {
    if (after_is_end) return false;
    *out = after;
    has_after = false;
  } else if (!Advance(in, out)) {
    return false;
  }
  ++index0;
  before = current;
  current = *out;
  return true;
}

int64_t Loop::Length(Interpreter& in) {
  if (has_length) return length;
  const CallDepth depth(&in);
  if (filter == nullptr && HasLength(iterable)) {
    length = static_cast<int64_t>(LengthOf(in, iterable));
  } else {
    // What is left becomes a list.
    std::vector<Value> rest;
    for (Value item; Advance(in, &item);) rest.push_back(item);
    length = static_cast<int64_t>(rest.size()) + index0 + 1 + (has_after && !after_is_end);
    filter = nullptr;
    iterator = Iterator(in, in.NewList(rest));
  }
  has_length = true;
  return length;
}

}  // namespace portico::jinja
