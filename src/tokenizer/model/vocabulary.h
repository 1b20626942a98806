// The tokens of a model: spelling to id and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// Filled by Add(), then sealed; read from any number of threads after that. Spellings lie in one block.
class Vocabulary {
 public:
  void Reserve(size_t tokens, size_t bytes);
  // A spelling that is there already gets the new id, and its old id is without a token; with `keep_old_id` only
  // the way from the spelling changes.
  void Add(std::string_view token, TokenId id, bool keep_old_id = false);
  // Builds the way back. Memory stays within a small multiple of the tokens, however large the ids are.
  void Seal();

  // The sealed tables as bytes, and back; nothing where these are not such bytes. Of any bytes, the result is safe to
  // use, and its memory a small multiple of theirs. They are used where they lie, so they must outlive it.
  void Save(CompiledWriter* out) const;
  static std::optional<Vocabulary> Restore(CompiledReader* in);

  std::optional<TokenId> Find(std::string_view token) const;
  // Of each of many, kNoToken where there is none: memory is asked for many of them before it is needed.
  void FindAll(std::span<const std::string_view> tokens, std::span<TokenId> ids) const;
  // "" for an id without a token; Has() tells that from an empty token.
  std::string_view Spelling(TokenId id) const;
  bool Has(TokenId id) const { return EntryOf(id) != nullptr; }

  // Every spelling with its id, in the order in which they were added.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& e : entries_) visit(Text(e), e.id);
  }

  // Calls `visit(id)` for each id of a spelling, old ones that were kept too.
  template <typename Visit>
  void ForEachIdOf(std::string_view token, Visit visit) const {
    if (spellings_ < entries_.size()) {
      for (const Entry& e : entries_) {
        if (Text(e) == token) visit(e.id);
      }
    } else if (std::optional<TokenId> id = Find(token)) {
      visit(*id);
    }
  }

  // Distinct spellings, and old ids that were kept.
  size_t size() const { return entries_.size(); }
  // The largest id, or -1.
  TokenId max_id() const { return max_id_; }

 private:
  struct Entry {
    uint32_t offset;
    uint32_t length;
    TokenId id;
  };

  const Entry* EntryOf(TokenId id) const;
  std::string_view Text(const Entry& e) const { return {text_.data() + e.offset, e.length}; }
  // `tag`, a part of the spelling's hash, spares the look at nearly every other spelling.
  struct Slot {
    uint32_t tag = 0;
    uint32_t entry = 0;  // its number + 1, or 0
  };

  // The slot of `token`, or the free one where it belongs.
  size_t SlotOf(std::string_view token, uint64_t hash) const;
  void Grow(size_t slots);

  StoredRows<char> text_;
  StoredRows<Entry> entries_;
  StoredRows<Slot> slots_;  // a power of two
  // By id: entry + 1, or 0. Where ids are too sparse for that, empty, and by_id_ is sorted by id.
  StoredRows<uint32_t> dense_;
  std::vector<uint32_t> by_id_;
  TokenId max_id_ = -1;
  size_t spellings_ = 0;
};

}  // namespace portico::tokenizer
