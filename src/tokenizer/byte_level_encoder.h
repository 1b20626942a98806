// Text to ids for the byte-level BPE families, without spelling bytes as characters and without offsets.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/char_atoms.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/pre_tokenizer.h"

namespace portico::tokenizer {

// Immutable, safe to use from many threads.
class ByteLevelEncoder {
 public:
  // Null where the model is not one that this equals: every byte must be a token, and the model plain BPE.
  static std::unique_ptr<const ByteLevelEncoder> Make(const Bpe& model, ByteLevelPlan plan);

  // Appends the ids of normalized, valid UTF-8 without added tokens.
  void Encode(std::string_view text, std::vector<TokenId>* ids) const;

 private:
  ByteLevelEncoder(const Bpe& model, ByteLevelPlan plan);
  // The piece at [begin, end) of a text that ends at `text_end`.
  void EncodePiece(const char* begin, const char* end, const char* text_end, PieceCache* cache,
                   std::vector<TokenId>* ids) const;
  void EncodeNewPiece(std::string_view piece, std::vector<TokenId>* ids) const;

  const Bpe& model_;
  ByteLevelPlan plan_;
  uint64_t number_;  // of this encoder in the process
  TokenId byte_ids_[256];
  std::unique_ptr<const CharAtoms> atoms_;
};

}  // namespace portico::tokenizer
