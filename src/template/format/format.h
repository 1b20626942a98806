// Python's three ways to format: "%s" % x, "{}".format(x) and format(x, spec).
#pragma once

#include <string>
#include <string_view>

#include "template/builtin/arguments.h"

namespace portico::jinja {

class Interpreter;

// `values` is a tuple, a dict or one value.
Value PercentFormat(Interpreter& in, Value format, Value values);
Value StrFormat(Interpreter& in, Value format, const CallArguments& arguments);
Value StrFormatMap(Interpreter& in, Value format, Value mapping);
// format(v, spec), appended.
void AppendFormatted(Interpreter& in, Value v, std::string_view spec, std::string* out);

// chr(v) of an integer; throws Failure where there is none.
void AppendCharacter(Value v, std::string* out);

// The digits behind the point that `precision` asks for: 6 where it is negative (none was given), and no more than 500.
int DigitsOf(int64_t precision);

// The float of a number; throws Failure for an integer that is too large for one.
double RealOf(Value number);

// A float with a fixed number of digits: `type` is one of "eEfFgG".
std::string FormatDouble(double value, char type, int precision, bool alternate = false);

}  // namespace portico::jinja
