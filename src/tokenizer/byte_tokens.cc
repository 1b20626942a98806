#include "tokenizer/byte_tokens.h"

#include "tokenizer/byte_level.h"

namespace portico::tokenizer {

ByteTokens::ByteTokens(const Vocabulary& vocabulary) {
  auto limit = static_cast<size_t>(vocabulary.max_id() + 1);
  size_t slots = 64;
  while (slots < limit + limit / 2) slots *= 2;
  slots_.resize(slots);
  mask_ = slots - 1;
  offsets_.reserve(limit + 1);
  offsets_.push_back(0);
  bytes_.reserve(limit * 8);
  for (TokenId id = 0; id < static_cast<TokenId>(limit); ++id) {
    AppendByteLevelBytes(vocabulary.Spelling(id), &bytes_);
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    if (LengthOf(id) > 0) Insert(vocabulary, id);
  }
}

void ByteTokens::Insert(const Vocabulary& vocabulary, TokenId id) {
  std::string_view bytes = Of(id);
  uint64_t hash = HashBytes(bytes);
  uint64_t bit = hash >> (64 - kFilterBits);
  filter_[bit / 64] |= uint64_t{1} << bit % 64;
  Slot& slot = slots_[SlotOf(bytes, hash)];
  // A spelling that has two ids is found under the one that the vocabulary finds.
  if (slot.id >= 0) id = vocabulary.Find(vocabulary.Spelling(id)).value_or(id);
  slot = {static_cast<uint32_t>(hash >> 16), id};
}

}  // namespace portico::tokenizer
