// Filters on sequences and mappings.
#include <algorithm>

#include "base/stable_sort.h"
#include "template/builtin/attribute_path.h"
#include "template/builtin/filters.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict.h"
#include "template/value/dict_access.h"

namespace portico::jinja {
namespace {

Value FilterLength(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "len", {});
  return Value::Int(static_cast<int64_t>(LengthOf(in, v)));
}

Value FilterList(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "list", {});
  return ListOf(in, v);
}

Value FilterFirst(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "first", {});
  Iterator it(in, v);
  Value item;
  return it.Next(in, &item) ? item : in.Undefined("No first item, sequence was empty.");
}

bool IsReversible(Value v) {
  return v.is_sequence() || v.is_dict() || v.is(Kind::kDictView) || v.is(Kind::kRange);
}

Value Reversed(Interpreter& in, Value v) {
  return NewGenerator(in, GeneratorKind::kReverse, v, CallArguments());
}

Value ReversedText(Interpreter& in, Value v) {
  return Slice(in, v, Value::None(), Value::None(), Value::Int(-1));
}

Value FilterLast(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "last", {});
  Value item;
  if (v.is_string() || v.is_undefined()) {
    if (v.is_string() && Subscript(in, v, Value::Int(-1), &item)) return item;
    return in.Undefined("No last item, sequence was empty.");
  }
  if (!IsReversible(v)) Fail("'", TypeName(v), "' object is not reversible");
  if (!Reversed(in, v).generator->Next(in, &item)) {
    return in.Undefined("No last item, sequence was empty.");
  }
  return item;
}

Value FilterReverse(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "reverse", {});
  if (v.is_string()) return ReversedText(in, v);
  if (IsReversible(v)) return Reversed(in, v);
  if (!IsIterable(v)) Fail("argument must be iterable");
  Value list = ListOf(in, v);
  return ListOf(in, Reversed(in, list));
}

Value FilterJoin(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "join", {"d", "attribute"});
  std::string scratch;
  std::string_view separator = StrView(in, p.Get(0, Value::String({})), &scratch);
  Value attribute = p.Get(1);
  std::string out;
  Iterator it(in, v);
  bool first = true;
  for (Value item; it.Next(in, &item); first = false) {
    in.Step();
    if (!first) out.append(separator);
    AppendStr(in, ReadPath(in, item, attribute, Value::None()), &out);
    in.CheckSize(out);
  }
  return in.NewString(out);
}

// Items with what they are ordered by.
struct Keyed {
  Value key;
  Value item;
};

// `ties`: two undefined keys are equal; else they cannot be compared.
Value SortedItems(Interpreter& in, std::vector<Keyed>* items, bool reverse, bool ties = false) {
  in.Step(items->size() * 4);
  // A stable sort in either direction keeps equal items in their order.
  StableSort(items, [&](const Keyed& a, const Keyed& b) {
    in.Step();
    if (ties && a.key.is_undefined() && b.key.is_undefined()) return false;
    return reverse ? Ordered(in, CompareOp::kLt, b.key, a.key)
                   : Ordered(in, CompareOp::kLt, a.key, b.key);
  });
  std::vector<Value> sorted;
  for (const Keyed& keyed : *items) sorted.push_back(keyed.item);
  return in.NewList(sorted);
}

// The key of a comma-separated list of attributes: a list of their values.
Value MultiKey(Interpreter& in, Value item, Value attribute, bool case_sensitive) {
  std::vector<Value> keys;
  auto add = [&](Value part) {
    Value key = ReadPath(in, item, part, Value::None());
    keys.push_back(case_sensitive ? key : IgnoreCase(in, key));
  };
  if (!attribute.is_string()) {
    add(attribute);
  } else {
    std::string_view rest = attribute.str();
    while (true) {
      size_t comma = rest.find(',');
      add(Value::String(rest.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return keys.size() == 1 ? keys[0] : in.NewList(keys);
}

Value FilterSort(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "sort", {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = IsTrue(p.Get(1, Value::Bool(false)));
  std::vector<Keyed> items;
  Iterator it(in, v);
  for (Value item; it.Next(in, &item);) {
    in.Step();
    items.push_back({MultiKey(in, item, p.Get(2), case_sensitive), item});
  }
  // Jinja2 compares lists of keys here, and lists compare their items for equality first.
  return SortedItems(in, &items, IsTrue(p.Get(0, Value::Bool(false))), /*ties=*/true);
}

Value FilterDictSort(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "dictsort", {"case_sensitive", "by", "reverse"});
  Value by = p.Get(1, Value::String("key"));
  const bool by_value = by.is_string() && by.str() == "value";
  if (!by_value && !(by.is_string() && by.str() == "key")) {
    Fail("You can only sort by either \"key\" or \"value\"");
  }
  if (v.is_undefined()) FailUndefined(v);
  if (!v.is_dict()) {
    Fail("'", TypeName(v), "' object has no attribute 'items'");
  }
  const bool case_sensitive = IsTrue(p.Get(0, Value::Bool(false)));
  std::vector<Keyed> items;
  for (size_t i = 0; i < DictSize(v); ++i) {
    in.Step();
    Value key = by_value ? DictValueAt(v, i) : DictKeyAt(v, i);
    if (!case_sensitive) key = IgnoreCase(in, key);
    items.push_back({key, in.NewPair(DictKeyAt(v, i), DictValueAt(v, i))});
  }
  return SortedItems(in, &items, IsTrue(p.Get(2, Value::Bool(false))));
}

Value FilterGroupBy(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = IsTrue(p.Get(2, Value::Bool(false)));
  std::vector<Keyed> items;
  Iterator it(in, v);
  for (Value item; it.Next(in, &item);) {
    in.Step();
    Value key = ReadPath(in, item, p.Get(0), p.Get(1));
    items.push_back({case_sensitive ? key : IgnoreCase(in, key), item});
  }
  Value sorted = SortedItems(in, &items, false);
  std::vector<Value> groups;
  for (size_t i = 0; i < items.size();) {
    size_t end = i + 1;
    while (end < items.size() && Equal(in, items[i].key, items[end].key)) ++end;
    Value key = case_sensitive ? items[i].key : ReadPath(in, items[i].item, p.Get(0), p.Get(1));
    Value members = Slice(in, sorted, Value::Int(static_cast<int64_t>(i)),
                          Value::Int(static_cast<int64_t>(end)), Value::None());
    groups.push_back(in.NewPair(key, members));
    i = end;
  }
  return in.NewList(groups);
}

Value MinOrMax(Interpreter& in, Value v, const CallArguments& arguments, CompareOp better) {
  Parameters p(arguments, "min", {"case_sensitive", "attribute"});
  const bool case_sensitive = IsTrue(p.Get(0, Value::Bool(false)));
  auto key_of = [&](Value item) {
    Value key = ReadPath(in, item, p.Get(1), Value::None());
    return case_sensitive ? key : IgnoreCase(in, key);
  };
  Iterator it(in, v);
  Value best;
  if (!it.Next(in, &best)) return in.Undefined("No aggregated item, sequence was empty.");
  Value best_key = key_of(best);
  for (Value item; it.Next(in, &item);) {
    in.Step();
    Value key = key_of(item);
    if (!Ordered(in, better, key, best_key)) continue;
    best = item;
    best_key = key;
  }
  return best;
}

Value FilterMin(Interpreter& in, Value v, const CallArguments& arguments) {
  return MinOrMax(in, v, arguments, CompareOp::kLt);
}

Value FilterMax(Interpreter& in, Value v, const CallArguments& arguments) {
  return MinOrMax(in, v, arguments, CompareOp::kGt);
}

Value FilterSum(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "sum", {"attribute", "start"});
  Value total = p.Get(1, Value::Int(0));
  if (total.is_string()) Fail("sum() can't sum strings [use ''.join(seq) instead]");
  Iterator it(in, v);
  for (Value item; it.Next(in, &item);) {
    in.Step();
    total = Add(in, total, ReadPath(in, item, p.Get(0), Value::None()));
  }
  return total;
}

template <GeneratorKind kKind>
Value FilterLazy(Interpreter& in, Value v, const CallArguments& arguments) {
  return NewGenerator(in, kKind, v, arguments);
}

Value FilterItems(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "items", {});
  return NewGenerator(in, GeneratorKind::kItems, v, arguments);
}

Value FilterUnique(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "unique", {"case_sensitive", "attribute"});
  Value generator = NewGenerator(in, GeneratorKind::kUnique, v, CallArguments());
  generator.generator->a = p.Get(0, Value::Bool(false));
  generator.generator->b = p.Get(1);
  return generator;
}

Value FilterBatch(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "batch", {"linecount", "fill_with"}, 1);
  Value generator = NewGenerator(in, GeneratorKind::kBatch, v, CallArguments());
  generator.generator->a = p.Get(0);
  generator.generator->b = p.Get(1);
  return generator;
}

Value FilterSlice(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "slice", {"slices", "fill_with"}, 1);
  Value generator = NewGenerator(in, GeneratorKind::kSlice, v, CallArguments());
  generator.generator->a = p.Get(0);
  generator.generator->b = p.Get(1);
  return generator;
}

constexpr NamedFilter kFilters[] = {
    {"batch", FilterBatch},
    {"count", FilterLength},
    {"dictsort", FilterDictSort},
    {"first", FilterFirst},
    {"groupby", FilterGroupBy},
    {"items", FilterItems},
    {"join", FilterJoin},
    {"last", FilterLast},
    {"length", FilterLength},
    {"list", FilterList},
    {"map", FilterLazy<GeneratorKind::kMap>},
    {"max", FilterMax},
    {"min", FilterMin},
    {"reject", FilterLazy<GeneratorKind::kReject>},
    {"rejectattr", FilterLazy<GeneratorKind::kRejectAttr>},
    {"reverse", FilterReverse},
    {"select", FilterLazy<GeneratorKind::kSelect>},
    {"selectattr", FilterLazy<GeneratorKind::kSelectAttr>},
    {"slice", FilterSlice},
    {"sort", FilterSort},
    {"sum", FilterSum},
    {"unique", FilterUnique},
};

}  // namespace

std::span<const NamedFilter> SequenceFilters() { return kFilters; }

}  // namespace portico::jinja
