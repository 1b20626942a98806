#include "template/builtin/members.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace portico::jinja {
namespace {

enum TypeMask : uint16_t {
  kStr = 1,
  kList = 2,
  kTuple = 4,
  kDict = 8,
  kInt = 16,
  kFloat = 32,
  kRange = 64,
  kLoop = 128,
  kCycler = 256,
  kMacro = 512,
  kDictType = 1024,
  kUndefinedType = 2048,
};

struct Entry {
  std::string_view name;
  Member member;
  uint16_t types;
};

// Sorted by name.
constexpr Entry kEntries[] = {
    {"__add__", Member::kUnsafe, kUndefinedType},
    {"__aiter__", Member::kUnsafe, kUndefinedType},
    {"__bool__", Member::kUnsafe, kUndefinedType},
    {"__call__", Member::kUnsafe, kUndefinedType},
    {"__class__", Member::kUnsafe, kUndefinedType},
    {"__complex__", Member::kUnsafe, kUndefinedType},
    {"__delattr__", Member::kUnsafe, kUndefinedType},
    {"__dir__", Member::kUnsafe, kUndefinedType},
    {"__div__", Member::kUnsafe, kUndefinedType},
    {"__doc__", Member::kUnsafe, kUndefinedType},
    {"__eq__", Member::kUnsafe, kUndefinedType},
    {"__float__", Member::kUnsafe, kUndefinedType},
    {"__floordiv__", Member::kUnsafe, kUndefinedType},
    {"__format__", Member::kUnsafe, kUndefinedType},
    {"__ge__", Member::kUnsafe, kUndefinedType},
    {"__getattr__", Member::kUnsafe, kUndefinedType},
    {"__getattribute__", Member::kUnsafe, kUndefinedType},
    {"__getitem__", Member::kUnsafe, kUndefinedType},
    {"__getstate__", Member::kUnsafe, kUndefinedType},
    {"__gt__", Member::kUnsafe, kUndefinedType},
    {"__hash__", Member::kUnsafe, kUndefinedType},
    {"__init__", Member::kUnsafe, kUndefinedType},
    {"__init_subclass__", Member::kUnsafe, kUndefinedType},
    {"__int__", Member::kUnsafe, kUndefinedType},
    {"__iter__", Member::kUnsafe, kUndefinedType},
    {"__le__", Member::kUnsafe, kUndefinedType},
    {"__len__", Member::kUnsafe, kUndefinedType},
    {"__lt__", Member::kUnsafe, kUndefinedType},
    {"__mod__", Member::kUnsafe, kUndefinedType},
    {"__module__", Member::kUnsafe, kUndefinedType},
    {"__mul__", Member::kUnsafe, kUndefinedType},
    {"__ne__", Member::kUnsafe, kUndefinedType},
    {"__neg__", Member::kUnsafe, kUndefinedType},
    {"__new__", Member::kUnsafe, kUndefinedType},
    {"__pos__", Member::kUnsafe, kUndefinedType},
    {"__pow__", Member::kUnsafe, kUndefinedType},
    {"__radd__", Member::kUnsafe, kUndefinedType},
    {"__rdiv__", Member::kUnsafe, kUndefinedType},
    {"__reduce__", Member::kUnsafe, kUndefinedType},
    {"__reduce_ex__", Member::kUnsafe, kUndefinedType},
    {"__repr__", Member::kUnsafe, kUndefinedType},
    {"__rfloordiv__", Member::kUnsafe, kUndefinedType},
    {"__rmod__", Member::kUnsafe, kUndefinedType},
    {"__rmul__", Member::kUnsafe, kUndefinedType},
    {"__rpow__", Member::kUnsafe, kUndefinedType},
    {"__rsub__", Member::kUnsafe, kUndefinedType},
    {"__rtruediv__", Member::kUnsafe, kUndefinedType},
    {"__setattr__", Member::kUnsafe, kUndefinedType},
    {"__sizeof__", Member::kUnsafe, kUndefinedType},
    {"__slots__", Member::kUnsafe, kUndefinedType},
    {"__str__", Member::kUnsafe, kUndefinedType},
    {"__sub__", Member::kUnsafe, kUndefinedType},
    {"__subclasshook__", Member::kUnsafe, kUndefinedType},
    {"__truediv__", Member::kUnsafe, kUndefinedType},
    {"_fail_with_undefined_error", Member::kUnsafe, kUndefinedType},
    {"_undefined_exception", Member::kUnsafe, kUndefinedType},
    {"_undefined_hint", Member::kUnsafe, kUndefinedType},
    {"_undefined_message", Member::kUnsafe, kUndefinedType},
    {"_undefined_name", Member::kUnsafe, kUndefinedType},
    {"_undefined_obj", Member::kUnsafe, kUndefinedType},
    {"append", Member::kUnsafe, kList},
    {"arguments", Member::kMacroArguments, kMacro},
    {"as_integer_ratio", Member::kUnsafe, kInt | kFloat},
    {"bit_count", Member::kBitCount, kInt},
    {"bit_length", Member::kBitLength, kInt},
    {"caller", Member::kMacroCaller, kMacro},
    {"capitalize", Member::kCapitalize, kStr},
    {"casefold", Member::kCasefold, kStr},
    {"catch_kwargs", Member::kMacroCatchKwargs, kMacro},
    {"catch_varargs", Member::kMacroCatchVarargs, kMacro},
    {"center", Member::kCenter, kStr},
    {"changed", Member::kLoopChanged, kLoop},
    {"clear", Member::kUnsafe, kList | kDict},
    {"conjugate", Member::kConjugate, kInt | kFloat},
    {"copy", Member::kCopy, kList | kDict},
    {"count", Member::kCount, kStr | kList | kTuple | kRange},
    {"current", Member::kCyclerCurrent, kCycler},
    {"cycle", Member::kLoopCycle, kLoop},
    {"denominator", Member::kDenominator, kInt},
    {"depth", Member::kLoopDepth, kLoop},
    {"depth0", Member::kLoopDepth0, kLoop},
    {"encode", Member::kUnsafe, kStr},
    {"endswith", Member::kEndswith, kStr},
    {"expandtabs", Member::kExpandtabs, kStr},
    {"extend", Member::kUnsafe, kList},
    {"find", Member::kFind, kStr},
    {"first", Member::kLoopFirst, kLoop},
    {"format", Member::kFormat, kStr},
    {"format_map", Member::kFormatMap, kStr},
    {"from_bytes", Member::kUnsafe, kInt},
    {"fromhex", Member::kUnsafe, kFloat},
    {"fromkeys", Member::kFromkeys, kDict | kDictType},
    {"get", Member::kGet, kDict},
    {"hex", Member::kUnsafe, kFloat},
    {"imag", Member::kImag, kInt | kFloat},
    {"index", Member::kIndex, kStr | kList | kTuple | kRange | kLoop},
    {"index0", Member::kLoopIndex0, kLoop},
    {"insert", Member::kUnsafe, kList},
    {"is_integer", Member::kIsInteger, kFloat},
    {"isalnum", Member::kIsalnum, kStr},
    {"isalpha", Member::kIsalpha, kStr},
    {"isascii", Member::kIsascii, kStr},
    {"isdecimal", Member::kIsdecimal, kStr},
    {"isdigit", Member::kIsdigit, kStr},
    {"isidentifier", Member::kIsidentifier, kStr},
    {"islower", Member::kIslower, kStr},
    {"isnumeric", Member::kIsnumeric, kStr},
    {"isprintable", Member::kIsprintable, kStr},
    {"isspace", Member::kIsspace, kStr},
    {"istitle", Member::kIstitle, kStr},
    {"isupper", Member::kIsupper, kStr},
    {"items", Member::kItems, kDict},
    {"join", Member::kJoin, kStr},
    {"keys", Member::kKeys, kDict},
    {"last", Member::kLoopLast, kLoop},
    {"length", Member::kLoopLength, kLoop},
    {"ljust", Member::kLjust, kStr},
    {"lower", Member::kLower, kStr},
    {"lstrip", Member::kLstrip, kStr},
    {"maketrans", Member::kUnsafe, kStr},
    {"name", Member::kMacroName, kMacro},
    {"next", Member::kCyclerNext, kCycler},
    {"nextitem", Member::kLoopNextitem, kLoop},
    {"numerator", Member::kNumerator, kInt},
    {"partition", Member::kPartition, kStr},
    {"pop", Member::kUnsafe, kList | kDict},
    {"popitem", Member::kUnsafe, kDict},
    {"previtem", Member::kLoopPrevitem, kLoop},
    {"real", Member::kReal, kInt | kFloat},
    {"remove", Member::kUnsafe, kList},
    {"removeprefix", Member::kRemoveprefix, kStr},
    {"removesuffix", Member::kRemovesuffix, kStr},
    {"replace", Member::kReplace, kStr},
    {"reset", Member::kCyclerReset, kCycler},
    {"reverse", Member::kUnsafe, kList},
    {"revindex", Member::kLoopRevindex, kLoop},
    {"revindex0", Member::kLoopRevindex0, kLoop},
    {"rfind", Member::kRfind, kStr},
    {"rindex", Member::kRindex, kStr},
    {"rjust", Member::kRjust, kStr},
    {"rpartition", Member::kRpartition, kStr},
    {"rsplit", Member::kRsplit, kStr},
    {"rstrip", Member::kRstrip, kStr},
    {"setdefault", Member::kUnsafe, kDict},
    {"sort", Member::kUnsafe, kList},
    {"split", Member::kSplit, kStr},
    {"splitlines", Member::kSplitlines, kStr},
    {"start", Member::kStart, kRange},
    {"startswith", Member::kStartswith, kStr},
    {"step", Member::kStep, kRange},
    {"stop", Member::kStop, kRange},
    {"strip", Member::kStrip, kStr},
    {"swapcase", Member::kSwapcase, kStr},
    {"title", Member::kTitle, kStr},
    {"to_bytes", Member::kUnsafe, kInt},
    {"translate", Member::kUnsafe, kStr},
    {"update", Member::kUnsafe, kDict},
    {"upper", Member::kUpper, kStr},
    {"values", Member::kValues, kDict},
    {"zfill", Member::kZfill, kStr},
};

const Entry* Find(std::string_view name) {
  auto it = std::lower_bound(std::begin(kEntries), std::end(kEntries), name,
                             [](const Entry& e, std::string_view n) { return e.name < n; });
  return it != std::end(kEntries) && it->name == name ? it : nullptr;
}

// Types by Member, for all names but those of kUnsafe.
constexpr auto kTypesOfMember = [] {
  std::array<uint16_t, 256> types{};
  for (const Entry& entry : kEntries) types[static_cast<size_t>(entry.member)] |= entry.types;
  return types;
}();

uint16_t TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kString:
      return kStr;
    case Kind::kList:
    case Kind::kJsonList:
      return kList;
    case Kind::kTuple:
      return kTuple;
    case Kind::kDict:
    case Kind::kJsonDict:
      return kDict;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt:
      return kInt;
    case Kind::kFloat:
      return kFloat;
    case Kind::kRange:
      return kRange;
    case Kind::kLoop:
      return kLoop;
    case Kind::kCycler:
      return kCycler;
    case Kind::kMacro:
      return kMacro;
    case Kind::kFunction:
      return kDictType;
    case Kind::kUndefined:
      return kUndefinedType;
    default:
      return 0;
  }
}

}  // namespace

Member FindMember(std::string_view name) {
  const Entry* entry = Find(name);
  return entry ? entry->member : Member::kNone;
}

bool HasMember(Value object, Member member, std::string_view name) {
  if (member == Member::kNone) return false;
  uint16_t types = kTypesOfMember[static_cast<size_t>(member)];
  if (member == Member::kUnsafe) {
    const Entry* entry = Find(name);
    types = entry ? entry->types : 0;
  }
  return (types & TypeOf(object.kind)) != 0;
}

}  // namespace portico::jinja
