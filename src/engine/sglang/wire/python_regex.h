// Whether Python's re takes a pattern. The scheduler compiles stop patterns without a guard, and so dies of one that its
// re refuses; SGLang's front end compiles them first. Here a subset of Python's language is taken, about which there can
// be no doubt: no back-references, no named groups, no look-behind, no inline flags. Pure.
#pragma once

#include <string_view>

#include "base/status.h"

namespace portico::sglang {

// INVALID_ARGUMENT (field `field`) with the place and the reason. The pattern is valid UTF-8.
Status CheckPythonRegex(std::string_view pattern, std::string_view field);

}  // namespace portico::sglang
