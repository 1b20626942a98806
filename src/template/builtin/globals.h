// The functions that every template can call: range, dict, lipsum, cycler, joiner, namespace, raise_exception,
// strftime_now.
#pragma once

#include <span>
#include <string_view>

#include "template/builtin/arguments.h"
#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;

std::span<const std::string_view> GlobalNames();
Value GlobalValue(size_t index);
// Calls a value of kind kFunction.
Value CallGlobal(Interpreter& in, Value function, const CallArguments& arguments);
// Throws Failure for names that transformers' namespace refuses.
void CheckNamespaceName(std::string_view name);
// A dict from dict()'s arguments.
Dict* BuildDict(Interpreter& in, const CallArguments& arguments);

}  // namespace portico::jinja
