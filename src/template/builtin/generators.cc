// The lazy filters: map, select, selectattr and their kin, items, unique, batch, slice, reverse.
#include "template/builtin/attribute_path.h"
#include "template/run/interpreter.h"
#include "template/run/iteration.h"
#include "template/value/dict.h"
#include "template/value/dict_access.h"

namespace portico::jinja {
namespace {

CallArguments Rest(const CallArguments& arguments, size_t skip) {
  CallArguments rest = arguments;
  rest.positional += skip;
  rest.count -= skip;
  return rest;
}

const Value* FindNamed(const CallArguments& arguments, std::string_view name) {
  for (size_t i = 0; i < arguments.named_count; ++i) {
    if (arguments.named[i].name == name) return &arguments.named[i].value;
  }
  return nullptr;
}

Value Map(Interpreter& in, const Generator& g, Value item) {
  const Value* attribute = FindNamed(g.arguments, "attribute");
  if (g.arguments.count == 0 && attribute != nullptr) {
    const Value* fallback = FindNamed(g.arguments, "default");
    if (g.arguments.named_count > (fallback ? 2u : 1u)) Fail("Unexpected keyword argument");
    return ReadPath(in, item, *attribute, fallback ? *fallback : Value::None());
  }
  if (g.arguments.count == 0) Fail("map requires a filter argument");
  return in.ApplyFilter(g.arguments.positional[0], item, Rest(g.arguments, 1));
}

bool Selects(Interpreter& in, const Generator& g, Value item) {
  const bool by_attribute =
      g.kind == GeneratorKind::kSelectAttr || g.kind == GeneratorKind::kRejectAttr;
  const bool keep = g.kind == GeneratorKind::kSelect || g.kind == GeneratorKind::kSelectAttr;
  size_t used = 0;
  if (by_attribute) {
    if (g.arguments.count == 0) Fail("Missing parameter for attribute name");
    item = ReadPath(in, item, g.arguments.positional[0], Value::None());
    used = 1;
  }
  bool holds = g.arguments.count > used
                   ? in.ApplyTest(g.arguments.positional[used], item, Rest(g.arguments, used + 1))
                   : IsTrue(item);
  return holds == keep;
}

bool NextUnique(Interpreter& in, Generator* g, Value* out) {
  if (g->seen == nullptr) g->seen = in.arena().New<Dict>();
  while (g->iterator.Next(in, out)) {
    in.Step();
    Value key = ReadPath(in, *out, g->b, Value::None());
    if (!IsTrue(g->a)) key = IgnoreCase(in, key);
    uint32_t before = g->seen->size;
    DictSet(g->seen, key, Value::None(), &in.arena());
    if (g->seen->size != before) return true;
  }
  return false;
}

bool NextBatch(Interpreter& in, Generator* g, Value* out) {
  const int64_t size = ToIndex(g->a, "linecount");
  std::vector<Value> row;
  Value item;
  // A row is given out when the item after it is there.
  if (!g->c.is(Kind::kMissing)) {
    row.push_back(g->c);
    g->c = Value();
  }
  while (g->iterator.Next(in, &item)) {
    in.Step();
    if (static_cast<int64_t>(row.size()) == size) {
      g->c = item;
      *out = in.NewList(row);
      return true;
    }
    row.push_back(item);
  }
  if (row.empty()) return false;
  if (!g->b.is_none()) {
    while (static_cast<int64_t>(row.size()) < size) {
      in.Step();
      row.push_back(g->b);
    }
  }
  *out = in.NewList(row);
  return true;
}

bool NextSlice(Interpreter& in, Generator* g, Value* out) {
  const int64_t slices = ToIndex(g->a, "slices");
  if (g->position == 0) g->c = ListOf(in, g->source);
  const int64_t length = static_cast<int64_t>(SequenceSize(g->c));
  if (slices == 0) Fail("integer division or modulo by zero");
  const int64_t at = static_cast<int64_t>(g->position);
  if (at >= slices) return false;
  in.Step();
  const int64_t each = length / slices;
  const int64_t extra = length % slices;
  const int64_t start = at * each + std::min(at, extra);
  const int64_t size = each + (at < extra ? 1 : 0);
  std::vector<Value> part(g->c.items->data + start, g->c.items->data + start + size);
  if (!g->b.is_none() && at >= extra) part.push_back(g->b);
  *out = in.NewList(part);
  ++g->position;
  return true;
}

bool NextReverse(Interpreter& in, Generator* g, Value* out) {
  if (g->position == 0) return false;
  --g->position;
  Value source = g->source;
  if (source.is_sequence()) {
    *out = SequenceItem(source, g->position);
  } else if (source.is_dict()) {
    *out = DictKeyAt(source, g->position);
  } else if (source.is(Kind::kDictView)) {
    *out = ViewItemAt(in, source, g->position);
  } else {
    *out = Value::Int(source.range->start + static_cast<int64_t>(g->position) * source.range->step);
  }
  return true;
}

void Start(Interpreter& in, Generator* g) {
  g->started = true;
  if (g->kind == GeneratorKind::kReverse) {
    g->position = LengthOf(in, g->source);
    return;
  }
  if (g->kind == GeneratorKind::kSlice) return;
  if (g->kind == GeneratorKind::kItems) {
    if (g->source.is_undefined()) {
      g->finished = true;
      return;
    }
    if (!g->source.is_dict()) Fail("Can only get item pairs from a mapping.");
    Value view(Kind::kDictView);
    view.flags = kItemsView;
    view.viewed = in.arena().New<Value>(g->source);
    g->iterator = Iterator(in, view);
    return;
  }
  const bool eager = g->kind == GeneratorKind::kUnique || g->kind == GeneratorKind::kBatch;
  if (!eager && !IsTrue(g->source)) {
    g->finished = true;
    return;
  }
  g->iterator = Iterator(in, g->source);
}

}  // namespace

bool Generator::Next(Interpreter& in, Value* out) {
  if (!started) Start(in, this);
  if (finished) return false;
  in.Step();
  bool more = false;
  switch (kind) {
    case GeneratorKind::kMap:
      more = iterator.Next(in, out);
      if (more) *out = Map(in, *this, *out);
      break;
    case GeneratorKind::kSelect:
    case GeneratorKind::kReject:
    case GeneratorKind::kSelectAttr:
    case GeneratorKind::kRejectAttr:
      do {
        in.Step();
        more = iterator.Next(in, out);
      } while (more && !Selects(in, *this, *out));
      break;
    case GeneratorKind::kItems:
      more = iterator.Next(in, out);
      break;
    case GeneratorKind::kUnique:
      more = NextUnique(in, this, out);
      break;
    case GeneratorKind::kBatch:
      more = NextBatch(in, this, out);
      break;
    case GeneratorKind::kSlice:
      more = NextSlice(in, this, out);
      break;
    case GeneratorKind::kReverse:
      more = NextReverse(in, this, out);
      break;
  }
  finished = !more;
  return more;
}

Value NewGenerator(Interpreter& in, GeneratorKind kind, Value source,
                   const CallArguments& arguments) {
  Generator* g = in.arena().New<Generator>();
  g->kind = kind;
  g->source = source;
  g->arguments = arguments;
  Value v(Kind::kGenerator);
  v.generator = g;
  return v;
}

}  // namespace portico::jinja
