// The merges of a model, laid out for look-ups.
#pragma once

#include <cstdint>
#include <memory>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/merge/merge_table.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// What merging waits for is memory: the tables are larger than the near caches, and each merge decides what is looked
// up next. So an entry is eight bytes with all that there is to know, half of MergeTable's: of the pair only the bits
// that its place in the table does not tell (the hash is a permutation), its rank, and what it becomes. Most pairs that
// are asked for do not merge, so a filter of one bit for each hash comes first. Immutable once made.
class PairMerges {
 public:
  static constexpr uint32_t kNone = (uint32_t{1} << 23) - 1;  // ranks are below it

  struct Pair {
    uint32_t rank;  // kNone: it does not merge
    TokenId merged;
  };

  // Null where ids or ranks are too large for this.
  static std::unique_ptr<const PairMerges> Make(const MergeTable& merges);

  // The tables as bytes, and back for ids below `limit`; null where these are not such bytes.
  void Save(CompiledWriter* out) const;
  static std::unique_ptr<const PairMerges> Restore(CompiledReader* in, TokenId limit);

  // Tokens from it on are in no pair, and must not be asked for but with Find().
  static constexpr TokenId kIdLimit = TokenId{1} << 18;
  Merge Find(TokenId left, TokenId right) const {
    if (left < 0 || right < 0 || left >= kIdLimit || right >= kIdLimit) return {};
    Pair pair = Get(left, right);
    return pair.rank == kNone ? Merge{} : Merge{pair.rank, pair.merged};
  }

  // There are no more pairs.
  size_t room() const { return slots_.size(); }

  // Calls `visit(left, right, merge)` for each, in no order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t at = 0; at < slots_.size(); ++at) {
      uint64_t slot = slots_[at];
      if (slot == 0) continue;
      uint64_t pair = PairOf(HashAt(at));
      auto left = static_cast<TokenId>(pair >> kIdBits);
      auto right = static_cast<TokenId>(pair & (kIdLimit - 1));
      Pair found = Unpack(slot);
      if (left >= limit_ || right >= limit_) continue;  // of bytes that Make() did not write
      visit(left, right, Merge{found.rank, found.merged});
    }
  }

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

  static_assert(kIdLimit == TokenId{1} << kIdBits);
  static constexpr uint64_t kFirst = 0x9E3779B97F4A7C15u;
  static constexpr uint64_t kSecond = 0xD6E8FEB86659FD93u;
  // Of an odd number modulo 2^64: each step doubles the bits that are right.
  static constexpr uint64_t InverseOf(uint64_t x) {
    uint64_t inverse = x;
    for (int i = 0; i < 5; ++i) inverse *= 2 - x * inverse;
    return inverse;
  }

  explicit PairMerges(int bits)
      : rest_bits_(kHashBits - bits), rest_mask_((uint64_t{1} << (kHashBits - bits)) - 1) {}

  // A permutation of the pairs, and back.
  static uint64_t HashOf(TokenId left, TokenId right) {
    uint64_t x = uint64_t{static_cast<uint32_t>(left)} << kIdBits | static_cast<uint32_t>(right);
    x = x * kFirst & kHashMask;
    x ^= x >> kIdBits;
    return x * kSecond & kHashMask;
  }
  static uint64_t PairOf(uint64_t hash) {
    uint64_t x = hash * InverseOf(kSecond) & kHashMask;
    x ^= x >> kIdBits;
    return x * InverseOf(kFirst) & kHashMask;
  }
  uint64_t HashAt(size_t at) const {
    uint64_t rest_and_distance = slots_[at] >> kRestShift;
    uint64_t place = at - rest_and_distance % kDistances;
    return (place << rest_bits_ | rest_and_distance >> kDistanceBits) & kHashMask;
  }
  static Pair Unpack(uint64_t slot) {
    auto rank = static_cast<uint32_t>(slot >> kIdBits) & ((uint32_t{1} << kRankBits) - 1);
    return {rank - 1, static_cast<TokenId>(slot & ((uint64_t{1} << kIdBits) - 1))};
  }
  bool Add(TokenId left, TokenId right, Merge merge);

  size_t SlotCount() const { return (size_t{1} << (kHashBits - rest_bits_)) + kDistances; }

  TokenId limit_ = kIdLimit;
  int filter_shift_ = kHashBits - kFilterBits;
  int rest_bits_;
  uint64_t rest_mask_;
  StoredRows<uint64_t> filter_;
  StoredRows<uint64_t> slots_;  // a power of two, and kDistances more
};

}  // namespace portico::tokenizer
