#include "text/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "text/utf8.h"

namespace portico {
namespace {

constexpr char kHex[] = "0123456789abcdef";

bool NeedsEscape(unsigned char c) { return c < 0x20 || c == '"' || c == '\\' || c >= 0x80; }

constexpr uint64_t EachByte(uint8_t value) { return value * uint64_t{0x0101010101010101}; }

// The same for eight bytes at once.
bool AnyNeedsEscape(uint64_t bytes) {
  const uint64_t quote = bytes ^ EachByte('"');
  const uint64_t backslash = bytes ^ EachByte('\\');
  // A byte less than what is taken from it borrows, into its highest bit; those that had it before are found by `bytes`.
  const uint64_t low = (bytes - EachByte(0x20)) | (quote - EachByte(1)) | (backslash - EachByte(1));
  return ((low | bytes) & EachByte(0x80)) != 0;
}

// The text's one to seven bytes, in any order, some of them twice, and spaces.
uint64_t FewBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(text[i])}; };
  const size_t last = text.size() - 1;
  if (last < 3) return byte(0) | byte(last / 2) << 8 | byte(last) << 16 | EachByte(' ') << 24;
  uint32_t first = 0;
  uint32_t second = 0;
  std::memcpy(&first, text.data(), sizeof first);
  std::memcpy(&second, text.data() + text.size() - sizeof second, sizeof second);
  return first | uint64_t{second} << 32;
}

// So many bytes at the front of the text need no escape.
size_t PlainBytes(std::string_view text) {
  size_t i = 0;
  bool plain = true;
  for (; text.size() - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + i, sizeof bytes);
    plain = !AnyNeedsEscape(bytes);
    if (!plain) break;
  }
  if (plain && (i == text.size() || !AnyNeedsEscape(FewBytes(text.substr(i))))) return text.size();
  while (i < text.size() && !NeedsEscape(static_cast<unsigned char>(text[i]))) ++i;
  return i;
}

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
    const auto c = static_cast<unsigned char>(text[i]);
    if (!NeedsEscape(c)) {
      const std::string_view plain = text.substr(i, PlainBytes(text.substr(i)));
      out->append(plain);
      i += plain.size();
    } else if (c < 0x80) {
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
