#include "text/utf8.h"

#include <simdjson.h>

namespace portico {
namespace {

// Bytes at the start of `text` that begin a well-formed sequence but do not finish it; at least 1.
size_t MaximalSubpart(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  size_t want = lead >= 0xF0 && lead <= 0xF4   ? 4
                : lead >= 0xE0 && lead <= 0xEF ? 3
                : lead >= 0xC2 && lead <= 0xDF ? 2
                                               : 1;
  size_t n = 1;
  while (n < want && n < text.size() && IsTailByte(text[n])) {
    if (n == 1) {
      unsigned char second = byte(1);
      bool bad = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                 (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
      if (bad) break;
    }
    ++n;
  }
  return n;
}

}  // namespace

void AppendUtf8(uint32_t c, std::string* out) {
  auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool IsValidUtf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::string ToValidUtf8(std::string_view text) {
  if (IsValidUtf8(text)) return std::string(text);
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    if (size_t length = Utf8SequenceLength(text)) {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    } else {
      out.append(kReplacementCharacter);
      text.remove_prefix(MaximalSubpart(text));
    }
  }
  return out;
}

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (char c : text) count += !IsTailByte(c);
  return count;
}

}  // namespace portico
