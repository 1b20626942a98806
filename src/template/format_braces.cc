// "{} {name:>10}".format(…)
#include <charconv>
#include <cmath>

#include "template/bigint.h"
#include "template/dict_access.h"
#include "template/format.h"
#include "template/interpreter.h"
#include "template/unicode.h"

namespace portico::jinja {
namespace {

constexpr int64_t kMaxWidth = 100'000;

struct Spec {
  std::string fill = std::string(1, ' ');
  char align = 0;  // < > = ^
  char sign = '-';
  bool alternate = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

bool IsAlign(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

int64_t ReadCount(std::string_view* text) {
  int64_t count = 0;
  while (!text->empty() && (*text)[0] >= '0' && (*text)[0] <= '9') {
    count = count * 10 + ((*text)[0] - '0');
    if (count > kMaxWidth) LimitReached("the width of a format is too large");
    text->remove_prefix(1);
  }
  return count;
}

Spec ParseSpec(std::string_view text) {
  Spec spec;
  size_t first = 0;
  if (!text.empty()) CodePointAt(text, 0, &first);
  auto take = [&](char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  };
  if (text.size() > first && IsAlign(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (!text.empty() && IsAlign(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    spec.sign = text[0];
    text.remove_prefix(1);
  }
  spec.alternate = take('#');
  if (take('0') && spec.align == 0) {
    spec.fill.assign(1, '0');
    spec.align = '=';
  }
  spec.width = ReadCount(&text);
  if (take(',')) spec.grouping = ',';
  if (take('_')) spec.grouping = '_';
  if (take('.')) {
    if (text.empty() || text[0] < '0' || text[0] > '9') Fail("Format specifier missing precision");
    spec.precision = ReadCount(&text);
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) Fail("Invalid format specifier");
  return spec;
}

void AppendPadded(const Spec& spec, char fallback, const std::string& sign, const std::string& body,
                  std::string* out) {
  int64_t missing = spec.width - static_cast<int64_t>(Length(sign) + Length(body));
  size_t fill = missing > 0 ? static_cast<size_t>(missing) : 0;
  char align = spec.align != 0 ? spec.align : fallback;
  size_t left = align == '>' ? fill : align == '^' ? fill / 2 : 0;
  auto pad = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) out->append(spec.fill);
  };
  if (align == '=') {
    out->append(sign);
    pad(fill);
    out->append(body);
    return;
  }
  pad(left);
  out->append(sign).append(body);
  pad(fill - left);
}

std::string Grouped(const std::string& digits, char separator, size_t every) {
  size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % every == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out + digits.substr(whole);
}

std::string SignOf(const Spec& spec, std::string* text) {
  if (text->starts_with('-')) {
    text->erase(0, 1);
    return "-";
  }
  return spec.sign == '-' ? std::string() : std::string(1, spec.sign);
}

void FormatInteger(Value v, const Spec& spec, std::string* out) {
  if (spec.precision >= 0) Fail("Precision not allowed in integer format specifier");
  std::string text;
  if (spec.type == 'c') {
    AppendUtf8(static_cast<uint32_t>(ToIndex(v, "%c")), &text);
    return AppendPadded(spec, '>', {}, text, out);
  }
  int base = spec.type == 'x' || spec.type == 'X' ? 16 : spec.type == 'o' ? 8 : 10;
  if (spec.type == 'b') base = 2;
  AppendInteger(v, &text, base);
  std::string sign = SignOf(spec, &text);
  if (spec.type == 'X') text = Upper(text);
  if (spec.alternate && base != 10) sign += std::string("0") + spec.type;
  if (spec.grouping != 0) text = Grouped(text, spec.grouping, base == 10 ? 3 : 4);
  AppendPadded(spec, '>', sign, text, out);
}

void FormatReal(double value, const Spec& spec, std::string* out) {
  std::string text;
  int precision = static_cast<int>(std::min<int64_t>(spec.precision, 500));
  switch (spec.type) {
    case 0:
      if (precision < 0) {
        AppendFloat(value, &text);
      } else {
        text = FormatDouble(value, 'g', precision, spec.alternate);
        if (text.find_first_of(".en") == std::string::npos) text += ".0";
      }
      break;
    case '%':
      text = FormatDouble(value * 100, 'f', precision < 0 ? 6 : precision) + "%";
      break;
    case 'n':
      text = FormatDouble(value, 'g', precision < 0 ? 6 : precision);
      break;
    default:
      text = FormatDouble(value, spec.type, precision < 0 ? 6 : precision, spec.alternate);
  }
  std::string sign = SignOf(spec, &text);
  if (spec.grouping != 0) text = Grouped(text, spec.grouping, 3);
  AppendPadded(spec, '>', sign, text, out);
}

// Replacement fields of a format string.
class Fields {
 public:
  Fields(Interpreter& in, bool escape, const CallArguments* arguments, Value mapping)
      : in_(in), escape_(escape), arguments_(arguments), mapping_(mapping) {}

  void Format(std::string_view text, int depth, std::string* out) {
    if (depth > 2) Fail("Max string recursion exceeded");
    for (size_t i = 0; i < text.size();) {
      char c = text[i];
      if (c != '{' && c != '}') {
        size_t end = std::min(text.find_first_of("{}", i), text.size());
        out->append(text.substr(i, end - i));
        i = end;
      } else if (i + 1 < text.size() && text[i + 1] == c) {
        out->push_back(c);
        i += 2;
      } else if (c == '}') {
        Fail("Single '}' encountered in format string");
      } else {
        i = Field(text, i + 1, depth, out);
      }
      in_.CheckSize(*out);
    }
  }

 private:
  // `at` is behind the brace; returns the position behind the closing one.
  size_t Field(std::string_view text, size_t at, int depth, std::string* out) {
    int open = 1;
    size_t end = at;
    for (; end < text.size(); ++end) {
      if (text[end] == '{') ++open;
      if (text[end] == '}' && --open == 0) break;
    }
    if (open != 0) Fail("expected '}' before end of string");
    std::string_view field = text.substr(at, end - at);
    size_t name_end = std::min(field.find_first_of(":!"), field.size());
    Value value = Lookup(field.substr(0, name_end));
    std::string_view rest = field.substr(name_end);
    if (rest.starts_with('!')) {
      char conversion = rest.size() > 1 ? rest[1] : '\0';
      if (conversion == 's') {
        value = ToStr(in_, value);
      } else if (conversion == 'r' || conversion == 'a') {
        value = in_.NewString(Repr(in_, value));
      } else {
        Fail("Unknown conversion specifier");
      }
      rest.remove_prefix(2);
    }
    std::string spec;
    if (rest.starts_with(':')) Format(rest.substr(1), depth + 1, &spec);
    std::string formatted;
    AppendFormatted(in_, value, spec, &formatted);
    if (escape_ && !value.is_markup()) {
      AppendEscaped(formatted, out);
    } else {
      out->append(formatted);
    }
    return end + 1;
  }

  Value Lookup(std::string_view name) {
    size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = First(name.substr(0, end));
    std::string_view rest = name.substr(end);
    while (!rest.empty()) {
      if (rest[0] == '.') {
        size_t stop = std::min(rest.find_first_of(".[", 1), rest.size());
        const auto* attribute =
            in_.arena().New<std::string_view>(in_.arena().Copy(rest.substr(1, stop - 1)));
        value = in_.GetAttr(value, attribute, FindMember(*attribute));
        rest.remove_prefix(stop);
      } else {
        size_t stop = rest.find(']');
        if (stop == std::string_view::npos) Fail("Missing ']' in format string");
        std::string_view key = rest.substr(1, stop - 1);
        value = in_.GetItem(value, IsNumber(key) ? Value::Int(ToNumber(key)) : Value::String(key));
        rest.remove_prefix(stop + 1);
        if (!rest.empty() && rest[0] != '.' && rest[0] != '[') {
          Fail("Only '.' or '[' may follow ']' in format field specifier");
        }
      }
    }
    return value;
  }

  static bool IsNumber(std::string_view text) {
    return !text.empty() && text.size() < 9 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  static int64_t ToNumber(std::string_view text) { return std::stoll(std::string(text)); }

  Value First(std::string_view name) {
    if (arguments_ != nullptr && (name.empty() || IsNumber(name))) {
      size_t index = name.empty() ? next_++ : static_cast<size_t>(ToNumber(name));
      if (index >= arguments_->count) {
        Fail("Replacement index ", std::to_string(index), " out of range for positional args");
      }
      return arguments_->positional[index];
    }
    Value found;
    if (arguments_ != nullptr) {
      for (size_t i = 0; i < arguments_->named_count; ++i) {
        if (arguments_->named[i].name == name) return arguments_->named[i].value;
      }
    } else if (mapping_.is_dict() && DictLookup(in_, mapping_, Value::String(name), &found)) {
      return found;
    }
    Fail("KeyError: '", name, "'");
  }

  Interpreter& in_;
  bool escape_;
  const CallArguments* arguments_;  // null: names come from the mapping
  Value mapping_;
  size_t next_ = 0;
};

}  // namespace

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
  if (std::string_view("eEfFgG").find(type) == std::string_view::npos) {
    Fail("Unknown format code '", type, "'");
  }
  form[at++] = type;
  form[at] = '\0';
  std::string out(static_cast<size_t>(precision) + 340, '\0');
  int size = std::snprintf(out.data(), out.size(), form, precision, value);
  out.resize(static_cast<size_t>(size));
  return out;
}

void AppendFormatted(Interpreter& in, Value v, std::string_view text, std::string* out) {
  if (text.empty()) return AppendStr(in, v, out);
  Spec spec = ParseSpec(text);
  if (v.is_string()) {
    if (spec.type != 0 && spec.type != 's') Fail("Unknown format code for object of type 'str'");
    if (spec.align == '=') {
      if (spec.fill != "0") Fail("'=' alignment not allowed in string format specifier");
      spec.align = '<';
    }
    std::string_view view = v.str();
    if (spec.precision >= 0) {
      view = view.substr(0, ByteOffset(view, static_cast<size_t>(spec.precision)));
    }
    return AppendPadded(spec, '<', {}, std::string(view), out);
  }
  const bool as_float = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (IsInteger(v) && !(spec.type != 0 && as_float)) {
    if (spec.type == 's') Fail("Unknown format code 's' for object of type 'int'");
    return FormatInteger(v, spec, out);
  }
  if (v.is_number()) return FormatReal(ToDouble(v), spec, out);
  Fail("unsupported format string passed to ", TypeName(v), ".__format__");
}

Value StrFormat(Interpreter& in, Value format, const CallArguments& arguments) {
  std::string out;
  Fields(in, format.is_markup(), &arguments, Value()).Format(format.str(), 0, &out);
  return in.NewString(out, format.flags);
}

Value StrFormatMap(Interpreter& in, Value format, Value mapping) {
  std::string out;
  Fields(in, format.is_markup(), nullptr, mapping).Format(format.str(), 0, &out);
  return in.NewString(out, format.flags);
}

}  // namespace portico::jinja
