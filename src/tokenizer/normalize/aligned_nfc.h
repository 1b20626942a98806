// NFC of a text that remembers which part of it each part came from. The rules are those of NormalizedString; only the
// parts that NFC changes are looked at one character after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/encoding.h"

namespace portico::tokenizer {

class AlignedNfc {
 public:
  // `text` is valid UTF-8. Nothing where only a NormalizedString can tell.
  static std::optional<AlignedNfc> Of(std::string_view text);

  const std::string& text() const { return text_; }
  // Replaces ranges of whole characters of text(), none empty, ordered by where they begin, by those of the original
  // that they came from, in bytes.
  void ToOriginal(std::vector<Span>* spans) const;

 private:
  // A part that is not as it was.
  struct Part {
    uint32_t begin;  // in text()
    uint32_t end;
    uint32_t first;         // of its bytes in origin_
    uint32_t original_end;  // in the original
  };

  std::string text_;
  std::vector<Part> parts_;
  std::vector<Span> origin_;  // of each byte of the parts, in bytes of the original
};

}  // namespace portico::tokenizer
