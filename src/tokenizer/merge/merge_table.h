// Which pairs of tokens merge, how early, and into what.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tokenizer/cache/hash.h"
#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

struct Merge {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t rank = kNone;  // lower merges first
  TokenId id = -1;        // what the pair becomes
};

// Open addressing over pairs of any ids; sized once. Lookups touch one cache line nearly always.
class MergeTable {
 public:
  // For at most `count` pairs.
  void Reserve(size_t count) {
    size_t slots = 16;
    while (slots < count + count / 2) slots *= 2;
    slots_.assign(slots, Slot{});
    mask_ = slots - 1;
  }

  // The table as bytes, and back for ids below `limit`; false where these are not such bytes.
  void Save(CompiledWriter* out) const { out->Rows(slots_); }
  bool Restore(CompiledReader* in, TokenId limit) {
    if (!in->Rows(&slots_) || (slots_.size() & (slots_.size() - 1)) != 0) return false;
    size_t free = 0;  // where a search ends
    bool known = true;
    for (const Slot& s : slots_) {
      free += s.merge.rank == Merge::kNone ? 1 : 0;
      known &= s.left < limit && s.right < limit && s.merge.id < limit &&
               (s.merge.rank == Merge::kNone || (s.left >= 0 && s.right >= 0 && s.merge.id >= 0));
    }
    mask_ = slots_.size() - 1;
    return known && (free > 0 || slots_.empty());
  }

  // Of one pair twice, the later wins.
  void Add(TokenId left, TokenId right, Merge merge) {
    slots_.Edit(Find(left, right)) = {left, right, merge};
  }

  // Asks for the memory that the pair needs.
  void Prefetch(TokenId left, TokenId right) const {
    __builtin_prefetch(&slots_[FirstSlot(left, right)]);
  }

  Merge Get(TokenId left, TokenId right) const {
    const Slot& slot = slots_[Find(left, right)];
    return slot.merge;
  }

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Slot& s : slots_) {
      if (s.merge.rank != Merge::kNone) visit(s.left, s.right, s.merge);
    }
  }

  bool empty() const { return slots_.empty(); }

 private:
  struct Slot {
    TokenId left = -1;
    TokenId right = -1;
    Merge merge;
  };

  size_t FirstSlot(TokenId left, TokenId right) const {
    uint64_t key = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
    return MixHash(key, 0x9E3779B97F4A7C15u) & mask_;
  }

  // The pair's slot, or the free one where it belongs.
  size_t Find(TokenId left, TokenId right) const {
    size_t at = FirstSlot(left, right);
    while (slots_[at].merge.rank != Merge::kNone &&
           (slots_[at].left != left || slots_[at].right != right)) {
      at = (at + 1) & mask_;
    }
    return at;
  }

  StoredRows<Slot> slots_;
  size_t mask_ = 0;
};

}  // namespace portico::tokenizer
