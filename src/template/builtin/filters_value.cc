// Filters on single values: numbers, defaults, JSON.
#include <cmath>

#include "template/builtin/filters.h"
#include "template/builtin/json_filter.h"
#include "template/builtin/pretty.h"
#include "template/format/format.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict_access.h"
#include "template/value/number_text.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

Value FilterDefault(Interpreter&, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "default", {"default_value", "boolean"});
  if (v.is_undefined() || (IsTrue(p.Get(1, Value::Bool(false))) && !IsTrue(v))) {
    return p.Get(0, Value::String({}));
  }
  return v;
}

Value FilterAbs(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "abs", {});
  if (v.is(Kind::kFloat)) return Value::Float(std::fabs(v.d));
  if (v.is_undefined()) FailUndefined(v);
  if (!IsInteger(v)) Fail("bad operand type for abs(): '", TypeName(v), "'");
  return CompareIntegers(v, Value::Int(0)) < 0 ? Negate(in, v) : Plus(in, v);
}

// float(v); false where Python raises TypeError or ValueError.
bool ToFloat(Value v, double* out) {
  if (v.is_undefined()) FailUndefined(v);
  if (v.is_number()) {
    *out = ToDouble(v);
    return true;
  }
  return v.is_string() && ParseFloat(v.str(), out);
}

Value FilterInt(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "int", {"default", "base"});
  Value fallback = p.Get(0, Value::Int(0));
  if (IsInteger(v)) return Plus(in, v);
  Value parsed;
  if (v.is_string()) {
    const int64_t base = ToIndex(p.Get(1, Value::Int(10)), "base");
    if (ParseInt(v.str(), base, &in.arena(), &parsed)) return parsed;
  }
  double number;
  if (!ToFloat(v, &number) || !std::isfinite(number)) {
    if (v.is(Kind::kFloat) && std::isinf(v.d)) Fail("cannot convert float infinity to integer");
    return fallback;
  }
  return IntegerFromDouble(number, &in.arena());
}

Value FilterFloat(Interpreter&, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "float", {"default"});
  double number;
  return ToFloat(v, &number) ? Value::Float(number) : p.Get(0, Value::Float(0));
}

// round() of a float to a number of decimal digits, on its exact value.
double RoundDigits(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) return ParseDouble(FormatDouble(value, 'f', static_cast<int>(digits)));
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Value RoundInteger(Interpreter& in, Value v, int64_t digits) {
  if (digits >= 0) return Plus(in, v);
  if (digits < -5000) return Value::Int(0);
  Arena* arena = &in.arena();
  Value scale = PowerOfIntegers(Value::Int(10), static_cast<uint64_t>(-digits), arena);
  Value low = FloorDivideIntegers(v, scale, arena);
  Value twice = MultiplyIntegers(RemainderOfIntegers(v, scale, arena), Value::Int(2), arena);
  int order = CompareIntegers(twice, scale);
  const bool odd =
      CompareIntegers(RemainderOfIntegers(low, Value::Int(2), arena), Value::Int(0)) != 0;
  if (order > 0 || (order == 0 && odd)) low = AddIntegers(low, Value::Int(1), arena);
  return MultiplyIntegers(low, scale, arena);
}

Value FilterRound(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "round", {"precision", "method"});
  int64_t precision = ToIndex(p.Get(0, Value::Int(0)), "precision");
  Value method = p.Get(1, Value::String("common"));
  std::string_view name = method.is_string() ? method.str() : std::string_view();
  if (name != "common" && name != "ceil" && name != "floor") {
    Fail("method must be common, ceil or floor");
  }
  if (v.is_undefined()) FailUndefined(v);
  if (!v.is_number()) {
    Fail("type ", TypeName(v), " doesn't define __round__ method");
  }
  if (name == "common") {
    return IsInteger(v) ? RoundInteger(in, v, precision)
                        : Value::Float(RoundDigits(v.d, precision));
  }
  if (IsInteger(v) && precision >= 0) return Value::Float(ToDouble(v));
  const double scale = std::pow(10.0, static_cast<double>(precision));
  double scaled = ToDouble(v) * scale;
  if (!std::isfinite(scaled)) Fail("cannot convert float infinity or NaN to integer");
  // The numerator is an integer in Python: it has no negative zero.
  return Value::Float(((name == "ceil" ? std::ceil(scaled) : std::floor(scaled)) + 0.0) / scale);
}

Value FilterAttr(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "attr", {"name"}, 1);
  Value name = p.Get(0);
  if (!name.is_string()) Fail("attribute name must be string");
  Member member = FindMember(name.str());
  // Attributes only: an item of a dict is none.
  if (v.is(Kind::kNamespace) || HasMember(v, member, name.str())) {
    return in.GetAttr(v, in.arena().New<std::string_view>(name.str()), member);
  }
  if (v.is_undefined()) FailUndefined(v);
  return in.UndefinedItem(v, name);
}

Value FilterFileSize(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "filesizeformat", {"binary"});
  const bool binary = IsTrue(p.Get(0, Value::Bool(false)));
  double bytes;
  if (!ToFloat(v, &bytes)) Fail("could not convert value to float");
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value::String("1 Byte");
  if (bytes < base) {
    std::string text;
    AppendInteger(IntegerFromDouble(bytes, &in.arena()), &text);
    return in.NewString(text + " Bytes");
  }
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  size_t at = 0;
  do {
    unit *= base;
  } while (bytes >= unit && ++at + 1 < kPrefixes.size() + 0);
  if (bytes >= unit) unit *= base;
  std::string text = FormatDouble(base * bytes / unit, 'f', 1) + " ";
  char prefix = binary && at == 0 ? 'K' : kPrefixes[at];
  text.push_back(prefix);
  text.append(binary ? "iB" : "B");
  return in.NewString(text);
}

Value FilterXmlAttr(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "xmlattr", {"autospace"});
  if (!v.is_dict()) Fail("xmlattr needs a mapping");
  std::string out, scratch;
  for (size_t i = 0; i < DictSize(v); ++i) {
    Value value = DictValueAt(v, i);
    if (value.is_none() || value.is_undefined()) continue;
    if (!DictKeyAt(v, i).is_string()) Fail("the name of an attribute must be a string");
    const std::string key(DictKeyAt(v, i).str());
    if (key.find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      Fail("Invalid character in attribute name: '", key, "'");
    }
    if (!out.empty()) out.push_back(' ');
    AppendEscaped(key, &out);
    out.append("=\"");
    std::string_view text = StrView(in, value, &scratch);
    if (value.is_markup()) {
      out.append(text);
    } else {
      AppendEscaped(text, &out);
    }
    out.push_back('"');
    in.CheckSize(out);
  }
  if (!out.empty() && IsTrue(p.Get(0, Value::Bool(true)))) out.insert(out.begin(), ' ');
  return in.NewString(out);
}

Value FilterPprint(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "pprint", {});
  return in.NewString(Pretty(in, v));
}

Value FilterRandom(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "random", {});
  if (LengthOf(in, v) == 0) return in.Undefined("No random item, sequence was empty.");
  Fail("random is not supported: a template must always render the same");
}

constexpr NamedFilter kFilters[] = {
    {"abs", FilterAbs},
    {"attr", FilterAttr},
    {"d", FilterDefault},
    {"default", FilterDefault},
    {"filesizeformat", FilterFileSize},
    {"float", FilterFloat},
    {"int", FilterInt},
    {"pprint", FilterPprint},
    {"random", FilterRandom},
    {"round", FilterRound},
    {"tojson", FilterToJson},
    {"xmlattr", FilterXmlAttr},
};

}  // namespace

void AppendToJson(Interpreter& in, Value v, const CallArguments& arguments, std::string* out) {
  JsonFormat format;
  if (arguments.count == 0 && arguments.named_count == 0) return AppendJson(in, v, format, out);
  Parameters p(arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  format.ascii = IsTrue(p.Get(0, Value::Bool(false)));
  format.sort_keys = IsTrue(p.Get(3, Value::Bool(false)));
  Value indent = p.Get(1);
  std::string blanks;
  if (!indent.is_none()) {
    format.pretty = true;
    format.item_separator = ",";
    if (indent.is_string()) {
      blanks = indent.str();
    } else {
      int64_t count = ToIndex(indent, "indent");
      if (count > 256) LimitReached("the indent is too large");
      blanks.assign(static_cast<size_t>(std::max<int64_t>(0, count)), ' ');
    }
    if (blanks.size() > 256) LimitReached("the indent is too large");
    format.indent = blanks;
  }
  Value separators = p.Get(2);
  if (!separators.is_none()) {
    Value pair = ListOf(in, separators);
    if (SequenceSize(pair) != 2 || !SequenceItem(pair, 0).is_string() ||
        !SequenceItem(pair, 1).is_string()) {
      Fail("separators must be two strings");
    }
    format.item_separator = SequenceItem(pair, 0).str();
    format.key_separator = SequenceItem(pair, 1).str();
  }
  AppendJson(in, v, format, out);
}

Value FilterToJson(Interpreter& in, Value v, const CallArguments& arguments) {
  std::string out;
  AppendToJson(in, v, arguments, &out);
  return in.NewString(out);
}

std::span<const NamedFilter> ValueFilters() { return kFilters; }

}  // namespace portico::jinja
