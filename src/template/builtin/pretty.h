// Python's pprint.pformat().
#pragma once

#include <string>

#include "template/run/interpreter.h"

namespace portico::jinja {

// The value in lines of at most 80 characters where it can be broken, dicts sorted by key.
std::string Pretty(Interpreter& in, Value v);

}  // namespace portico::jinja
