// Where the characters of UTF-8 begin, and how many there are, for many bytes at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

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

// The characters of a valid UTF-8 text by its bytes, of which the text's end is one more.
class CharBlocks {
 public:
  // Forgets the text before.
  void Count(std::string_view text) {
    const size_t blocks = text.size() / kBlock + 1;
    if (begins_.size() < blocks) {
      begins_.resize(blocks);
      before_.resize(blocks);
    }
    total_ = 0;
    for (size_t i = 0; i < blocks; ++i) {
      begins_[i] = CharBeginsIn(text.substr(i * kBlock, kBlock));
      before_[i] = total_;
      total_ += static_cast<uint32_t>(std::popcount(begins_[i]));
    }
    begins_[text.size() / kBlock] |= uint64_t{1} << text.size() % kBlock;
  }

  uint32_t total() const { return total_; }
  // Bytes that there is memory for.
  size_t capacity() const { return begins_.capacity() * kBlock; }
  // How many characters begin in front of the byte.
  uint32_t Before(uint32_t at) const {
    const uint64_t in_front = begins_[at / kBlock] & ((uint64_t{1} << at % kBlock) - 1);
    return before_[at / kBlock] + static_cast<uint32_t>(std::popcount(in_front));
  }
  // Where the character begins that the byte is of.
  uint32_t BeginOf(uint32_t at) const {
    const uint64_t in_front = begins_[at / kBlock] << (kBlock - 1 - at % kBlock);
    if (in_front != 0) [[likely]]
      return at - static_cast<uint32_t>(std::countl_zero(in_front));
    const uint32_t block = at / kBlock;
    return block * kBlock - 1 - static_cast<uint32_t>(std::countl_zero(begins_[block - 1]));
  }
  // Where the next one begins, if `at` is not a beginning itself.
  uint32_t EndOf(uint32_t at) const {
    const uint64_t behind = begins_[at / kBlock] >> at % kBlock;
    if (behind != 0) [[likely]]
      return at + static_cast<uint32_t>(std::countr_zero(behind));
    const uint32_t block = at / kBlock + 1;
    return block * kBlock + static_cast<uint32_t>(std::countr_zero(begins_[block]));
  }

 private:
  static constexpr uint32_t kBlock = 64;

  std::vector<uint64_t> begins_;  // a bit a byte: a character begins there, or the text ends
  std::vector<uint32_t> before_;  // characters in front of the block
  uint32_t total_ = 0;
};

}  // namespace portico::tokenizer
