// The merges of a byte-level model, laid out for the merging of short pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tokenizer/compiled_file.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/token_id.h"
#include "tokenizer/zeroed_memory.h"

namespace portico::tokenizer {

// What merging waits for is memory: the tables are larger than the near caches, and each merge decides what is looked
// up next. So an entry is eight bytes with all that there is to know, half of MergeTable's: of the pair only the bits
// that its place in the table does not tell (the hash is a permutation), its rank, and what it becomes. Most pairs that
// are asked for do not merge, so a filter of one bit for each hash comes first. Pairs of single bytes have a table of
// their own. Immutable once made.
class PairMerges {
 public:
  static constexpr uint32_t kNone = (uint32_t{1} << 23) - 1;  // ranks are below it

  struct Pair {
    uint32_t rank;  // kNone: it does not merge
    TokenId merged;
  };

  // Null where ids or ranks are too large for this. `byte_ids` are the tokens of the 256 bytes.
  static std::unique_ptr<const PairMerges> Make(const MergeTable& merges, const TokenId* byte_ids);

  // The tables as bytes, and back for ids below `limit`; null where these are not such bytes.
  void Save(CompiledWriter* out) const;
  static std::unique_ptr<const PairMerges> Restore(CompiledReader* in, TokenId limit);

  // A look-up in two steps: where to look, which asks for the memory, and the look. Between them there is time for
  // others.
  struct Place {
    uint64_t hash;
    bool may_merge;
  };
  Place Locate(TokenId left, TokenId right) const {
    uint64_t hash = HashOf(left, right);
    uint64_t bit = hash >> filter_shift_;
    bool may_merge = (filter_[bit / 64] >> bit % 64 & 1) != 0;
    // Without a branch: which pairs merge cannot be predicted.
    __builtin_prefetch(&slots_[may_merge ? hash >> rest_bits_ : 0]);
    return {hash, may_merge};
  }
  Pair Get(Place place) const {
    if (!place.may_merge) return {kNone, -1};
    uint64_t rest = place.hash & rest_mask_;
    size_t at = place.hash >> rest_bits_;
    for (uint64_t distance = 0; distance < kDistances; ++distance, ++at) {
      uint64_t slot = slots_[at];
      if (slot >> kRestShift == (rest << kDistanceBits | distance)) return Unpack(slot);
      if (slot == 0) break;
    }
    return {kNone, -1};
  }
  Pair Get(TokenId left, TokenId right) const { return Get(Locate(left, right)); }
  Pair OfBytes(unsigned char left, unsigned char right) const {
    return byte_pairs_[size_t{left} << 8 | right];
  }

 private:
  // A slot, from the low end: what the pair becomes, its rank + 1 (0: the slot is free), how far from its place it
  // lies, the rest of its hash.
  static constexpr int kIdBits = 18;
  static constexpr int kRankBits = 20;
  static constexpr int kRestShift = kIdBits + kRankBits;
  static constexpr int kDistanceBits = 6;
  static constexpr uint64_t kDistances = uint64_t{1} << kDistanceBits;
  static constexpr int kRestBits = 64 - kRestShift - kDistanceBits;
  static constexpr int kHashBits = 2 * kIdBits;
  static constexpr int kFilterBits = 21;
  static constexpr uint64_t kHashMask = (uint64_t{1} << kHashBits) - 1;

  explicit PairMerges(int bits);

  // A permutation of the pairs.
  static uint64_t HashOf(TokenId left, TokenId right) {
    uint64_t x = uint64_t{static_cast<uint32_t>(left)} << kIdBits | static_cast<uint32_t>(right);
    x = x * 0x9E3779B97F4A7C15u & kHashMask;
    x ^= x >> kIdBits;
    return x * 0xD6E8FEB86659FD93u & kHashMask;
  }
  static Pair Unpack(uint64_t slot) {
    auto rank = static_cast<uint32_t>(slot >> kIdBits) & ((uint32_t{1} << kRankBits) - 1);
    return {rank - 1, static_cast<TokenId>(slot & ((uint64_t{1} << kIdBits) - 1))};
  }
  bool Add(TokenId left, TokenId right, Merge merge);

  size_t SlotCount() const { return (size_t{1} << (kHashBits - rest_bits_)) + kDistances; }

  int filter_shift_ = kHashBits - kFilterBits;
  int rest_bits_;
  uint64_t rest_mask_;
  std::vector<uint64_t> filter_;
  ZeroedArray<uint64_t> slots_;  // a power of two, and kDistances more
  std::vector<Pair> byte_pairs_;
};

}  // namespace portico::tokenizer
