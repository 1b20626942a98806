// json.dumps as Python writes it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/stable_sort.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

constexpr int kMaxDepth = 200;

void AppendUnicodeEscape(uint32_t unit, std::string* out) {
  char text[16];
  std::snprintf(text, sizeof(text), "\\u%04x", unit);
  out->append(text);
}

bool NeedsEscape(unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; }

void AppendEscape(unsigned char c, std::string* out) {
  switch (c) {
    case '"':
      out->append("\\\"");
      break;
    case '\\':
      out->append("\\\\");
      break;
    case '\n':
      out->append("\\n");
      break;
    case '\r':
      out->append("\\r");
      break;
    case '\t':
      out->append("\\t");
      break;
    case '\b':
      out->append("\\b");
      break;
    case '\f':
      out->append("\\f");
      break;
    default:
      AppendUnicodeEscape(c, out);
  }
}

void AppendJsonText(std::string_view text, bool ascii, std::string* out) {
  out->push_back('"');
  size_t plain = 0;
  for (size_t i = 0; i < text.size();) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (!NeedsEscape(c) && (!ascii || c < 0x7F)) {
      ++i;
      continue;
    }
    out->append(text.substr(plain, i - plain));
    size_t length = 1;
    if (c < 0x80) {
      if (c == 0x7F) {
        out->push_back(static_cast<char>(c));
      } else {
        AppendEscape(c, out);
      }
    } else {
      uint32_t code_point = CodePointAt(text, i, &length);
      if (code_point >= 0x10000) {
        AppendUnicodeEscape(0xD800 + ((code_point - 0x10000) >> 10), out);
        code_point = 0xDC00 + ((code_point - 0x10000) & 0x3FF);
      }
      AppendUnicodeEscape(code_point, out);
    }
    i += length;
    plain = i;
  }
  out->append(text.substr(plain));
  out->push_back('"');
}

void AppendJsonFloat(double value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
  } else if (std::isinf(value)) {
    out->append(value < 0 ? "-Infinity" : "Infinity");
  } else {
    AppendFloat(value, out);
  }
}

std::string KeyText(Value key) {
  std::string text;
  switch (key.kind) {
    case Kind::kString:
      return std::string(key.str());
    case Kind::kNone:
      return "null";
    case Kind::kBool:
      return key.b ? "true" : "false";
    case Kind::kInt:
    case Kind::kBigInt:
      AppendInteger(key, &text);
      return text;
    case Kind::kFloat:
      AppendJsonFloat(key.d, &text);
      return text;
    default:
      Fail("keys must be str, int, float, bool or None, not ", TypeName(key));
  }
}

void NewLine(const JsonFormat& format, int depth, std::string* out) {
  if (!format.pretty) return;
  out->push_back('\n');
  for (int i = 0; i < depth; ++i) out->append(format.indent);
}

void AppendArray(Interpreter& in, Value v, const JsonFormat& format, std::string* out, int depth) {
  size_t size = SequenceSize(v);
  if (size == 0) {
    out->append("[]");
    return;
  }
  out->push_back('[');
  for (size_t i = 0; i < size; ++i) {
    if (i > 0) out->append(format.item_separator);
    NewLine(format, depth + 1, out);
    AppendJson(in, SequenceItem(v, i), format, out, depth + 1);
  }
  NewLine(format, depth, out);
  out->push_back(']');
}

void AppendObject(Interpreter& in, Value v, const JsonFormat& format, std::string* out, int depth) {
  size_t size = DictSize(v);
  if (size == 0) {
    out->append("{}");
    return;
  }
  std::vector<size_t> order;
  if (format.sort_keys) {
    order.resize(size);
    for (size_t i = 0; i < size; ++i) order[i] = i;
    StableSort(&order, [&](size_t a, size_t b) {
      return Ordered(in, CompareOp::kLt, DictKeyAt(v, a), DictKeyAt(v, b));
    });
  }
  out->push_back('{');
  for (size_t i = 0; i < size; ++i) {
    size_t at = format.sort_keys ? order[i] : i;
    if (i > 0) out->append(format.item_separator);
    NewLine(format, depth + 1, out);
    Value key = DictKeyAt(v, at);
    if (key.is_string()) {
      AppendJsonText(key.str(), format.ascii, out);
    } else {
      AppendJsonText(KeyText(key), format.ascii, out);
    }
    out->append(format.key_separator);
    AppendJson(in, DictValueAt(v, at), format, out, depth + 1);
  }
  NewLine(format, depth, out);
  out->push_back('}');
}

}  // namespace

void AppendJson(Interpreter& in, Value v, const JsonFormat& format, std::string* out, int depth) {
  if (depth > kMaxDepth) LimitReached("values are nested too deeply");
  in.Step();
  in.CheckSize(*out);
  switch (v.kind) {
    case Kind::kNone:
      out->append("null");
      break;
    case Kind::kBool:
      out->append(v.b ? "true" : "false");
      break;
    case Kind::kInt:
    case Kind::kBigInt:
      AppendInteger(v, out);
      break;
    case Kind::kFloat:
      AppendJsonFloat(v.d, out);
      break;
    case Kind::kString:
      AppendJsonText(v.str(), format.ascii, out);
      break;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kJsonList:
      AppendArray(in, v, format, out, depth);
      break;
    case Kind::kDict:
    case Kind::kJsonDict:
      AppendObject(in, v, format, out, depth);
      break;
    default:
      Fail("Object of type ", TypeName(v), " is not JSON serializable");
  }
}

}  // namespace portico::jinja
