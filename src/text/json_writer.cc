#include "text/json_writer.h"

#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace portico {
namespace {

constexpr char kHex[] = "0123456789abcdef";

bool NeedsEscape(unsigned char c) { return c < 0x20 || c == '"' || c == '\\' || c >= 0x80; }

void AppendEscape(unsigned char c, std::string* out) {
  switch (c) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\b':
      out->append("\\b");
      return;
    case '\f':
      out->append("\\f");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    default:
      out->append("\\u00");
      out->push_back(kHex[c >> 4]);
      out->push_back(kHex[c & 15]);
  }
}

template <typename Number>
void AppendNumber(Number value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append("null");
    return;
  }
  char buffer[32];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  out->append(text);
  if (text.find_first_of(".e") == std::string_view::npos) out->append(".0");
}

}  // namespace

void AppendJsonEscaped(std::string_view text, std::string* out) {
  size_t i = 0;
  while (i < text.size()) {
    size_t run = i;
    while (run < text.size() && !NeedsEscape(static_cast<unsigned char>(text[run]))) ++run;
    out->append(text, i, run - i);
    i = run;
    if (i == text.size()) return;
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      AppendEscape(c, out);
      ++i;
    } else if (size_t length = Utf8SequenceLength(text.substr(i)); length > 0) {
      out->append(text, i, length);
      i += length;
    } else {
      out->append("\xEF\xBF\xBD");
      ++i;
    }
  }
}

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  AppendJsonEscaped(text, out);
  out->push_back('"');
}

void AppendJsonDouble(double value, std::string* out) { AppendNumber(value, out); }

void AppendJsonFloat(float value, std::string* out) { AppendNumber(value, out); }

void AppendJsonFloats(std::span<const float> values, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendNumber(values[i], out);
  }
  out->push_back(']');
}

void AppendJsonInt(int64_t value, std::string* out) {
  char buffer[24];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  out->append(buffer, static_cast<size_t>(result.ptr - buffer));
}

void JsonWriter::BeforeValue() {
  if (comma_) out_->push_back(',');
  comma_ = true;
}

JsonWriter& JsonWriter::Open(char bracket) {
  BeforeValue();
  out_->push_back(bracket);
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  out_->push_back(bracket);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  BeforeValue();
  AppendJsonString(key, out_);
  out_->push_back(':');
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  BeforeValue();
  AppendJsonString(value, out_);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  BeforeValue();
  AppendJsonInt(value, out_);
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  BeforeValue();
  AppendJsonDouble(value, out_);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  BeforeValue();
  out_->append(value ? "true" : "false");
  return *this;
}

JsonWriter& JsonWriter::Null() {
  BeforeValue();
  out_->append("null");
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  BeforeValue();
  out_->append(json);
  return *this;
}

}  // namespace portico
