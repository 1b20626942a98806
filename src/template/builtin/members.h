// The attributes that Python's types and Jinja's objects have, by name.
#pragma once

#include <cstdint>
#include <string_view>

#include "template/value/value.h"

namespace portico::jinja {

enum class Member : uint8_t {
  kNone,
  // str
  kCapitalize,
  kCasefold,
  kCenter,
  kCount,
  kEndswith,
  kExpandtabs,
  kFind,
  kFormat,
  kFormatMap,
  kIndex,
  kIsalnum,
  kIsalpha,
  kIsascii,
  kIsdecimal,
  kIsdigit,
  kIsidentifier,
  kIslower,
  kIsnumeric,
  kIsprintable,
  kIsspace,
  kIstitle,
  kIsupper,
  kJoin,
  kLjust,
  kLower,
  kLstrip,
  kPartition,
  kRemoveprefix,
  kRemovesuffix,
  kReplace,
  kRfind,
  kRindex,
  kRjust,
  kRpartition,
  kRsplit,
  kRstrip,
  kSplit,
  kSplitlines,
  kStartswith,
  kStrip,
  kSwapcase,
  kTitle,
  kUpper,
  kZfill,
  // dict
  kGet,
  kItems,
  kKeys,
  kValues,
  kCopy,
  // numbers
  kBitLength,
  kIsInteger,
  kReal,
  kImag,
  kNumerator,
  kDenominator,
  kConjugate,
  kBitCount,
  // range
  kStart,
  kStop,
  kStep,
  // loop
  kLoopIndex0,
  kLoopLength,
  kLoopDepth,
  kLoopDepth0,
  kLoopRevindex,
  kLoopRevindex0,
  kLoopFirst,
  kLoopLast,
  kLoopPrevitem,
  kLoopNextitem,
  kLoopCycle,
  kLoopChanged,
  // cycler
  kCyclerNext,
  kCyclerCurrent,
  kCyclerReset,
  // macro
  kMacroName,
  kMacroArguments,
  kMacroCatchKwargs,
  kMacroCatchVarargs,
  kMacroCaller,
  // dict.fromkeys of the global
  kFromkeys,
  // There in Python, refused here: what changes a value, and what the sandbox or this engine does
  // not offer.
  kUnsafe,
};

// The member that `name` may be for some type, or kNone.
Member FindMember(std::string_view name);
// Whether Python's type of the value has it. `name` tells kUnsafe members apart.
bool HasMember(Value object, Member member, std::string_view name);

}  // namespace portico::jinja
