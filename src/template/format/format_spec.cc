#include "template/format/format_spec.h"

#include <algorithm>

#include "template/run/failure.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

// Types whose digits are bits.
bool IsPowerOfTwo(char type) { return type == 'b' || type == 'o' || type == 'x' || type == 'X'; }

constexpr int64_t kMaxWidth = 100'000;

bool IsAlign(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

void CheckGrouping(const FormatSpec& spec) {
  if (spec.grouping == 0 || spec.type == 0) return;
  if (std::string_view("deEfFgG%").find(spec.type) != std::string_view::npos) return;
  if (spec.grouping == '_' && IsPowerOfTwo(spec.type)) return;
  Fail("Cannot specify '", spec.grouping, "' with '", spec.type, "'.");
}

// Digits in groups of `every`, with zeros in front until there are `width` characters.
std::string Grouped(const std::string& digits, char separator, size_t every, size_t width) {
  std::string reversed;
  for (size_t i = 0; i < digits.size() || reversed.size() < width; ++i) {
    if (separator != 0 && i > 0 && i % every == 0) reversed.push_back(separator);
    reversed.push_back(i < digits.size() ? digits[digits.size() - 1 - i] : '0');
  }
  return {reversed.rbegin(), reversed.rend()};
}

// How often to fill, in code points.
struct Margins {
  size_t left = 0;
  size_t inside = 0;  // between a number's sign and its digits
  size_t right = 0;
};

Margins MarginsOf(const FormatSpec& spec, size_t size) {
  const size_t width = static_cast<size_t>(spec.width);
  const size_t fill = width > size ? width - size : 0;
  switch (spec.align) {
    case '>':
      return {fill, 0, 0};
    case '=':
      return {0, fill, 0};
    case '^':
      return {fill / 2, 0, fill - fill / 2};
    default:
      return {0, 0, fill};
  }
}

void AppendFill(const FormatSpec& spec, size_t count, std::string* out) {
  for (size_t i = 0; i < count; ++i) out->append(spec.fill);
}

}  // namespace

int64_t LimitedCount(int64_t count) {
  if (count > kMaxWidth) LimitReached("the width of a format is too large");
  return count;
}

int64_t TakeCount(std::string_view* text) {
  if (text->empty() || (*text)[0] < '0' || (*text)[0] > '9') return -1;
  int64_t count = 0;
  while (!text->empty() && (*text)[0] >= '0' && (*text)[0] <= '9') {
    count = LimitedCount(count * 10 + ((*text)[0] - '0'));
    text->remove_prefix(1);
  }
  return count;
}

FormatSpec ParseFormatSpec(std::string_view text, char type, char align) {
  FormatSpec spec;
  spec.align = align;
  size_t first = 0;
  if (!text.empty()) CodePointAt(text, 0, &first);
  auto take = [&](char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  };
  bool align_given = true;
  bool fill_given = false;
  if (text.size() > first && IsAlign(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    fill_given = true;
    text.remove_prefix(first + 1);
  } else if (!text.empty() && IsAlign(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  } else {
    align_given = false;
  }
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    spec.sign = text[0];
    text.remove_prefix(1);
  }
  spec.no_negative_zero = take('z');
  spec.alternate = take('#');
  if (!fill_given && take('0')) {
    spec.fill.assign(1, '0');
    if (!align_given && align == '>') spec.align = '=';
  }
  spec.width = std::max<int64_t>(TakeCount(&text), 0);
  if (take(',')) spec.grouping = ',';
  if (!text.empty() && (text[0] == '_' || text[0] == ',')) {
    if (spec.grouping != 0 && text[0] == '_') Fail("Cannot specify both ',' and '_'.");
    if (take('_')) spec.grouping = '_';
    if (spec.grouping == '_' && take(',')) Fail("Cannot specify both ',' and '_'.");
  }
  if (take('.')) {
    spec.precision = TakeCount(&text);
    if (spec.precision < 0) Fail("Format specifier missing precision");
  }
  spec.type = type;
  if (!text.empty()) {
    size_t length = 0;
    CodePointAt(text, 0, &length);
    if (length < text.size()) Fail("Invalid format specifier");
    if (length > 1) Fail("Unknown format code '", text, "'");
    spec.type = text[0];
  }
  CheckGrouping(spec);
  return spec;
}

void AppendNumber(const FormatSpec& spec, NumberParts parts, std::string* out) {
  if (parts.sign.empty() && (spec.sign == '+' || spec.sign == ' ')) parts.sign.assign(1, spec.sign);
  const size_t other = parts.sign.size() + parts.prefix.size() + Length(parts.rest);
  const size_t width = static_cast<size_t>(spec.width);
  if (!parts.digits.empty()) {
    const bool zeros = spec.fill == "0" && spec.align == '=' && width > other;
    parts.digits = Grouped(parts.digits, spec.grouping, IsPowerOfTwo(spec.type) ? 4 : 3,
                           zeros ? width - other : 0);
  }
  const Margins margins = MarginsOf(spec, other + parts.digits.size());
  AppendFill(spec, margins.left, out);
  out->append(parts.sign).append(parts.prefix);
  AppendFill(spec, margins.inside, out);
  out->append(parts.digits).append(parts.rest);
  AppendFill(spec, margins.right, out);
}

void AppendText(const FormatSpec& spec, std::string_view text, std::string* out) {
  if (spec.precision >= 0) {
    text = text.substr(0, ByteOffset(text, static_cast<size_t>(spec.precision)));
  }
  const Margins margins = MarginsOf(spec, Length(text));
  AppendFill(spec, margins.left, out);
  out->append(text);
  AppendFill(spec, margins.right, out);
}

}  // namespace portico::jinja
