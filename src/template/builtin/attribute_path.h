// What filters that take `attribute=` and `case_sensitive=` share.
#pragma once

#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;

// The item itself for None; else its attribute, which may be a number or a dotted path. `fallback` (unless None)
// stands for undefined steps.
Value ReadPath(Interpreter& in, Value item, Value attribute, Value fallback);
// Lower case for strings, other values unchanged.
Value IgnoreCase(Interpreter& in, Value v);

}  // namespace portico::jinja
