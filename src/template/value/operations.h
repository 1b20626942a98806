// Python's operators and protocols on values.
#pragma once

#include <string>
#include <string_view>

#include "template/syntax/nodes.h"
#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;

// "str", "list", … as Python names the type.
std::string_view TypeName(Value v);
// "'dict object'" and the like, for messages.
std::string ObjectName(Kind kind);

// bool(v)
bool IsTrue(Value v);
// a == b for numbers; exact between integers and floats.
bool NumbersEqual(Value a, Value b);
// For numbers: <0, 0, >0, or 2 where one is NaN.
int CompareNumbers(Value a, Value b);
double ToDouble(Value number);

bool Equal(Interpreter& in, Value a, Value b, int depth = 0);
// a < b and the like; throws Failure where the types have no order.
bool Ordered(Interpreter& in, CompareOp op, Value a, Value b, int depth = 0);
bool Contains(Interpreter& in, Value container, Value item);
// `is`
bool Identical(Value a, Value b);

Value Add(Interpreter& in, Value a, Value b);
Value Binary(Interpreter& in, BinaryOp op, Value a, Value b);
Value Negate(Interpreter& in, Value a);
Value Plus(Interpreter& in, Value a);

// len(v); throws Failure for what has none.
size_t LengthOf(Interpreter& in, Value v);
bool HasLength(Value v);

// v[index] as Python does it; false where it raises LookupError or TypeError.
bool Subscript(Interpreter& in, Value v, Value index, Value* out);
Value Slice(Interpreter& in, Value v, Value start, Value stop, Value step);

// An index or a count: throws Failure for anything but an integer that fits.
int64_t ToIndex(Value v, std::string_view what);

// Throws the failure that using an undefined value is.
[[noreturn]] void FailUndefined(Value undefined);

// str(v) and repr(v)
void AppendStr(Interpreter& in, Value v, std::string* out);
void AppendRepr(Interpreter& in, Value v, std::string* out, int depth = 0);
std::string Repr(Interpreter& in, Value v);
std::string AsciiRepr(Interpreter& in, Value v);  // ascii(v)
void AppendFloat(double value, std::string* out);
void AppendStringRepr(std::string_view text, std::string* out);
// str(v) without a copy where v is a string; else `scratch` holds it.
std::string_view StrView(Interpreter& in, Value v, std::string* scratch);
// str(v) as a value, in the arena.
Value ToStr(Interpreter& in, Value v);

struct JsonFormat {
  bool ascii = false;
  bool pretty = false;
  std::string_view indent;  // one level's
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
  bool sort_keys = false;
};
// json.dumps(v)
void AppendJson(Interpreter& in, Value v, const JsonFormat& format, std::string* out,
                int depth = 0);

// HTML-escapes the text.
void AppendEscaped(std::string_view text, std::string* out);

}  // namespace portico::jinja
