// A thread's memory of pieces that it has encoded: bytes to ids. English text is nearly all words seen before, so
// this is what an encode of it mostly does; a hit costs one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// Two tables of fixed size. Short pieces (up to 15 bytes and 3 ids) lie in the table itself, two to a line, the older
// one replaced first. Longer ones lie in a block that is emptied when it is full. About 3.3 MB in all, touched as it
// fills. One thread, one encoder.
class PieceCache {
 public:
  static constexpr size_t kShortBytes = 15;
  static constexpr size_t kShortIds = 3;
  static constexpr size_t kLongBytes = 256;

  PieceCache() : lines_(new Line[kLines]()), long_(kLongSlots) { block_.reserve(kBlockWords); }

  struct Key {
    uint64_t low;
    uint64_t high;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Short {
    Key key;
    TokenId ids[kShortIds];
    uint32_t count;  // 0: free
  };

  // The key of a piece of 1 … 15 bytes; `readable` bytes from it on may be read.
  static Key KeyOf(const char* piece, size_t length, size_t readable) {
    Key key{0, 0};
    if (readable >= 16) {
      std::memcpy(&key, piece, 16);
      uint64_t keep = ~uint64_t{0} >> (64 - 8 * (length & 7)) % 64;
      if (length < 8) {
        key.low &= keep;
        key.high = 0;
      } else {
        key.high = length == 8 ? 0 : key.high & keep;
      }
    } else {
      std::memcpy(&key, piece, length);
    }
    key.high |= uint64_t{length} << 56;
    return key;
  }

  const Short* FindShort(const Key& key) const {
    const Line& line = lines_[LineOf(key)];
    if (line.slots[0].key == key && line.slots[0].count != 0) return &line.slots[0];
    if (line.slots[1].key == key && line.slots[1].count != 0) return &line.slots[1];
    return nullptr;
  }

  void AddShort(const Key& key, const TokenId* ids, size_t count) {
    Line& line = lines_[LineOf(key)];
    line.slots[1] = line.slots[0];
    line.slots[0].key = key;
    std::memcpy(line.slots[0].ids, ids, count * sizeof(TokenId));
    line.slots[0].count = static_cast<uint32_t>(count);
  }

  // The ids of a longer piece, or null; `*count` of them.
  const TokenId* FindLong(std::string_view piece, uint64_t hash, size_t* count) const {
    const LongSlot& slot = long_[hash & (kLongSlots - 1)];
    if (slot.hash != hash || slot.length != piece.size()) return nullptr;
    const TokenId* words = block_.data() + slot.at;
    if (std::memcmp(words + slot.count, piece.data(), piece.size()) != 0) return nullptr;
    *count = slot.count;
    return words;
  }

  void AddLong(std::string_view piece, uint64_t hash, const TokenId* ids, size_t count) {
    size_t words = count + (piece.size() + sizeof(TokenId) - 1) / sizeof(TokenId);
    if (block_.size() + words > kBlockWords) {
      block_.clear();
      std::fill(long_.begin(), long_.end(), LongSlot{});
    }
    size_t at = block_.size();
    block_.resize(at + words);
    std::memcpy(block_.data() + at, ids, count * sizeof(TokenId));
    std::memcpy(block_.data() + at + count, piece.data(), piece.size());
    long_[hash & (kLongSlots - 1)] = {hash, static_cast<uint32_t>(at),
                                      static_cast<uint16_t>(piece.size()),
                                      static_cast<uint16_t>(count)};
  }

  // This thread's cache for the encoder of that number. A thread keeps those of the few encoders it used last.
  static PieceCache* OfThread(uint64_t encoder);

 private:
  static constexpr size_t kLines = size_t{1} << 15;
  static constexpr size_t kLongSlots = size_t{1} << 14;
  static constexpr size_t kBlockWords = size_t{1} << 18;

  struct alignas(64) Line {
    Short slots[2];
  };
  struct LongSlot {
    uint64_t hash = 0;
    uint32_t at = 0;
    uint16_t length = 0;
    uint16_t count = 0;
  };

  static size_t LineOf(const Key& key) {
    return MixHash(key.low ^ 0x9E3779B97F4A7C15u, key.high ^ 0xD6E8FEB86659FD93u) & (kLines - 1);
  }

  std::unique_ptr<Line[]> lines_;
  std::vector<LongSlot> long_;
  std::vector<TokenId> block_;
};

}  // namespace portico::tokenizer
