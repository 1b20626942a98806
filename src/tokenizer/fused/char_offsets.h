// Offsets in bytes of a text to offsets in its code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/encoding.h"
#include "tokenizer/split/char_begins.h"

namespace portico::tokenizer {

// As in the reference an offset inside a character counts as that
// character's begin, and a range that begins at the very end stays as it is.
class CharOffsets {
 public:
  explicit CharOffsets(std::string_view text) {
    if (IsAscii(text)) return;
    size_ = text.size();
    chars_.Count(text);
  }

  Span Of(Span bytes) const {
    if (bytes.begin >= size_) return bytes;
    return {At(bytes.begin), bytes.end < size_ ? At(bytes.end) : chars_.total()};
  }

  std::vector<Span> Of(const std::vector<Span>& bytes) const {
    std::vector<Span> out = bytes;
    if (size_ == 0) return out;
    for (Span& span : out) span = Of(span);
    return out;
  }

 private:
  // The character that the byte is part of.
  uint32_t At(uint32_t byte) const { return chars_.Before(byte + 1) - 1; }

  CharBlocks chars_;
  size_t size_ = 0;  // 0 for ASCII
};

}  // namespace portico::tokenizer
