#include "tokenizer/model/byte_tokens.h"

#include <algorithm>
#include <string>

#include "tokenizer/model/byte_level.h"

namespace portico::tokenizer {

ByteTokens::ByteTokens(const Vocabulary& vocabulary) {
  auto limit = static_cast<size_t>(vocabulary.max_id() + 1);
  size_t slots = 64;
  while (slots < limit + limit / 2) slots *= 2;
  slots_.resize(slots);
  mask_ = slots - 1;
  filter_.resize(kFilterWords);
  offsets_.reserve(limit + 1);
  offsets_.push_back(0);
  bytes_.reserve(limit * 8);
  std::string bytes;
  for (TokenId id = 0; id < static_cast<TokenId>(limit); ++id) {
    bytes.clear();
    AppendByteLevelBytes(vocabulary.Spelling(id), &bytes);
    bytes_.append(bytes.data(), bytes.size());
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    if (LengthOf(id) > 0) Insert(vocabulary, id);
  }
}

void ByteTokens::Save(CompiledWriter* out) const {
  out->Rows(bytes_);
  out->Rows(offsets_);
  out->Rows(filter_);
  out->Rows(slots_);
}

std::optional<ByteTokens> ByteTokens::Restore(CompiledReader* in, TokenId limit) {
  ByteTokens out;
  if (!in->Rows(&out.bytes_) || !in->Rows(&out.offsets_) || !in->Rows(&out.filter_) ||
      !in->Rows(&out.slots_) || out.filter_.size() != kFilterWords) {
    return std::nullopt;
  }
  const StoredRows<uint32_t>& offsets = out.offsets_;
  if (offsets.size() != static_cast<size_t>(limit) + 1 || offsets[0] != 0 ||
      offsets.back() != out.bytes_.size()) {
    return std::nullopt;
  }
  // Without a way out of the loops, which makes them several times faster.
  bool known = true;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) known &= offsets[i] <= offsets[i + 1];
  uint32_t free = 0;  // where a search ends
  for (const Slot& slot : out.slots_) {
    known &= slot.id < limit;
    free += slot.id < 0 ? 1 : 0;
  }
  size_t slots = out.slots_.size();
  if (!known || (slots & (slots - 1)) != 0 || free == 0) return std::nullopt;
  out.mask_ = slots - 1;
  return out;
}

void ByteTokens::Insert(const Vocabulary& vocabulary, TokenId id) {
  std::string_view bytes = Of(id);
  uint64_t hash = HashBytes(bytes);
  uint64_t bit = hash >> (64 - kFilterBits);
  filter_.Edit(bit / 64) |= uint64_t{1} << bit % 64;
  Slot& slot = slots_.Edit(SlotOf(bytes, hash));
  // A spelling that has two ids is found under the one that the vocabulary finds.
  if (slot.id >= 0) id = vocabulary.Find(vocabulary.Spelling(id)).value_or(id);
  slot = {static_cast<uint32_t>(hash >> 16), id};
}

}  // namespace portico::tokenizer
