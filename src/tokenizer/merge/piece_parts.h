// Where a piece may be cut before it is merged.
//
// A run of Chinese or Japanese is one piece, seldom the same twice; but the words in it come again and again. A merge
// of L and R reaches across the border of the characters a and b where L ends in a or a part of it, and R begins
// with b or a part of it. If the model has no such merge, nothing ever crosses that border, and what happens on one
// side does not depend on the other: the ids of the piece are those of its parts. Of Chinese text half (deepseek-v3)
// to nearly all borders (gpt2) are of this kind, and a part is one to two characters, which the piece cache knows.
//
// Where a piece that is a token is that token whatever the merges say (ignore_merges), tokens that merging does not make
// must stay whole, and a part that spells one would be taken for it. So nothing is cut inside of such tokens, nor behind
// their last characters or in front of their first ones: who spells one is then always the whole piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/merge/char_pairs.h"
#include "tokenizer/merge/token_edges.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/byte_tokens.h"

namespace portico::tokenizer {

// Immutable once made.
class PieceParts {
 public:
  // `edges` are the tokens'. `whole`, by id, says of each token whether merging its bytes makes it; it is asked only if the model ignores merges.
  PieceParts(const Bpe& model, const ByteTokens& tokens, std::span<const TokenEdges> edges,
             const std::vector<bool>& whole);

  // The tables as bytes, and back; null where these are not such bytes. Any such tables are safe.
  void Save(CompiledWriter* out) const;
  static std::unique_ptr<const PieceParts> Restore(CompiledReader* in);

  // The end of the first part of [begin, end), which is valid UTF-8 and not empty.
  const char* NextEnd(const char* begin, const char* end) const;

 private:
  static constexpr uint32_t kAscii = 128;
  static constexpr uint32_t kCodePoints = 0x20000;  // those behind share the last one's bits
  static constexpr size_t kSideBytes = 64;          // the values of a tail byte, and of a lead byte
  // Of a character: nothing is cut on that side of it.
  static constexpr uint64_t kHoldsBehind = 1;
  static constexpr uint64_t kHoldsBefore = 2;
  static constexpr uint32_t kPerWord = 32;

  PieceParts() = default;
  // These append to `pairs`.
  void NoteMerges(const Bpe& model, const ByteTokens& tokens, std::span<const TokenEdges> edges,
                  std::vector<uint64_t>* pairs);
  void NoteUnmade(std::string_view token, std::vector<uint64_t>* pairs);
  void Hold(uint32_t code_point, uint64_t side);
  uint64_t HoldsOf(uint32_t code_point) const {
    code_point = std::min(code_point, kCodePoints - 1);
    return holds_[code_point / kPerWord] >> 2 * (code_point % kPerWord);
  }
  static size_t PartsAt(char tail, char lead) {
    return static_cast<unsigned char>(tail) % kSideBytes * kSideBytes +
           static_cast<unsigned char>(lead) % kSideBytes;
  }

  CharPairs pairs_;             // of two whole characters, not both ASCII
  StoredRows<uint64_t> holds_;  // two bits a code point
  StoredRows<uint64_t> parts_;  // of a part and a part: a bit for the bytes at the border
};

}  // namespace portico::tokenizer
