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

#include "tokenizer/cache/piece_cache.h"
#include "tokenizer/merge/piece_merger.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/token_texts.h"
#include "tokenizer/split/pre_tokenizer.h"

namespace portico::tokenizer {

class PlaceSink;

// Immutable, safe to use from many threads.
class ByteLevelEncoder {
 public:
  // Null where the model is not one that this equals: every byte must be a token, and the model plain BPE.
  // `merger`, if there is one already, must be the model's.
  static std::unique_ptr<const ByteLevelEncoder> Make(
      const Bpe& model, ByteLevelPlan plan, std::unique_ptr<const PieceMerger> merger = nullptr);

  // Appends the ids of normalized, valid UTF-8 without added tokens; where `places` is not null, `text` is a part of the
  // sink's, and every piece a word. A token of a part of a character stands for all of it.
  void Encode(std::string_view text, std::vector<TokenId>* ids, PlaceSink* places = nullptr) const;
  // Appends the spellings in the vocabulary of `ids` as Encode() made them of `text`.
  void SpellTokens(std::string_view text, std::span<const TokenId> ids, TokenTexts* out) const;

 private:
  ByteLevelEncoder(std::unique_ptr<const PieceMerger> merger, ByteLevelPlan plan);

  // Whether a space is put in front of `text`.
  bool TakesPrefix(std::string_view text) const {
    return plan_.add_prefix_space && !text.empty() && !text.starts_with(' ');
  }
  // The text with that space, in `*copy` if need be.
  std::string_view Prefixed(std::string_view text, std::string* copy) const;

  template <typename Scanner, typename Places>
  void EncodeWith(Scanner scanner, std::string_view text, std::vector<TokenId>* ids,
                  Places* places) const;
  // Tells `places` of the ids of the stretch [begin, end), and of their words if these matter.
  void Place(const char* begin, const char* end, std::span<const TokenId> ids,
             std::span<const char* const> piece_ends, bool with_words, PlaceSink* places) const;

  ByteLevelPlan plan_;
  PieceCaches caches_;
  std::unique_ptr<const PieceMerger> merger_;
};

}  // namespace portico::tokenizer
