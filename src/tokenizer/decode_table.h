// For every id the bytes that it stands for in a decode, in one block.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/decoder.h"
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
  };

  // `spelling(id)` gives whether there is such a token, and its spelling; `special(text)` tells which are left out.
  template <typename Spelling, typename Special>
  void Fill(const DecodePlan& plan, TokenId size, Spelling spelling, Special special) {
    entries_.resize(static_cast<size_t>(size));
    for (TokenId id = 0; id < size; ++id) {
      auto [known, text] = spelling(id);
      if (known) Set(plan, id, text, special(text));
    }
  }
  // One more, or another spelling of one that is there; id < size().
  void Set(const DecodePlan& plan, TokenId id, std::string_view text, bool special);
  void Seal() { bytes_.shrink_to_fit(); }

  TokenId size() const { return static_cast<TokenId>(entries_.size()); }
  bool Has(TokenId id) const { return Inside(id) && At(id).has; }
  bool IsSpecial(TokenId id) const { return Inside(id) && At(id).special; }
  bool Inside(TokenId id) const { return id >= 0 && id < size(); }
  const Entry& At(TokenId id) const { return entries_[static_cast<size_t>(id)]; }
  std::string_view Bytes(const Entry& e) const {
    return std::string_view(bytes_).substr(e.offset, e.length);
  }

 private:
  std::vector<Entry> entries_;
  std::string bytes_;
};

// The text of `ids` under a plan that is not kGeneral: the whole decode in one pass.
std::string DecodePlanned(const DecodePlan& plan, const DecodeTable& table,
                          std::span<const TokenId> ids, bool skip_special_tokens);

}  // namespace portico::tokenizer
