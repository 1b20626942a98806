// Text to ids for the byte-level BPE families, without spelling bytes as characters, and where the ids
// lie in the text.
//
// A text goes by in stretches of a hundred bytes and more. A stretch that this thread has encoded before is copied
// (text_cache.h). Of another, the scanner cuts the pieces first, while the lines of the piece cache that they need are
// on their way; then each piece is looked up among the words that are one token (word_table.h) and those that this thread
// has merged before, whichever is likelier first, and merged if it is new (piece_merger.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/encoding.h"
#include "tokenizer/piece_merger.h"
#include "tokenizer/pre_tokenizer.h"

namespace portico::tokenizer {

// Immutable, safe to use from many threads.
class ByteLevelEncoder {
 public:
  // Null where the model is not one that this equals: every byte must be a token, and the model plain BPE.
  // `merger`, if there is one already, must be the model's.
  static std::unique_ptr<const ByteLevelEncoder> Make(
      const Bpe& model, ByteLevelPlan plan, std::unique_ptr<const PieceMerger> merger = nullptr);

  // Appends the ids of normalized, valid UTF-8 without added tokens; to `piece_ends`, where not null, where the pieces
  // end for NumberWords().
  void Encode(std::string_view text, std::vector<TokenId>* ids,
              std::vector<uint32_t>* piece_ends = nullptr) const;

  // Of `ids` as Encode() made them of `text`: what each stands for, in bytes from `base` on. A token of a part of a
  // character stands for all of it. `spans` has room for one an id.
  void Place(std::string_view text, std::span<const TokenId> ids, uint32_t base, Span* spans) const;
  // The number of the piece that each lies in, counted from `word` on; returns the next piece's.
  int32_t NumberWords(std::span<const TokenId> ids, std::span<const uint32_t> piece_ends,
                      int32_t word, int32_t* words) const;
  // Appends their spellings in the vocabulary.
  void SpellTokens(std::string_view text, std::span<const TokenId> ids, TokenTexts* out) const;

 private:
  ByteLevelEncoder(std::unique_ptr<const PieceMerger> merger, ByteLevelPlan plan);

  // Whether a space is put in front of `text`.
  bool TakesPrefix(std::string_view text) const {
    return plan_.add_prefix_space && !text.empty() && !text.starts_with(' ');
  }
  // The text with that space, in `*copy` if need be.
  std::string_view Prefixed(std::string_view text, std::string* copy) const;

  template <typename Scanner, typename Cut>
  void EncodeWith(Scanner scanner, std::string_view text, std::vector<TokenId>* ids, Cut cut) const;

  ByteLevelPlan plan_;
  uint64_t number_;  // of this encoder in the process
  std::unique_ptr<const PieceMerger> merger_;
};

}  // namespace portico::tokenizer
