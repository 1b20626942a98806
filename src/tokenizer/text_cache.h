// A thread's memory of stretches of text that it has encoded, a hundred bytes and more at a time: system prompts,
// earlier turns and documents come again and again, and a hit costs a comparison and a copy.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "tokenizer/hash.h"
#include "tokenizer/token_id.h"
#include "tokenizer/zeroed_memory.h"

namespace portico::tokenizer {

// A stretch is stored with the few bytes behind it, which decided where its last piece ends: it is found only where
// they follow again. It is stored when it comes for the second time, so that text that does not come again costs a
// note of eight bytes. 4 MB of stretches in a ring, the oldest overwritten first, and a table of 256 KB. One thread.
class TextCache {
 public:
  static constexpr size_t kLeast = 128;  // bytes of a stretch
  static constexpr size_t kMost = 1024;
  static constexpr size_t kBehind = 8;     // bytes behind it
  static constexpr size_t kReadable = 64;  // what HashOf() reads

  struct Slot {
    uint64_t stored;  // where the entry begins, in words ever written, and a tag
    uint64_t seen;    // a hash that came without being found; the latest of a set is its first
  };
  static constexpr size_t kSlots = size_t{1} << 14;

  // `slots`: kSlots of them, zeroed, that outlive this.
  explicit TextCache(Slot* slots) : ring_(kRingWords), slots_(slots) {}

  static uint64_t HashOf(const char* text) { return HashBytes({text, kReadable}); }

  // Find() or Note() comes soon.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(SetOf(hash), 1); }

  struct Found {
    size_t bytes = 0;  // 0: nothing
    std::span<const TokenId> ids;
  };
  // The stretch that `text` begins with; `readable` bytes of it may be read.
  Found Find(const char* text, size_t readable, uint64_t hash) const {
    const Slot* set = SetOf(hash);
    for (size_t way = 0; way < kWays; ++way) {
      uint64_t stored = set[way].stored;
      if ((stored & kTagMask) != TagOf(hash)) continue;
      uint64_t at = stored >> kTagBits;
      if (at >= head_ || head_ - at > kRingWords) continue;
      const uint32_t* entry = ring_.data() + at % kRingWords;
      size_t bytes = entry[0];
      size_t count = entry[1];
      if (readable < bytes + kBehind) continue;
      if (std::memcmp(entry + 2 + count, text, bytes + kBehind) != 0) continue;
      return {bytes, {reinterpret_cast<const TokenId*>(entry + 2), count}};
    }
    return {};
  }

  // A stretch that was not found. kBehind bytes behind it can be read.
  void Note(const char* text, size_t bytes, uint64_t hash, std::span<const TokenId> ids) {
    Slot* set = SetOf(hash);
    for (size_t way = 0; way < kWays; ++way) {
      if (set[way].seen == hash) return Store(text, bytes, hash, ids);
    }
    for (size_t way = kWays - 1; way > 0; --way) set[way].seen = set[way - 1].seen;
    set[0].seen = hash;
  }

 private:
  static constexpr size_t kRingWords = size_t{1} << 20;
  static constexpr int kTagBits = 24;
  static constexpr uint64_t kTagMask = (uint64_t{1} << kTagBits) - 1;

  // A set is a cache line. Stretches that share one, or begin alike, must not keep each other out.
  static constexpr size_t kWays = 4;
  Slot* SetOf(uint64_t hash) const { return slots_ + hash % (kSlots / kWays) * kWays; }

  // Never 0, so that a free slot matches nothing.
  static uint64_t TagOf(uint64_t hash) { return (hash >> (64 - kTagBits)) | 1; }
  void Store(const char* text, size_t bytes, uint64_t hash, std::span<const TokenId> ids);

  ZeroedArray<uint32_t>
      ring_;  // entries: bytes, ids, then the ids and the text with what is behind it
  Slot* slots_;
  uint64_t head_ = 0;  // words ever written, those left out at the ring's end included
};

}  // namespace portico::tokenizer
