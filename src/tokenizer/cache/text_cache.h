// A thread's memory of stretches of text that it has encoded, a hundred bytes and more at a time: system prompts,
// earlier turns and documents come again and again, and a hit costs a comparison and a copy.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "tokenizer/cache/hash.h"
#include "tokenizer/compiled/zeroed_memory.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// A stretch is stored with the few bytes behind it, which decided where its last piece ends: it is found only where
// they follow again. One at the end of a text is found only at an end. It is stored when it comes for the second time, so
// that text that does not come again costs a note of eight bytes. With its ids, where their tokens lie may be kept
// (place_sink.h); what is kept later takes the place of what lacked it. 4 MB of stretches in a ring, the oldest overwritten
// first, and a table of 256 KB. One thread.
class TextCache {
 public:
  // What HashOf() reads, so the least that a stretch is looked for in.
  static constexpr size_t kReadable = 64;
  static constexpr size_t kBehind = 8;   // bytes behind a stretch
  static constexpr size_t kLeast = 128;  // bytes of a stretch, but for the last one of a text
  static constexpr size_t kMost = 1024;
  // The least bytes of a stretch where so many are left. Each stretch costs a look at memory that is far away, so those of
  // long texts are longer; and the last one takes what is left where that is too short for another.
  static constexpr size_t LeastOf(size_t readable) {
    if (readable < kLeast + kReadable) return readable;
    return readable < 4096 ? kLeast : 512;
  }
  // Whether a stretch may be stored that leaves so many of the readable bytes.
  static constexpr bool MayStore(size_t bytes, size_t left) {
    return bytes < kMost && (left == 0 || left >= kBehind);
  }

  struct Slot {
    uint64_t stored;  // where the entry begins, in words ever written, and a tag
    uint64_t seen;    // a hash that came without being found; the latest of a set is its first
  };
  static constexpr size_t kSlots = size_t{1} << 14;

  // `slots`: kSlots of them, zeroed, that outlive this.
  explicit TextCache(Slot* slots) : ring_(kRingWords), slots_(slots) { ring_.Touch(); }

  static uint64_t HashOf(const char* text) { return HashBytes({text, kReadable}); }

  // Find() or Note() comes soon.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(SetOf(hash), 1); }

  struct Found {
    size_t bytes = 0;  // 0: nothing
    std::span<const TokenId> ids;
    std::span<const uint32_t> places;  // as they were kept
  };
  // The stretch that `text` begins with; `readable` bytes are left of it, kReadable or more.
  Found Find(const char* text, size_t readable, uint64_t hash) const {
    const Slot* set = SetOf(hash);
    for (size_t way = 0; way < kWays; ++way) {
      uint64_t stored = set[way].stored;
      if ((stored & kTagMask) != TagOf(hash)) continue;
      uint64_t at = stored >> kTagBits;
      if (at >= head_ || head_ - at > kRingWords) continue;
      const uint32_t* entry = ring_.data() + at % kRingWords;
      const size_t kept = entry[0];
      const size_t bytes = entry[1];
      const size_t count = entry[2];
      if (kept == bytes ? readable != bytes : readable < kept) continue;
      const uint32_t* ids = entry + kHeadWords;
      if (std::memcmp(ids + count, text, kept) != 0) continue;
      return {bytes,
              {reinterpret_cast<const TokenId*>(ids), count},
              {ids + count + TextWords(kept), entry[3]}};
    }
    return {};
  }

  // Whether a stretch that was not found came before; it is remembered that it did.
  bool Seen(uint64_t hash) {
    Slot* set = SetOf(hash);
    for (size_t way = 0; way < kWays; ++way) {
      if (set[way].seen == hash) return true;
    }
    for (size_t way = kWays - 1; way > 0; --way) set[way].seen = set[way - 1].seen;
    set[0].seen = hash;
    return false;
  }
  // Keeps a stretch that leaves so many of the readable bytes, where MayStore() says so.
  void Store(const char* text, size_t bytes, size_t left, uint64_t hash,
             std::span<const TokenId> ids, std::span<const uint32_t> places = {});

 private:
  static constexpr size_t kHeadWords = 4;
  static constexpr size_t kRingWords = size_t{1} << 20;
  static constexpr int kTagBits = 24;
  static constexpr uint64_t kTagMask = (uint64_t{1} << kTagBits) - 1;

  // A set is a cache line. Stretches that share one, or begin alike, must not keep each other out.
  static constexpr size_t kWays = 4;
  Slot* SetOf(uint64_t hash) const { return slots_ + hash % (kSlots / kWays) * kWays; }

  // Never 0, so that a free slot matches nothing.
  static uint64_t TagOf(uint64_t hash) { return (hash >> (64 - kTagBits)) | 1; }
  // Words that so many bytes take.
  static constexpr size_t TextWords(size_t bytes) {
    return (bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
  }

  // Entries: the numbers of bytes with and without those behind the stretch, of ids and of places, then the ids, the text with
  // what is behind it, and the places.
  ZeroedArray<uint32_t> ring_;
  Slot* slots_;
  uint64_t head_ = 0;  // words ever written, those left out at the ring's end included
};

}  // namespace portico::tokenizer
