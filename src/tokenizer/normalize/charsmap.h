// SentencePiece's compiled character map ("precompiled_charsmap"): a Darts double array from UTF-8 to replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace portico::tokenizer {

// Immutable. Every walk of the array is checked, so a damaged map gives no match and never reads outside.
class Charsmap {
 public:
  // `blob`: u32 size of the array in bytes, the array, then the replacements, each ended by a zero byte.
  static StatusOr<Charsmap> Parse(std::string_view blob);

  // The replacement for the shortest prefix of `text` that the map has.
  std::optional<std::string_view> Shortest(std::string_view text) const;
  // The longest prefix that the map has: its length, and the replacement.
  std::optional<std::pair<size_t, std::string_view>> Longest(std::string_view text) const;

 private:
  template <typename Found>
  void Walk(std::string_view text, Found found) const;
  std::string_view ReplacementAt(uint32_t offset) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

// Standard base64 with padding; an error for anything else.
StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace portico::tokenizer
