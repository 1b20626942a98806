#include <algorithm>

#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"
#include "text/utf8.h"

namespace portico::jinja {
namespace {

// Python's clipping of slice bounds.
struct Bounds {
  int64_t start, stop, step, count;
};

int64_t Bound(Value v) {
  if (v.is_small_int()) return v.small_int();
  if (v.is(Kind::kBigInt)) return v.big->negative ? INT64_MIN : INT64_MAX;
  if (v.is_undefined()) FailUndefined(v);
  Fail("slice indices must be integers or None or have an __index__ method");
}

Bounds Clip(Value start, Value stop, Value step, int64_t length) {
  Bounds b{};
  b.step = step.is_none() ? 1 : Bound(step);
  if (b.step == 0) Fail("slice step cannot be zero");
  b.step = std::max(b.step, -INT64_MAX);
  const int64_t low = b.step < 0 ? -1 : 0;
  const int64_t high = b.step < 0 ? length - 1 : length;
  auto clip = [&](Value v, int64_t fallback) {
    if (v.is_none()) return fallback;
    int64_t i = Bound(v);
    if (i < 0) return i + length < low ? low : i + length;
    return std::min(i, high);
  };
  b.start = clip(start, b.step < 0 ? high : low);
  b.stop = clip(stop, b.step < 0 ? low : high);
  if (b.step > 0 && b.start < b.stop) b.count = (b.stop - b.start - 1) / b.step + 1;
  if (b.step < 0 && b.start > b.stop) b.count = (b.start - b.stop - 1) / -b.step + 1;
  return b;
}

Value SliceString(Interpreter& in, Value v, Value start, Value stop, Value step) {
  std::string_view text = v.str();
  size_t length = Length(text);
  Bounds b = Clip(start, stop, step, static_cast<int64_t>(length));
  if (b.count == 0) return Value::String({}, v.flags);
  const bool ascii = length == text.size();
  if (b.step == 1) {
    size_t from = static_cast<size_t>(b.start);
    size_t count = static_cast<size_t>(b.count);
    if (!ascii) {
      from = ByteOffset(text, from);
      count = ByteOffset(text.substr(from), count);
    }
    return Value::String(text.substr(from, count), v.flags);
  }
  in.Step(length / 8);
  std::string out;
  if (ascii) {
    for (int64_t i = 0; i < b.count; ++i) {
      out.push_back(text[static_cast<size_t>(b.start + i * b.step)]);
    }
  } else {
    std::vector<size_t> starts;
    for (size_t i = 0; i < text.size(); ++i) {
      if (!IsTailByte(text[i])) starts.push_back(i);
    }
    starts.push_back(text.size());
    for (int64_t i = 0; i < b.count; ++i) {
      size_t at = static_cast<size_t>(b.start + i * b.step);
      out.append(text.substr(starts[at], starts[at + 1] - starts[at]));
    }
  }
  return in.NewString(out, v.flags);
}

bool SubscriptString(Value v, int64_t index, Value* out) {
  std::string_view text = v.str();
  size_t length = Length(text);
  if (index < 0) index += static_cast<int64_t>(length);
  if (index < 0 || index >= static_cast<int64_t>(length)) return false;
  size_t at = static_cast<size_t>(index);
  if (length != text.size()) at = ByteOffset(text, at);
  size_t size;
  CodePointAt(text, at, &size);
  *out = Value::String(text.substr(at, size), v.flags);
  return true;
}

// Deeper keys have no hash either.
constexpr int kMaxKeyDepth = 100;

bool IsHashable(Value v, int depth = 0) {
  if (v.is(Kind::kTuple)) {
    if (depth > kMaxKeyDepth) LimitReached("values are nested too deeply");
    return std::all_of(v.items->data, v.items->data + v.items->size,
                       [depth](Value item) { return IsHashable(item, depth + 1); });
  }
  return !v.is_list() && !v.is_dict() && !v.is(Kind::kDictView);
}

}  // namespace

bool Subscript(Interpreter& in, Value v, Value index, Value* out) {
  switch (v.kind) {
    case Kind::kUndefined:
      FailUndefined(v);
    case Kind::kDict:
    case Kind::kJsonDict:
      return IsHashable(index) && DictLookup(in, v, index, out);
    case Kind::kString:
      return index.is_small_int() && SubscriptString(v, index.small_int(), out);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kJsonList: {
      if (!index.is_small_int()) return false;
      int64_t size = static_cast<int64_t>(SequenceSize(v));
      int64_t i = index.small_int();
      if (i < 0) i += size;
      if (i < 0 || i >= size) return false;
      *out = SequenceItem(v, static_cast<size_t>(i));
      return true;
    }
    case Kind::kRange: {
      if (!index.is_small_int()) return false;
      int64_t i = index.small_int();
      if (i < 0) i += v.range->count;
      if (i < 0 || i >= v.range->count) return false;
      *out = Value::Int(v.range->start + i * v.range->step);
      return true;
    }
    case Kind::kSelf:
      for (const BlockStmt* block : in.program().blocks) {
        if (!index.is_string() || index.str() != block->name) continue;
        *out = Value(Kind::kBlock);
        out->block = in.arena().New<Block>(block);
        return true;
      }
      return false;
    default:
      return false;
  }
}

Value Slice(Interpreter& in, Value v, Value start, Value stop, Value step) {
  if (v.is_string()) return SliceString(in, v, start, stop, step);
  if (v.is_undefined()) FailUndefined(v);
  if (v.is(Kind::kRange)) {
    Bounds b = Clip(start, stop, step, v.range->count);
    // Without overflow; Python's integers have no end.
    auto times = [](int64_t i, int64_t factor) {
      return static_cast<uint64_t>(i) * static_cast<uint64_t>(factor);
    };
    auto at = [&](int64_t i) {
      return static_cast<int64_t>(static_cast<uint64_t>(v.range->start) + times(i, v.range->step));
    };
    Value out(Kind::kRange);
    out.range = in.arena().New<Range>(
        at(b.start), static_cast<int64_t>(times(v.range->step, b.step)), b.count, at(b.stop));
    return out;
  }
  if (!v.is_sequence()) {
    if (v.is_dict()) Fail("unhashable type: 'slice'");
    Fail("'", TypeName(v), "' object is not subscriptable");
  }
  Bounds b = Clip(start, stop, step, static_cast<int64_t>(SequenceSize(v)));
  size_t count = static_cast<size_t>(b.count);
  Kind kind = v.is_list() ? Kind::kList : Kind::kTuple;
  if (b.step == 1 && !v.is(Kind::kJsonList)) {
    return Value::Of(kind, in.arena().New<Items>(v.items->data + b.start, count));
  }
  in.Step(count / 8);
  Value* items = in.arena().NewArray<Value>(count);
  for (size_t i = 0; i < count; ++i) {
    items[i] = SequenceItem(v, static_cast<size_t>(b.start + static_cast<int64_t>(i) * b.step));
  }
  return Value::Of(kind, in.arena().New<Items>(items, count));
}

}  // namespace portico::jinja
