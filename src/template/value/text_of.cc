// str() and repr() as Python prints values.
#include <charconv>
#include <cmath>
#include <cstdio>

#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

constexpr int kMaxDepth = 200;

void AppendItems(Interpreter& in, Value sequence, std::string* out, int depth) {
  for (size_t i = 0, size = SequenceSize(sequence); i < size; ++i) {
    if (i > 0) out->append(", ");
    AppendRepr(in, SequenceItem(sequence, i), out, depth + 1);
  }
}

void AppendDict(Interpreter& in, Value dict, std::string* out, int depth) {
  out->push_back('{');
  for (size_t i = 0, size = DictSize(dict); i < size; ++i) {
    if (i > 0) out->append(", ");
    AppendRepr(in, DictKeyAt(dict, i), out, depth + 1);
    out->append(": ");
    AppendRepr(in, DictValueAt(dict, i), out, depth + 1);
  }
  out->push_back('}');
}

void AppendView(Interpreter& in, Value view, std::string* out, int depth) {
  out->append(TypeName(view)).append("([");
  for (size_t i = 0, size = DictSize(*view.viewed); i < size; ++i) {
    if (i > 0) out->append(", ");
    AppendRepr(in, ViewItemAt(in, view, i), out, depth + 1);
  }
  out->append("])");
}

void AppendRange(const Range& range, std::string* out) {
  out->append("range(").append(std::to_string(range.start)).append(", ");
  out->append(std::to_string(range.stop));
  if (range.step != 1) out->append(", ").append(std::to_string(range.step));
  out->push_back(')');
}

void AppendLoop(Interpreter& in, Loop& loop, std::string* out) {
  out->append("<LoopContext ").append(std::to_string(loop.index0 + 1)).append("/");
  out->append(std::to_string(loop.Length(in))).append(">");
}

// "\\xe9", "\\u200b", "\\U0001f600"
void AppendEscape(uint32_t c, std::string* out) {
  char escape[12];
  const char* form = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(escape, sizeof(escape), form, c);
  out->append(escape);
}

}  // namespace

void AppendFloat(double value, std::string* out) {
  if (std::isnan(value)) {
    out->append("nan");
    return;
  }
  if (std::isinf(value)) {
    out->append(value < 0 ? "-inf" : "inf");
    return;
  }
  char text[40];
  auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  std::string_view shortest(text, static_cast<size_t>(end - text));
  if (shortest[0] == '-') {
    out->push_back('-');
    shortest.remove_prefix(1);
  }
  size_t e = shortest.find('e');
  int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  std::string digits(1, shortest[0]);
  if (e > 1) digits.append(shortest.substr(2, e - 2));
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out->push_back(digits[0]);
    if (count > 1) out->append(".").append(digits, 1);
    char tail[16];
    std::snprintf(tail, sizeof(tail), "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    out->append(tail);
  } else if (exponent < 0) {
    out->append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  } else if (count <= exponent + 1) {
    out->append(digits).append(static_cast<size_t>(exponent + 1 - count), '0').append(".0");
  } else {
    size_t point = static_cast<size_t>(exponent + 1);
    out->append(digits, 0, point).append(".").append(digits, point);
  }
}

void AppendStringRepr(std::string_view text, std::string* out) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  out->push_back(quote);
  for (size_t i = 0; i < text.size();) {
    size_t length;
    uint32_t c = CodePointAt(text, i, &length);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out->push_back('\\');
      out->push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '\r') {
      out->append("\\r");
    } else if (c == '\t') {
      out->append("\\t");
    } else if (c < 0x7F ? c >= 0x20 : IsA(CharacterClass::kPrintable, c)) {
      out->append(text.substr(i, length));
    } else {
      AppendEscape(c, out);
    }
    i += length;
  }
  out->push_back(quote);
}

void AppendRepr(Interpreter& in, Value v, std::string* out, int depth) {
  if (depth > kMaxDepth) LimitReached("values are nested too deeply");
  in.Step();
  in.CheckSize(*out);
  switch (v.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
      out->append("Undefined");
      break;
    case Kind::kNone:
      out->append("None");
      break;
    case Kind::kBool:
      out->append(v.b ? "True" : "False");
      break;
    case Kind::kInt:
    case Kind::kBigInt:
      AppendInteger(v, out);
      break;
    case Kind::kFloat:
      AppendFloat(v.d, out);
      break;
    case Kind::kString:
      if (v.is_markup()) out->append("Markup(");
      AppendStringRepr(v.str(), out);
      if (v.is_markup()) out->push_back(')');
      break;
    case Kind::kList:
    case Kind::kJsonList:
      out->push_back('[');
      AppendItems(in, v, out, depth);
      out->push_back(']');
      break;
    case Kind::kTuple:
      out->push_back('(');
      AppendItems(in, v, out, depth);
      out->append(v.items->size == 1 ? ",)" : ")");
      break;
    case Kind::kDict:
    case Kind::kJsonDict:
      AppendDict(in, v, out, depth);
      break;
    case Kind::kDictView:
      AppendView(in, v, out, depth);
      break;
    case Kind::kRange:
      AppendRange(*v.range, out);
      break;
    case Kind::kNamespace:
      out->append("<Namespace ");
      AppendDict(in, Value::Of(v.dict), out, depth);
      out->push_back('>');
      break;
    case Kind::kMacro:
      if (v.macro->code->name.empty()) {
        out->append("<Macro anonymous>");
      } else {
        out->append("<Macro '").append(v.macro->code->name).append("'>");
      }
      break;
    case Kind::kLoop:
      AppendLoop(in, *v.loop, out);
      break;
    case Kind::kSelf:
      out->append("<TemplateReference None>");
      break;
    default:
      out->append("<").append(TypeName(v)).append(" object>");
      break;
  }
}

std::string Repr(Interpreter& in, Value v) {
  std::string out;
  AppendRepr(in, v, &out);
  return out;
}

std::string AsciiRepr(Interpreter& in, Value v) {
  const std::string text = Repr(in, v);
  std::string out;
  for (size_t i = 0, length; i < text.size(); i += length) {
    const uint32_t c = CodePointAt(text, i, &length);
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
    } else {
      AppendEscape(c, &out);
    }
  }
  return out;
}

void AppendStr(Interpreter& in, Value v, std::string* out) {
  if (v.is_string()) {
    out->append(v.s, v.size);
  } else if (!v.is_undefined()) {
    AppendRepr(in, v, out);
  }
}

std::string_view StrView(Interpreter& in, Value v, std::string* scratch) {
  if (v.is_string()) return v.str();
  scratch->clear();
  AppendStr(in, v, scratch);
  return *scratch;
}

Value ToStr(Interpreter& in, Value v) {
  if (v.is_string()) return Value::String(v.str());
  std::string text;
  AppendStr(in, v, &text);
  return in.NewString(text);
}

void AppendEscaped(std::string_view text, std::string* out) {
  for (char c : text) {
    switch (c) {
      case '&':
        out->append("&amp;");
        break;
      case '<':
        out->append("&lt;");
        break;
      case '>':
        out->append("&gt;");
        break;
      case '"':
        out->append("&#34;");
        break;
      case '\'':
        out->append("&#39;");
        break;
      default:
        out->push_back(c);
    }
  }
}

}  // namespace portico::jinja
