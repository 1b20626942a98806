#include "template/builtin/globals.h"

#include <array>

#include "template/builtin/clock.h"
#include "template/run/interpreter.h"
#include "template/value/dict.h"
#include "template/value/dict_access.h"

namespace portico::jinja {
namespace {

constexpr uint64_t kMaxRange = 100'000;  // as Jinja's sandbox has it

enum class Global : int64_t {
  kRange,
  kDict,
  kCycler,
  kJoiner,
  kNamespace,
  kRaiseException,
  kStrftimeNow,
  kLipsum,
};
constexpr std::array<std::string_view, 8> kNames = {
    "range", "dict", "cycler", "joiner", "namespace", "raise_exception", "strftime_now", "lipsum"};

Value MakeRange(Interpreter& in, const CallArguments& arguments) {
  if (arguments.named_count != 0) Fail("range() takes no keyword arguments");
  if (arguments.count == 0 || arguments.count > 3) Fail("range expected 1 to 3 arguments");
  int64_t bounds[3] = {0, 0, 1};
  if (arguments.count == 1) {
    bounds[1] = ToIndex(arguments.positional[0], "range");
  } else {
    for (size_t i = 0; i < arguments.count; ++i) {
      bounds[i] = ToIndex(arguments.positional[i], "range");
    }
  }
  auto [start, stop, step] = bounds;
  if (step == 0) Fail("range() arg 3 must not be zero");
  uint64_t count = 0;
  if (step > 0 ? start < stop : start > stop) {
    uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
    uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    count = (distance - 1) / stride + 1;
  }
  if (count > kMaxRange) {
    Fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  }
  Value v(Kind::kRange);
  v.range = in.arena().New<Range>(start, step, static_cast<int64_t>(count), stop);
  return v;
}

Value MakeCycler(Interpreter& in, const CallArguments& arguments) {
  if (arguments.count == 0) Fail("at least one item has to be provided");
  Value items = in.NewList(arguments.positional, arguments.count);
  Value v(Kind::kCycler);
  v.cycler = in.arena().New<Cycler>(items.items, size_t{0});
  return v;
}

Value MakeJoiner(Interpreter& in, const CallArguments& arguments) {
  Parameters parameters(arguments, "joiner", {"sep"});
  Value v(Kind::kJoiner);
  v.joiner = in.arena().New<Joiner>(parameters.Get(0, Value::String(", ")), false);
  return v;
}

[[noreturn]] void RaiseException(Interpreter& in, const CallArguments& arguments) {
  Parameters parameters(arguments, "raise_exception", {"message"}, 1);
  std::string message;
  AppendStr(in, parameters.Get(0), &message);
  throw Failure{StatusCode::kInvalidArgument, std::move(message)};
}

Value StrftimeNow(Interpreter& in, const CallArguments& arguments) {
  Parameters parameters(arguments, "strftime_now", {"format"}, 1);
  Value format = parameters.Get(0);
  if (!format.is_string()) Fail("strftime() argument 1 must be str");
  return in.NewString(FormatNow(std::string(format.str()), in.options().now));
}

}  // namespace

std::span<const std::string_view> GlobalNames() { return kNames; }

Value GlobalValue(size_t index) {
  Value v(Kind::kFunction);
  v.i = static_cast<int64_t>(index);
  return v;
}

void CheckNamespaceName(std::string_view name) {
  if (name.starts_with('_')) {
    Fail("namespace attribute '", name, "' is not allowed");
  }
}

Dict* BuildDict(Interpreter& in, const CallArguments& arguments) {
  Dict* dict = in.arena().New<Dict>();
  if (arguments.count > 1) Fail("dict expected at most 1 argument");
  if (arguments.count == 1) {
    Value from = arguments.positional[0];
    if (from.is_dict()) {
      for (size_t i = 0; i < DictSize(from); ++i) {
        in.Step();
        DictSet(dict, DictKeyAt(from, i), DictValueAt(from, i), &in.arena());
      }
    } else {
      Iterator it(in, from);
      for (Value pair; it.Next(in, &pair);) {
        in.Step();
        Value items = ListOf(in, pair);
        if (SequenceSize(items) != 2) Fail("dictionary update sequence element has wrong length");
        DictSet(dict, SequenceItem(items, 0), SequenceItem(items, 1), &in.arena());
      }
    }
  }
  for (size_t i = 0; i < arguments.named_count; ++i) {
    DictSet(dict, Value::String(arguments.named[i].name), arguments.named[i].value, &in.arena());
  }
  return dict;
}

Value CallGlobal(Interpreter& in, Value function, const CallArguments& arguments) {
  switch (static_cast<Global>(function.i)) {
    case Global::kRange:
      return MakeRange(in, arguments);
    case Global::kDict:
      return Value::Of(BuildDict(in, arguments));
    case Global::kCycler:
      return MakeCycler(in, arguments);
    case Global::kJoiner:
      return MakeJoiner(in, arguments);
    case Global::kNamespace: {
      Dict* dict = BuildDict(in, arguments);
      for (uint32_t i = 0; i < dict->size; ++i) {
        if (dict->entries[i].key.is_string()) CheckNamespaceName(dict->entries[i].key.str());
      }
      return Value::Of(dict, Kind::kNamespace);
    }
    case Global::kRaiseException:
      RaiseException(in, arguments);
    case Global::kStrftimeNow:
      return StrftimeNow(in, arguments);
    case Global::kLipsum:
      break;
  }
  Fail("this function is not supported");
}

}  // namespace portico::jinja
