// Offsets in bytes of a text to offsets in its code points.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/char_begins.h"
#include "tokenizer/encoding.h"

namespace portico::tokenizer {

// As in the reference an offset inside a character counts as that
// character's begin, and a range that begins at the very end stays as it is.
class CharOffsets {
 public:
  explicit CharOffsets(std::string_view text) {
    if (IsAscii(text)) return;
    size_ = text.size();
    blocks_.resize((size_ + kBytes - 1) / kBytes);
    uint32_t count = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const Block& block = blocks_[i] = {CharBeginsIn(text.substr(i * kBytes, kBytes)), count};
      count += static_cast<uint32_t>(std::popcount(block.begins));
    }
    count_ = count;
  }

  Span Of(Span bytes) const {
    if (bytes.begin >= size_) return bytes;
    return {At(bytes.begin), bytes.end < size_ ? At(bytes.end) : count_};
  }

  std::vector<Span> Of(const std::vector<Span>& bytes) const {
    std::vector<Span> out = bytes;
    if (blocks_.empty()) return out;
    for (Span& span : out) span = Of(span);
    return out;
  }

 private:
  static constexpr size_t kBytes = 64;

  struct Block {
    uint64_t begins = 0;  // a bit for each byte that a character begins with
    uint32_t before = 0;  // characters that begin before the block
  };

  // The character that the byte is part of.
  uint32_t At(uint32_t byte) const {
    const Block& block = blocks_[byte / kBytes];
    uint64_t up_to = ~uint64_t{0} >> (kBytes - 1 - byte % kBytes);
    return block.before + static_cast<uint32_t>(std::popcount(block.begins & up_to)) - 1;
  }

  std::vector<Block> blocks_;  // empty for ASCII
  size_t size_ = 0;            // 0 for ASCII
  uint32_t count_ = 0;         // characters of the text
};

}  // namespace portico::tokenizer
