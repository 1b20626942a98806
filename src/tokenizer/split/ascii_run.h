// How far a run of ASCII letters goes, sixteen bytes at a time where the machine has it (SSE2).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace portico::tokenizer::scan {

// The end of the run of letters a-z (with `kBothCases` also A-Z) from `p` on.
template <bool kBothCases>
[[gnu::always_inline]] inline const char* AsciiLetters(const char* p, const char* end) {
#if defined(__SSE2__)
  while (end - p >= 16) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    if (kBothCases) bytes = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    // Shifted so that a-z are the 26 least signed numbers.
    __m128i shifted = _mm_sub_epi8(bytes, _mm_set1_epi8(static_cast<char>('a' + 128)));
    __m128i letters = _mm_cmplt_epi8(shifted, _mm_set1_epi8(-128 + 26));
    auto others = static_cast<uint32_t>(_mm_movemask_epi8(letters)) ^ 0xFFFFu;
    if (others != 0) return p + std::countr_zero(others);
    p += 16;
  }
#endif
  while (p < end) {
    auto b = static_cast<unsigned char>(*p);
    if (kBothCases) b |= 0x20;
    if (b < 'a' || b > 'z') break;
    ++p;
  }
  return p;
}

// The first byte from `p` on that is a digit or not ASCII.
[[gnu::always_inline]] inline const char* SkipToDigitOrWide(const char* p, const char* end) {
#if defined(__SSE2__)
  while (end - p >= 16) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    __m128i shifted = _mm_sub_epi8(bytes, _mm_set1_epi8(static_cast<char>('0' + 128)));
    __m128i digits = _mm_cmplt_epi8(shifted, _mm_set1_epi8(-128 + 10));
    int found = _mm_movemask_epi8(_mm_or_si128(digits, bytes));
    if (found != 0) return p + std::countr_zero(static_cast<uint32_t>(found));
    p += 16;
  }
#endif
  while (p < end && static_cast<unsigned char>(*p) < 0x80 && (*p < '0' || *p > '9')) ++p;
  return p;
}

inline bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace portico::tokenizer::scan
