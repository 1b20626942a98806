// Offsets in bytes of a text to offsets in its code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/encoding.h"

namespace portico::tokenizer {

// As in the reference an offset inside a character counts as that
// character's begin, and a range that begins at the very end stays as it is.
class CharOffsets {
 public:
  explicit CharOffsets(std::string_view text) {
    unsigned char bits = 0;
    for (char c : text) bits |= static_cast<unsigned char>(c);
    if (bits < 0x80) return;
    index_.resize(text.size());
    uint32_t count = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      count += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 ? 1 : 0;
      index_[i] = count - 1;
    }
  }

  Span Of(Span bytes) const {
    if (index_.empty() || bytes.begin >= index_.size()) return bytes;
    if (bytes.end < index_.size()) return {index_[bytes.begin], index_[bytes.end]};
    return {index_[bytes.begin], index_.back() + 1};
  }

  std::vector<Span> Of(const std::vector<Span>& bytes) const {
    std::vector<Span> out = bytes;
    if (index_.empty()) return out;
    for (Span& span : out) span = Of(span);
    return out;
  }

 private:
  std::vector<uint32_t> index_;  // of each byte; empty for ASCII
};

}  // namespace portico::tokenizer
