// For every id the bytes that it stands for in a decode; under kTokenwise, those where it is not the first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/decode/decoder.h"
#include "tokenizer/model/vocabulary.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// Filled once, then read by any thread.
class DecodeTable {
 public:
  struct Entry {
    uint32_t offset = 0;
    uint32_t length : 24 = 0;
    uint32_t has : 1 = 0;      // there is such a token
    uint32_t special : 1 = 0;  // left out with skip_special_tokens
    uint32_t is_byte : 1 = 0;  // a <0x..> token of the kFallback plan
    uint32_t apart : 1 = 0;    // its bytes are not in the block
    uint32_t zero : 4 = 0;
  };

  DecodeTable() = default;
  // The tokens of `vocabulary`, none of them special.
  DecodeTable(const DecodePlan& plan, const Vocabulary& vocabulary);
  // Makes room for ids below `size`.
  void Resize(TokenId size) { entries_.resize(static_cast<size_t>(size)); }
  void MarkSpecial(TokenId id) { entries_.Edit(static_cast<size_t>(id)).special = 1; }

  // A table that was made of a vocabulary as bytes, and back; nothing where these are not such bytes, of `size`
  // ids. They are used where they lie, so they must outlive it.
  void Save(CompiledWriter* out) const;
  static std::optional<DecodeTable> Restore(std::string_view bytes, TokenId size);

  // One more, or another spelling of one that is there; id < size().
  void Add(const DecodePlan& plan, TokenId id, std::string_view text, bool special);

  TokenId size() const { return static_cast<TokenId>(entries_.size()); }
  bool Has(TokenId id) const { return Inside(id) && At(id).has; }
  bool IsSpecial(TokenId id) const { return Inside(id) && At(id).special; }
  // Whether a decode has it: a token that is there, and is not left out.
  bool Shows(TokenId id, bool skip_special_tokens) const {
    return Has(id) && !(skip_special_tokens && At(id).special);
  }
  bool Inside(TokenId id) const { return id >= 0 && id < size(); }
  const Entry& At(TokenId id) const { return entries_[static_cast<size_t>(id)]; }
  std::string_view Bytes(const Entry& e) const {
    return {(e.apart ? more_.data() : bytes_.data()) + e.offset, e.length};
  }

 private:
  static Entry Decoded(const DecodePlan& plan, std::string_view text, StoredRows<char>* bytes);

  StoredRows<Entry> entries_;
  StoredRows<char> bytes_;
  StoredRows<char> more_;  // of the tokens that were added
};

// The text of `ids` under kByteLevel or kFallback: the whole decode in one pass.
std::string DecodePlanned(const DecodePlan& plan, const DecodeTable& table,
                          std::span<const TokenId> ids, bool skip_special_tokens);

}  // namespace portico::tokenizer
