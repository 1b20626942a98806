// Text to ids for the byte-level BPE families, without spelling bytes as characters and without offsets.
#pragma once

#include <memory>
#include <span>
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
  // The ids of one piece, valid until the thread's next call of either.
  std::span<const TokenId> EncodeNewPiece(std::string_view piece) const;
  std::span<const TokenId> EncodeLong(std::string_view piece, PieceCache* cache) const;

  const Bpe& model_;
  ByteLevelPlan plan_;
  uint64_t number_;  // of this encoder in the process
  TokenId byte_ids_[256];
  std::unique_ptr<const CharAtoms> atoms_;
};

}  // namespace portico::tokenizer
