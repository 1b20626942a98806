// Text to ids for the byte-level BPE families, without spelling bytes as characters and without offsets.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.h"
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
  ByteLevelEncoder(const Bpe& model, ByteLevelPlan plan) : model_(model), plan_(plan) {}
  void EncodePiece(std::string_view piece, std::vector<TokenId>* ids) const;

  const Bpe& model_;
  ByteLevelPlan plan_;
  TokenId byte_ids_[256];
};

}  // namespace portico::tokenizer
