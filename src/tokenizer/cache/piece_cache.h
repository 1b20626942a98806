// A thread's memory of pieces that it has encoded: bytes to ids. English text is nearly all words seen before, so
// this is what an encode of it mostly does; a hit costs one cache line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/cache/hash.h"
#include "tokenizer/cache/piece_key.h"
#include "tokenizer/cache/text_cache.h"
#include "tokenizer/compiled/zeroed_memory.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// Three tables of fixed size. Short pieces (up to 15 bytes and 3 ids) lie in the first, two to a line, the older one
// replaced first; those of up to 32 bytes and 7 ids in the second, one to a line. Longer ones lie in a block that is
// emptied when it is full, once they come for the second time. About 4.5 MB in all, and the stretches of text
// (text_cache.h). One thread, one encoder.
class PieceCache {
 public:
  static constexpr size_t kShortBytes = PieceKey::kMostBytes;
  static constexpr size_t kShortIds = 3;
  static constexpr uint32_t kInMedium = UINT32_MAX;
  static constexpr size_t kMediumBytes = 32;
  static constexpr size_t kMediumIds = 7;
  static constexpr size_t kLongBytes = 256;

  PieceCache();

  using Key = PieceKey;
  struct Short {
    Key key;
    TokenId ids[kShortIds];
    uint32_t count;  // 0: free; kInMedium: too many, look there
  };

  // `hash` is the key's.
  const Short* FindShort(const Key& key, uint64_t hash) const {
    const Line& line = lines_[LineOf(hash)];
    if (line.slots[0].key == key && line.slots[0].count != 0) return &line.slots[0];
    if (line.slots[1].key == key && line.slots[1].count != 0) return &line.slots[1];
    return nullptr;
  }

  void AddShort(const Key& key, uint64_t hash, const TokenId* ids, size_t count) {
    Line& line = lines_[LineOf(hash)];
    line.slots[1] = line.slots[0];
    line.slots[0].key = key;
    std::copy_n(ids, count, line.slots[0].ids);
    line.slots[0].count = static_cast<uint32_t>(count);
  }
  // Says of a short piece that it is in the second table.
  void AddShortInMedium(const Key& key, uint64_t hash) {
    AddShort(key, hash, nullptr, 0);
    lines_[LineOf(hash)].slots[0].count = kInMedium;
  }

  // The short piece's slots will be asked for soon.
  void PrefetchShort(uint64_t hash) const { __builtin_prefetch(&lines_[LineOf(hash)]); }

  struct MediumKey {
    uint64_t words[4];
    uint64_t length;
  };
  struct alignas(64) Medium {
    uint64_t words[4];
    uint16_t length;
    uint16_t count;  // 0: free
    TokenId ids[kMediumIds];
  };

  // The key of a piece of 1 … 32 bytes: its first and its last sixteen, which may overlap.
  static MediumKey MediumKeyOf(std::string_view piece) {
    MediumKey key{{0, 0, 0, 0}, piece.size()};
    if (piece.size() >= 16) {
      std::memcpy(key.words, piece.data(), 16);
      std::memcpy(key.words + 2, piece.data() + piece.size() - 16, 16);
    } else {
      std::memcpy(key.words, piece.data(), piece.size());
    }
    return key;
  }

  void Prefetch(const MediumKey& key) const { __builtin_prefetch(&mediums_[MediumOf(key)]); }

  const Medium* FindMedium(const MediumKey& key) const {
    size_t at = MediumOf(key);
    if (IsOf(mediums_[at], key)) return &mediums_[at];
    if (IsOf(mediums_[at ^ 1], key)) return &mediums_[at ^ 1];
    return nullptr;
  }

  void AddMedium(const MediumKey& key, const TokenId* ids, size_t count) {
    size_t at = MediumOf(key);
    mediums_[at ^ 1] = mediums_[at];
    Medium& slot = mediums_[at];
    std::memcpy(slot.words, key.words, sizeof key.words);
    slot.length = static_cast<uint16_t>(key.length);
    slot.count = static_cast<uint16_t>(count);
    std::memcpy(slot.ids, ids, count * sizeof(TokenId));
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

  // Stores a piece that comes for the second time; the first time leaves its hash.
  void AddLong(std::string_view piece, uint64_t hash, const TokenId* ids, size_t count) {
    LongSlot& slot = long_[hash & (kLongSlots - 1)];
    if (slot.hash != hash) {
      slot = {hash, 0, 0, 0};
      return;
    }
    size_t words = count + (piece.size() + sizeof(TokenId) - 1) / sizeof(TokenId);
    if (block_.size() + words > kBlockWords) {
      block_.clear();
      std::memset(long_, 0, kLongSlots * sizeof(LongSlot));
    }
    size_t at = block_.size();
    block_.resize(at + words);
    std::memcpy(block_.data() + at, ids, count * sizeof(TokenId));
    std::memcpy(block_.data() + at + count, piece.data(), piece.size());
    slot = {hash, static_cast<uint32_t>(at), static_cast<uint16_t>(piece.size()),
            static_cast<uint16_t>(count)};
  }

  TextCache* texts() { return &texts_; }
  // Of stretches with added tokens in them. Made when first asked for.
  TextCache* raw_texts() {
    if (raw_texts_ == nullptr) raw_texts_ = std::make_unique<RawTexts>();
    return &raw_texts_->texts;
  }

  // Whether the encoder asks here before it asks its own table of words.
  bool first() const { return first_; }
  void set_first(bool first) { first_ = first; }

 private:
  static constexpr size_t kLines = size_t{1} << 15;
  static constexpr size_t kMediums = size_t{1} << 14;
  static constexpr size_t kLongSlots = size_t{1} << 14;
  static constexpr size_t kBlockWords = size_t{1} << 18;

  struct alignas(64) Line {
    Short slots[2];
  };
  struct LongSlot {
    uint64_t hash;
    uint32_t at;
    uint16_t length;  // 0: only the hash is known
    uint16_t count;
  };

  static size_t LineOf(uint64_t hash) { return hash & (kLines - 1); }

  static size_t MediumOf(const MediumKey& key) {
    const uint64_t* w = key.words;
    uint64_t first = MixHash(w[0] ^ 0x9E3779B97F4A7C15u, w[1] ^ key.length ^ 0xD6E8FEB86659FD93u);
    return (first ^ MixHash(w[2] ^ 0x9E3779B97F4A7C15u, w[3] ^ 0xA0761D6478BD642Fu)) &
           (kMediums - 1);
  }
  static bool IsOf(const Medium& slot, const MediumKey& key) {
    const uint64_t* a = slot.words;
    const uint64_t* b = key.words;
    uint64_t differs = (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]);
    return (differs | (slot.length ^ key.length)) == 0 && slot.count != 0;
  }

  // All tables together, so that they lie in few huge pages: a page that is touched for the first time costs about as
  // much as encoding a hundred bytes.
  struct Tables {
    Line lines[kLines];
    Medium mediums[kMediums];
    LongSlot longs[kLongSlots];
    TextCache::Slot texts[TextCache::kSlots];
  };

  struct RawTexts {
    RawTexts() { slots.Touch(); }
    ZeroedArray<TextCache::Slot> slots{TextCache::kSlots};
    TextCache texts{slots.data()};
  };

  ZeroedArray<Tables> tables_;
  Line* lines_;
  Medium* mediums_;
  LongSlot* long_;
  std::vector<TokenId> block_;
  TextCache texts_;
  std::unique_ptr<RawTexts> raw_texts_;
  bool first_ = false;
};

// The caches of one encoder, one a thread. Any thread.
class PieceCaches {
 public:
  PieceCaches();
  PieceCaches(const PieceCaches&) = delete;
  PieceCaches& operator=(const PieceCaches&) = delete;
  // This thread's. A thread keeps those of the few encoders it used last.
  PieceCache* OfThread() const;

 private:
  uint64_t number_;  // of the encoder in the process
};

}  // namespace portico::tokenizer
