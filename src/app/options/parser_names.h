// The names of parsers on command lines and in files.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico {

// What a name may be besides a parser's, `none` and nothing.
enum class OtherParserNames { kNone, kAuto };

// INVALID_ARGUMENT that lists all names, begun by `flag`, unless there is a parser of that name.
Status CheckToolCallParser(std::string_view flag, const std::string& name, OtherParserNames other);
Status CheckReasoningParser(std::string_view flag, const std::string& name, OtherParserNames other);

}  // namespace portico
