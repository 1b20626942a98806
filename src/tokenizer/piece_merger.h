// One piece of text to tokens by byte-level BPE: what is left to do for a piece that no cache knows.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/bpe.h"
#include "tokenizer/byte_tokens.h"
#include "tokenizer/char_atoms.h"
#include "tokenizer/pair_merges.h"

namespace portico::tokenizer {

// Immutable, safe to use from many threads. The model must outlive it.
class PieceMerger {
 public:
  // Null where the model is not one that this equals: every byte must be a token, and the model plain BPE.
  static std::unique_ptr<const PieceMerger> Make(const Bpe& model);

  // Writes the ids of `piece`, valid UTF-8 and not empty, to `out`, which has room for one a byte. Returns their
  // number.
  size_t Encode(std::string_view piece, TokenId* out) const;

  const ByteTokens& tokens() const { return tokens_; }

 private:
  explicit PieceMerger(const Bpe& model) : model_(model), tokens_(model.vocabulary()) {}

  class Keys;
  size_t MergeFew(TokenId* ids, size_t count, Keys* keys) const;
  size_t MergeMany(TokenId* ids, size_t count) const;

  const Bpe& model_;
  ByteTokens tokens_;
  TokenId byte_ids_[256];
  std::unique_ptr<const PairMerges> pairs_;
  std::unique_ptr<const CharAtoms> atoms_;
};

}  // namespace portico::tokenizer
