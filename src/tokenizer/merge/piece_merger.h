// One piece of text to tokens by byte-level BPE: what is left to do for a piece that no cache knows.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/merge/char_atoms.h"
#include "tokenizer/merge/pair_merges.h"
#include "tokenizer/merge/piece_parts.h"
#include "tokenizer/merge/word_table.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/byte_tokens.h"

namespace portico::tokenizer {

// Immutable, safe to use from many threads. The model must outlive it.
class PieceMerger {
 public:
  // Null where the model is not one that this equals: every byte must be a token, and the model plain BPE.
  static std::unique_ptr<const PieceMerger> Make(const Bpe& model);

  // The tables as bytes, and back for the same model; null where these are not such bytes. They are used where they lie,
  // so they must outlive it.
  void Save(CompiledWriter* out) const;
  static std::unique_ptr<const PieceMerger> Restore(const Bpe& model, std::string_view bytes);

  // Writes the ids of `piece`, valid UTF-8 and not empty, to `out`, which has room for one a byte. Returns their
  // number.
  size_t Encode(std::string_view piece, TokenId* out) const;

  const ByteTokens& tokens() const { return tokens_; }
  const WordTable& words() const { return *words_; }
  const PieceParts& parts() const { return *parts_; }

 private:
  PieceMerger(const Bpe& model, ByteTokens tokens) : model_(model), tokens_(std::move(tokens)) {}

  void MakeBytePairs();
  void MakeWords(const std::vector<bool>& whole);
  class Keys;
  size_t MergeFew(TokenId* ids, size_t count, Keys* keys) const;
  size_t MergeMany(TokenId* ids, size_t count) const;

  const Bpe& model_;
  ByteTokens tokens_;
  TokenId byte_ids_[256];
  const PairMerges* pairs_ = nullptr;        // the model's
  StoredRows<PairMerges::Pair> byte_pairs_;  // of two bytes, the first the high one
  std::unique_ptr<const CharAtoms> atoms_;
  std::unique_ptr<const WordTable> words_;
  std::unique_ptr<const PieceParts> parts_;
};

}  // namespace portico::tokenizer
