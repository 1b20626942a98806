// GPT-2's spelling of bytes as characters: printable Latin-1 as itself, the other 68 bytes from U+0100 on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace portico::tokenizer {

class NormalizedString;

// The character that stands for each byte.
inline constexpr std::array<uint16_t, 256> kByteLevelChars = [] {
  std::array<uint16_t, 256> chars{};
  uint16_t next = 256;
  for (uint16_t b = 0; b < 256; ++b) {
    bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    chars[b] = printable ? b : next++;
  }
  return chars;
}();

// The byte that a character stands for, or -1.
int ByteOfByteLevelChar(uint32_t code_point);

// Appends the bytes that `token` spells. A token with any character that stands for no byte is its own UTF-8.
void AppendByteLevelDecoded(std::string_view token, std::string* out);

// The same, but of such a token nothing.
void AppendByteLevelBytes(std::string_view token, std::string* out);

// The spelling of `bytes`.
std::string ToByteLevel(std::string_view bytes);

// Makes of each byte its character; the places stay those of the characters that the bytes are parts of.
void SpellBytes(NormalizedString* text);

}  // namespace portico::tokenizer
