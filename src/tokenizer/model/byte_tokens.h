// The tokens of a byte-level vocabulary by their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tokenizer/cache/hash.h"
#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/model/vocabulary.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// Immutable once made. Tokens that spell no bytes (with characters beyond GPT-2's 256) are left out.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary);

  // The tables as bytes, and back for a vocabulary of ids below `limit`; nothing where these are not such bytes.
  void Save(CompiledWriter* out) const;
  static std::optional<ByteTokens> Restore(CompiledReader* in, TokenId limit);

  // "" for an id that is none of them.
  std::string_view Of(TokenId id) const {
    auto i = static_cast<size_t>(id);
    return {bytes_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }
  uint32_t LengthOf(TokenId id) const {
    auto i = static_cast<size_t>(id);
    return offsets_[i + 1] - offsets_[i];
  }
  // Ids are below it.
  TokenId limit() const { return static_cast<TokenId>(offsets_.size()) - 1; }

  // The token that is exactly `bytes`, or -1. Of other bytes a bit tells nearly always that they are none.
  TokenId Find(std::string_view bytes) const {
    uint64_t hash = HashBytes(bytes);
    uint64_t bit = hash >> (64 - kFilterBits);
    if ((filter_[bit / 64] >> bit % 64 & 1) == 0) return -1;
    const Slot& slot = slots_[SlotOf(bytes, hash)];
    return slot.id;
  }

 private:
  static constexpr int kFilterBits = 20;

  ByteTokens() = default;

  struct Slot {
    uint32_t tag = 0;
    TokenId id = -1;
  };

  // The slot of `bytes`, or the free one where they belong.
  size_t SlotOf(std::string_view bytes, uint64_t hash) const {
    auto tag = static_cast<uint32_t>(hash >> 16);
    size_t at = hash & mask_;
    while (slots_[at].id >= 0 && (slots_[at].tag != tag || Of(slots_[at].id) != bytes)) {
      at = (at + 1) & mask_;
    }
    return at;
  }
  void Insert(const Vocabulary& vocabulary, TokenId id);

  static constexpr size_t kFilterWords = (size_t{1} << kFilterBits) / 64;

  StoredRows<char> bytes_;
  StoredRows<uint32_t> offsets_;  // one more than there are ids
  StoredRows<uint64_t> filter_;
  StoredRows<Slot> slots_;  // open addressing, a power of two
  size_t mask_ = 0;
};

}  // namespace portico::tokenizer
