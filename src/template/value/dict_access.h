// Dicts of both kinds, seen alike.
#pragma once

#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;

size_t DictSize(Value dict);
Value DictKeyAt(Value dict, size_t index);
Value DictValueAt(Value dict, size_t index);
// Throws Failure for a key that no dict can have.
bool DictLookup(Interpreter& in, Value dict, Value key, Value* out);
// The item of a view of a dict.
Value ViewItemAt(Interpreter& in, Value view, size_t index);

}  // namespace portico::jinja
