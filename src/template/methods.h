// Methods of values.
#pragma once

#include "template/arguments.h"
#include "template/members.h"
#include "template/value.h"

namespace portico::jinja {

class Interpreter;

Value CallStringMethod(Interpreter& in, Value text, Member member, const CallArguments& arguments);
Value CallDictMethod(Interpreter& in, Value dict, Member member, const CallArguments& arguments);
Value CallOtherMethod(Interpreter& in, Value object, Member member, const CallArguments& arguments);

// Pieces that filters share with methods.
enum StripSides : uint8_t { kStripLeft = 1, kStripRight = 2, kStripBoth = 3 };
// `characters` is None for white space.
Value StripText(Value text, Value characters, StripSides sides);
Value ReplaceText(Interpreter& in, std::string_view text, std::string_view from,
                  std::string_view to, int64_t count, uint8_t flags);
Value SplitLines(Interpreter& in, std::string_view text, bool keep_ends, uint8_t flags);
Value CenterText(Interpreter& in, Value text, int64_t width, std::string_view fill, Member how);

}  // namespace portico::jinja
