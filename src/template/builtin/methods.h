// Methods of values.
#pragma once

#include "template/builtin/arguments.h"
#include "template/builtin/members.h"
#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;

Value CallStringMethod(Interpreter& in, Value text, Member member, const CallArguments& arguments);
Value CallDictMethod(Interpreter& in, Value dict, Member member, const CallArguments& arguments);
Value CallOtherMethod(Interpreter& in, Value object, Member member, const CallArguments& arguments);

}  // namespace portico::jinja
