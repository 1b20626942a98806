// A short piece of text as two words, for tables that compare it without looking at the text again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tokenizer/cache/hash.h"

namespace portico::tokenizer {

// The bytes of a piece of 1 … kMostBytes bytes, zeros behind them, and its length in the last byte.
struct PieceKey {
  static constexpr size_t kMostBytes = 15;

  uint64_t low;
  uint64_t high;
  friend bool operator==(const PieceKey&, const PieceKey&) = default;

  static PieceKey Of(std::string_view piece) {
    PieceKey key{};
    std::memcpy(&key, piece.data(), piece.size());
    key.high |= uint64_t{piece.size()} << 56;
    return key;
  }
  // The same, faster where `readable` bytes from `piece` on may be read and that is enough.
  static PieceKey Of(const char* piece, size_t length, size_t readable) {
    if (readable < sizeof(PieceKey)) [[unlikely]]
      return Of({piece, length});
    PieceKey key;
    std::memcpy(&key, piece, sizeof key);
    key.low &= kKept[length].low;
    key.high = (key.high & kKept[length].high) | uint64_t{length} << 56;
    return key;
  }

  uint64_t Hash() const { return MixHash(low ^ 0x9E3779B97F4A7C15u, high ^ 0xD6E8FEB86659FD93u); }

 private:
  struct Mask {
    uint64_t low;
    uint64_t high;
  };
  static constexpr std::array<Mask, kMostBytes + 1> kKept = [] {
    std::array<Mask, kMostBytes + 1> masks{};
    for (size_t length = 0; length <= kMostBytes; ++length) {
      auto first = [](size_t bytes) {
        return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
      };
      masks[length] = {first(length), first(length < 8 ? 0 : length - 8)};
    }
    return masks;
  }();
};

}  // namespace portico::tokenizer
