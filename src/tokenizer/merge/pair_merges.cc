#include "tokenizer/merge/pair_merges.h"

#include <algorithm>
#include <utility>

namespace portico::tokenizer {

std::unique_ptr<const PairMerges> PairMerges::Make(const MergeTable& merges) {
  constexpr uint32_t kRanks = (uint32_t{1} << kRankBits) - 1;
  size_t count = 0;
  uint32_t last_rank = 0;
  TokenId last_id = 0;
  merges.ForEach([&](TokenId left, TokenId right, Merge merge) {
    ++count;
    last_rank = std::max(last_rank, merge.rank);
    last_id = std::max({last_id, left, right, merge.id});
  });
  if (last_id >= kIdLimit || last_rank >= kRanks) return nullptr;
  // The rest of the hash must fit, which makes small tables larger than they need to be.
  int bits = kHashBits - kRestBits;
  while (size_t{1} << bits < count + count / 2) ++bits;
  std::unique_ptr<PairMerges> out(new PairMerges(bits));
  out->filter_.assign((size_t{1} << kFilterBits) / 64, 0);
  out->slots_.assign(out->SlotCount(), 0);
  bool fits = true;
  merges.ForEach([&](TokenId left, TokenId right, Merge merge) {
    fits = fits && out->Add(left, right, merge);
  });
  return fits ? std::move(out) : nullptr;
}

void PairMerges::Save(CompiledWriter* out) const {
  out->Number<int32_t>(kHashBits - rest_bits_);
  out->Rows(filter_);
  out->Rows(slots_);
}

std::unique_ptr<const PairMerges> PairMerges::Restore(CompiledReader* in, TokenId limit) {
  int32_t bits = 0;
  if (!in->Number(&bits) || bits < kHashBits - kRestBits || bits > kHashBits - 1) return nullptr;
  std::unique_ptr<PairMerges> out(new PairMerges(bits));
  out->limit_ = std::min(limit, kIdLimit);
  if (!in->Rows(&out->filter_) || out->filter_.size() != (size_t{1} << kFilterBits) / 64 ||
      !in->Rows(&out->slots_) || out->slots_.size() != out->SlotCount()) {
    return nullptr;
  }
  // Any rank is safe.
  uint32_t most = 0;
  for (uint64_t slot : out->slots_) {
    most = std::max(most, static_cast<uint32_t>(slot) & static_cast<uint32_t>(kIdLimit - 1));
  }
  // Free slots say 0, also where there are no ids.
  return static_cast<TokenId>(most) < std::max(limit, 1) ? std::move(out) : nullptr;
}

// False where the slots near its place are taken.
bool PairMerges::Add(TokenId left, TokenId right, Merge merge) {
  uint64_t hash = HashOf(left, right);
  uint64_t bit = hash >> filter_shift_;
  filter_.Edit(bit / 64) |= uint64_t{1} << bit % 64;
  size_t at = hash >> rest_bits_;
  for (uint64_t distance = 0; distance < kDistances; ++distance, ++at) {
    if (slots_[at] != 0) continue;
    slots_.Edit(at) = ((hash & rest_mask_) << kDistanceBits | distance) << kRestShift |
                      uint64_t{merge.rank + 1} << kIdBits | static_cast<uint32_t>(merge.id);
    return true;
  }
  return false;
}

}  // namespace portico::tokenizer
