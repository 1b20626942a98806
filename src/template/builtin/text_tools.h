// What methods of str and filters on text share. `flags` mark the results as the text is marked.
#pragma once

#include <cstdint>
#include <string_view>

#include "template/builtin/arguments.h"
#include "template/builtin/members.h"
#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;

// The text of a string; throws Failure for anything else. `what` begins its message.
std::string_view TextArgument(Value v, std::string_view what);

enum StripSides : uint8_t { kStripLeft = 1, kStripRight = 2, kStripBoth = 3 };
// `characters` is None for white space.
Value StripText(Value text, Value characters, StripSides sides);
Value ReplaceText(Interpreter& in, std::string_view text, std::string_view from,
                  std::string_view to, int64_t count, uint8_t flags);
Value SplitLines(Interpreter& in, std::string_view text, bool keep_ends, uint8_t flags);
Value CenterText(Interpreter& in, Value text, int64_t width, std::string_view fill, Member how);

// The parameters are sep and maxsplit.
Value SplitText(Interpreter& in, std::string_view text, const Parameters& parameters,
                bool from_right, uint8_t flags);
Value PartitionText(Interpreter& in, std::string_view text, Value separator, bool from_right,
                    uint8_t flags);

}  // namespace portico::jinja
