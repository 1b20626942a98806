// The filter tojson, as transformers defines it.
#pragma once

#include <string>

#include "template/builtin/arguments.h"

namespace portico::jinja {

class Interpreter;

// Appends the JSON text of `v`. Throws Failure for wrong arguments and for values that JSON has no form for.
void AppendToJson(Interpreter& in, Value v, const CallArguments& arguments, std::string* out);
Value FilterToJson(Interpreter& in, Value v, const CallArguments& arguments);

}  // namespace portico::jinja
