// Where the characters of UTF-8 begin, for many bytes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "text/utf8.h"

namespace portico::tokenizer {

inline bool IsAscii(std::string_view text) {
  unsigned char bits = 0;
  for (char c : text) bits |= static_cast<unsigned char>(c);
  return bits < 0x80;
}

// A bit for each of up to 64 bytes that a character begins with.
inline uint64_t CharBeginsIn(std::string_view bytes) {
  uint64_t begins = 0;
  size_t i = 0;
#if defined(__SSE2__)
  for (; i + 16 <= bytes.size(); i += 16) {
    __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + i));
    // 0x80 … 0xBF are the numbers below -64.
    auto bits = static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_cmpgt_epi8(block, _mm_set1_epi8(static_cast<char>(0xBF)))));
    begins |= uint64_t{bits} << i;
  }
#endif
  for (; i < bytes.size(); ++i) {
    begins |= uint64_t{!IsTailByte(bytes[i])} << i;
  }
  return begins;
}

}  // namespace portico::tokenizer
