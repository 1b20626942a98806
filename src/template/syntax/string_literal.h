// Escapes in string literals of templates.
#pragma once

#include <string_view>

#include "template/value/arena.h"

namespace portico::jinja {

// The text of a literal's body, as Python's unicode_escape decodes it after non-ASCII characters became escapes
// themselves (so a backslash before one of those stays, with the escape's letters). Throws Failure naming `line`.
std::string_view Unescape(std::string_view body, int line, Arena* arena);

}  // namespace portico::jinja
