// Text to ids for the byte-level BPE families, without spelling bytes as characters and without offsets.
//
// A text goes by in stretches of a hundred bytes and more. A stretch that this thread has encoded before is copied
// (text_cache.h). Of another, the scanner cuts the pieces first, while the lines of the piece cache that they need are
// on their way; then each piece is looked up, first among the words that are one token (word_table.h), then among those
// that this thread has merged before, and merged if it is new (piece_merger.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/piece_merger.h"
#include "tokenizer/placed_token.h"
#include "tokenizer/pre_tokenizer.h"

namespace portico::tokenizer {

// Immutable, safe to use from many threads.
class ByteLevelEncoder {
 public:
  // Null where the model is not one that this equals: every byte must be a token, and the model plain BPE.
  // `merger`, if there is one already, must be the model's.
  static std::unique_ptr<const ByteLevelEncoder> Make(
      const Bpe& model, ByteLevelPlan plan, std::unique_ptr<const PieceMerger> merger = nullptr);

  // Appends the ids of normalized, valid UTF-8 without added tokens.
  void Encode(std::string_view text, std::vector<TokenId>* ids) const;
  // The same with their places in `text`, from word 0 on; `*words` is how many there were. False where the encoder puts
  // something in front of the text: places are not known then.
  bool EncodeTokens(std::string_view text, std::vector<PlacedToken>* out, uint32_t* words) const;

 private:
  ByteLevelEncoder(std::unique_ptr<const PieceMerger> merger, ByteLevelPlan plan);

  template <typename Use>
  void WithScanner(Use use) const;
  template <typename Scanner>
  void EncodeTokensWith(Scanner scanner, std::string_view text, std::vector<PlacedToken>* out,
                        uint32_t* words) const;
  template <typename Scanner>
  void EncodeWith(Scanner scanner, std::string_view text, std::vector<TokenId>* ids) const;

  ByteLevelPlan plan_;
  uint64_t number_;  // of this encoder in the process
  std::unique_ptr<const PieceMerger> merger_;
};

}  // namespace portico::tokenizer
