#include "tokenizer/pair_merges.h"

#include <algorithm>
#include <utility>

namespace portico::tokenizer {

std::unique_ptr<const PairMerges> PairMerges::Make(const MergeTable& merges,
                                                   const TokenId* byte_ids) {
  constexpr TokenId kIds = TokenId{1} << kIdBits;
  constexpr uint32_t kRanks = (uint32_t{1} << kRankBits) - 1;
  size_t count = 0;
  uint32_t last_rank = 0;
  TokenId last_id = *std::max_element(byte_ids, byte_ids + 256);
  merges.ForEach([&](TokenId left, TokenId right, Merge merge) {
    ++count;
    last_rank = std::max(last_rank, merge.rank);
    last_id = std::max({last_id, left, right, merge.id});
  });
  if (last_id >= kIds || last_rank >= kRanks) return nullptr;
  // The rest of the hash must fit, which makes small tables larger than they need to be.
  int bits = kHashBits - kRestBits;
  while (size_t{1} << bits < count + count / 2) ++bits;
  std::unique_ptr<PairMerges> out(new PairMerges(bits));
  bool fits = true;
  merges.ForEach([&](TokenId left, TokenId right, Merge merge) {
    fits = fits && out->Add(left, right, merge);
  });
  if (!fits) return nullptr;
  out->byte_pairs_.reserve(size_t{256} * 256);
  for (size_t i = 0; i < size_t{256} * 256; ++i) {
    out->byte_pairs_.push_back(out->Get(byte_ids[i >> 8], byte_ids[i & 255]));
  }
  return out;
}

PairMerges::PairMerges(int bits)
    : rest_bits_(kHashBits - bits),
      rest_mask_((uint64_t{1} << (kHashBits - bits)) - 1),
      filter_((size_t{1} << kFilterBits) / 64),
      slots_((size_t{1} << bits) + kDistances) {}

void PairMerges::Save(CompiledWriter* out) const {
  out->Number<int32_t>(kHashBits - rest_bits_);
  out->Rows(filter_);
  out->Rows(slots_.data(), SlotCount());
  out->Rows(byte_pairs_);
}

std::unique_ptr<const PairMerges> PairMerges::Restore(CompiledReader* in, TokenId limit) {
  int32_t bits = 0;
  std::vector<uint64_t> filter;
  if (!in->Number(&bits) || bits < kHashBits - kRestBits || bits > kIdBits + kRankBits ||
      !in->Rows(&filter) || in->NextCount() != (uint64_t{1} << bits) + kDistances) {
    return nullptr;
  }
  std::unique_ptr<PairMerges> out(new PairMerges(bits));
  if (filter.size() != out->filter_.size() || !in->Rows(out->slots_.data(), out->SlotCount()) ||
      !in->Rows(&out->byte_pairs_) || out->byte_pairs_.size() != size_t{256} * 256) {
    return nullptr;
  }
  out->filter_ = std::move(filter);
  bool known = true;
  for (size_t i = 0; i < out->SlotCount(); ++i) {
    Pair pair = Unpack(out->slots_[i]);
    known &= pair.merged < limit && (pair.rank < kNone || out->slots_[i] == 0);
  }
  for (const Pair& pair : out->byte_pairs_) {
    known &= pair.rank == kNone || (pair.rank < kNone && pair.merged >= 0 && pair.merged < limit);
  }
  return known ? std::move(out) : nullptr;
}

// False where the slots near its place are taken.
bool PairMerges::Add(TokenId left, TokenId right, Merge merge) {
  uint64_t hash = HashOf(left, right);
  uint64_t bit = hash >> filter_shift_;
  filter_[bit / 64] |= uint64_t{1} << bit % 64;
  size_t at = hash >> rest_bits_;
  for (uint64_t distance = 0; distance < kDistances; ++distance, ++at) {
    if (slots_[at] != 0) continue;
    slots_[at] = ((hash & rest_mask_) << kDistanceBits | distance) << kRestShift |
                 uint64_t{merge.rank + 1} << kIdBits | static_cast<uint32_t>(merge.id);
    return true;
  }
  return false;
}

}  // namespace portico::tokenizer
