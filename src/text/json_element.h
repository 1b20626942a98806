// From simdjson's read-only tree to Json.
#pragma once

#include <simdjson.h>

#include "text/json.h"

namespace portico {

// The value of a parsed element, by Json::Parse()'s rules for doubled keys and big integers.
// Recursive: the parser has bounded the depth.
Json JsonOf(simdjson::dom::element from);

}  // namespace portico
