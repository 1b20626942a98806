// UTF-8: well-formedness as Unicode defines it (no surrogates, no overlong forms, nothing above U+10FFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace portico {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Whether the byte is one of a character and not its first.
inline bool IsTailByte(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Length (1-4) of the well-formed sequence at the start of `text`, or 0 where there is none.
inline size_t Utf8SequenceLength(std::string_view text) {
  if (text.empty()) return 0;
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto tail = [&](size_t i) { return IsTailByte(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return text.size() >= 2 && tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (text.size() < 3 || !tail(1) || !tail(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (text.size() < 4 || !tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

// The code point of the well-formed sequence of `length` bytes at the start of `text`.
inline uint32_t Utf8Decode(std::string_view text, size_t length) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  switch (length) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
  }
}

void AppendUtf8(uint32_t code_point, std::string* out);
bool IsValidUtf8(std::string_view text);
// Ill-formed parts become U+FFFD, one for each maximal subpart (as Python's and Rust's lossy decoders do).
std::string ToValidUtf8(std::string_view text);
size_t CountCodePoints(std::string_view text);

}  // namespace portico
