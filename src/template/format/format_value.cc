// format(v, spec)
#include <algorithm>
#include <cmath>

#include "template/format/format.h"
#include "template/format/format_spec.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

constexpr int64_t kMaxDigits = 500;

[[noreturn]] void FailType(const FormatSpec& spec, Value v) {
  Fail("Unknown format code '", spec.type, "' for object of type '", TypeName(v), "'");
}

// `what` is "string" or "integer".
void RefuseNegativeZero(const FormatSpec& spec, std::string_view what) {
  if (spec.no_negative_zero) {
    Fail("Negative zero coercion (z) not allowed in ", what, " format specifier");
  }
}

void FormatText(Value v, std::string_view text, std::string* out) {
  FormatSpec spec = ParseFormatSpec(text, 's', '<');
  if (spec.type != 's') FailType(spec, v);
  if (spec.sign != 0) {
    Fail(spec.sign == ' ' ? "Space" : "Sign", " not allowed in string format specifier");
  }
  RefuseNegativeZero(spec, "string");
  if (spec.alternate) Fail("Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=') Fail("'=' alignment not allowed in string format specifier");
  AppendText(spec, v.str(), out);
}

NumberParts SplitNumber(std::string_view text) {
  NumberParts parts;
  if (text.starts_with('-')) {
    parts.sign = "-";
    text.remove_prefix(1);
  }
  size_t whole = std::min(text.find_first_not_of("0123456789"), text.size());
  parts.digits = text.substr(0, whole);
  parts.rest = text.substr(whole);
  return parts;
}

void FormatInteger(Value v, const FormatSpec& spec, std::string* out) {
  RefuseNegativeZero(spec, "integer");
  if (spec.precision >= 0) Fail("Precision not allowed in integer format specifier");
  NumberParts parts;
  if (spec.type == 'c') {
    if (spec.sign != 0) Fail("Sign not allowed with integer format specifier 'c'");
    if (spec.alternate) {
      Fail("Alternate form (#) not allowed with integer format specifier 'c'");
    }
    AppendCharacter(v, &parts.rest);
    return AppendNumber(spec, std::move(parts), out);
  }
  int base = spec.type == 'x' || spec.type == 'X' ? 16 : spec.type == 'o' ? 8 : 10;
  if (spec.type == 'b') base = 2;
  AppendInteger(v, &parts.digits, base);
  if (parts.digits.starts_with('-')) {
    parts.sign = "-";
    parts.digits.erase(0, 1);
  }
  if (spec.type == 'X') parts.digits = Upper(parts.digits);
  if (spec.alternate && base != 10) parts.prefix = {'0', spec.type};
  AppendNumber(spec, std::move(parts), out);
}

// As repr(), or with so many significant digits; a whole number keeps ".0", which counts as a digit.
std::string PlainDouble(double value, const FormatSpec& spec) {
  std::string text;
  if (spec.precision < 0 || !std::isfinite(value)) {
    AppendFloat(value, &text);
    const size_t exponent = text.find('e');
    if (spec.alternate && exponent != text.npos && text.find('.') == text.npos) {
      text.insert(exponent, 1, '.');
    }
    return text;
  }
  const int digits = static_cast<int>(std::clamp<int64_t>(spec.precision, 1, kMaxDigits));
  text = FormatDouble(value, 'e', digits - 1);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (value != 0 && exponent == digits - 1) {
    const size_t mantissa_end = text.find('e');
    std::string mantissa = text.substr(0, mantissa_end);
    if (!spec.alternate && mantissa.find('.') != mantissa.npos) {
      mantissa.erase(mantissa.find_last_not_of('0') + 1);
      if (mantissa.ends_with('.')) mantissa.pop_back();
    }
    if (spec.alternate && mantissa.find('.') == mantissa.npos) mantissa.push_back('.');
    return mantissa + text.substr(mantissa_end);
  }
  text = FormatDouble(value, 'g', digits, spec.alternate);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

void FormatReal(double value, const FormatSpec& spec, std::string* out) {
  const int precision = DigitsOf(spec.precision);
  std::string text;
  if (spec.type == 0) {
    text = PlainDouble(value, spec);
  } else if (spec.type == '%') {
    text = FormatDouble(value * 100, 'f', precision, spec.alternate) + "%";
  } else {
    text = FormatDouble(value, spec.type == 'n' ? 'g' : spec.type, precision, spec.alternate);
  }
  NumberParts parts = SplitNumber(text);
  const std::string_view mantissa = std::string_view(text).substr(0, text.find_first_of("eE"));
  if (spec.no_negative_zero && std::isfinite(value) &&
      mantissa.find_first_of("123456789") == mantissa.npos) {
    parts.sign.clear();
  }
  AppendNumber(spec, std::move(parts), out);
}

}  // namespace

void AppendCharacter(Value v, std::string* out) {
  const bool known = v.is_small_int() && v.small_int() >= 0 && v.small_int() < 0x110000;
  if (!known) Fail("%c arg not in range(0x110000)");
  AppendUtf8(static_cast<uint32_t>(v.small_int()), out);
}

int DigitsOf(int64_t precision) {
  return precision < 0 ? 6 : static_cast<int>(std::min(precision, kMaxDigits));
}

double RealOf(Value number) {
  const double value = ToDouble(number);
  if (IsInteger(number) && std::isinf(value)) Fail("int too large to convert to float");
  return value;
}

std::string FormatDouble(double value, char type, int precision, bool alternate) {
  if (!std::isfinite(value)) {
    std::string text;
    AppendFloat(value, &text);
    return type >= 'a' ? text : Upper(text);
  }
  char form[8] = {'%'};
  size_t at = 1;
  if (alternate) form[at++] = '#';
  form[at++] = '.';
  form[at++] = '*';
  form[at++] = type;
  form[at] = '\0';
  std::string out(static_cast<size_t>(precision) + 340, '\0');
  int size = std::snprintf(out.data(), out.size(), form, precision, value);
  out.resize(static_cast<size_t>(size));
  return out;
}

void AppendFormatted(Interpreter& in, Value v, std::string_view text, std::string* out) {
  if (text.empty()) return AppendStr(in, v, out);
  if (v.is_string()) return FormatText(v, text, out);
  static constexpr std::string_view kReal = "eEfFgG%";
  if (IsInteger(v)) {
    const FormatSpec spec = ParseFormatSpec(text, 'd', '>');
    if (std::string_view("bcdnoxX").find(spec.type) != std::string_view::npos) {
      return FormatInteger(v, spec, out);
    }
    if (kReal.find(spec.type) == kReal.npos) FailType(spec, v);
    return FormatReal(RealOf(v), spec, out);
  }
  if (v.is(Kind::kFloat)) {
    const FormatSpec spec = ParseFormatSpec(text, 0, '>');
    if (spec.type != 0 && spec.type != 'n' && kReal.find(spec.type) == kReal.npos) {
      FailType(spec, v);
    }
    return FormatReal(v.d, spec, out);
  }
  Fail("unsupported format string passed to ", TypeName(v), ".__format__");
}

}  // namespace portico::jinja
