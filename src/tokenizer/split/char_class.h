// The classes of characters that the known split patterns tell apart, one byte a code point.
#pragma once

#include <cstddef>
#include <cstdint>

namespace portico::tokenizer {

enum CharClass : uint8_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kSpace = 4,         // \s
  kNewline = 8,       // \r \n
  kUpper = 16,        // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  kLower = 32,        // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  kMark = 64,         // \p{M}
  kPunctSymbol = 128  // [\p{P}\p{S}]
};

// Blocks of 64 code points, equal blocks stored once. Built by the first call of Get().
class CharClasses {
 public:
  static const CharClasses& Get();

  uint8_t Ascii(unsigned char c) const { return blocks_[c]; }
  uint8_t Of(uint32_t c) const { return blocks_[index_[c >> 6] * size_t{64} + (c & 63)]; }

 private:
  CharClasses();

  uint16_t index_[0x110000 / 64];
  uint8_t* blocks_;  // the first two are ASCII
};

// One character of valid UTF-8: its class and its length in bytes.
struct ClassedChar {
  uint8_t char_class;
  uint8_t length;
};

// Inlined by force: it is called for every character, and compilers think it too large for that.
[[gnu::always_inline]] inline ClassedChar ClassAt(const CharClasses& classes, const char* p) {
  auto b = reinterpret_cast<const unsigned char*>(p);
  if (b[0] < 0x80) return {classes.Ascii(b[0]), 1};
  if (b[0] < 0xE0) {
    return {classes.Of(uint32_t{b[0]} << 6 ^ b[1] ^ (0xC0 << 6 ^ 0x80)), 2};
  }
  if (b[0] < 0xF0) {
    return {classes.Of((uint32_t{b[0]} & 15) << 12 | (uint32_t{b[1]} & 63) << 6 | (b[2] & 63)), 3};
  }
  return {classes.Of((uint32_t{b[0]} & 7) << 18 | (uint32_t{b[1]} & 63) << 12 |
                     (uint32_t{b[2]} & 63) << 6 | (b[3] & 63)),
          4};
}

}  // namespace portico::tokenizer
