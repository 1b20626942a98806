// The tokens of a model: spelling to id and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
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

  std::optional<TokenId> Find(std::string_view token) const;
  // "" for an id without a token; Has() tells that from an empty token.
  std::string_view Spelling(TokenId id) const;
  bool Has(TokenId id) const { return EntryOf(id) != nullptr; }

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
  std::string_view Text(const Entry& e) const {
    return std::string_view(text_).substr(e.offset, e.length);
  }
  // The slot of `token`, or the free one where it belongs.
  size_t Slot(std::string_view token) const;
  void Grow(size_t slots);

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // entry + 1, or 0; a power of two
  // By id: entry + 1, or 0. Where ids are too sparse for that, empty, and by_id_ is sorted by id.
  std::vector<uint32_t> dense_;
  std::vector<uint32_t> by_id_;
  TokenId max_id_ = -1;
};

}  // namespace portico::tokenizer
