// Between which characters a merge can reach across, so that text may be cut everywhere else.
//
// BPE on characters merges pairs of neighbouring tokens, lowest rank first, until none is left. A token's spelling
// is the text it stands for, so a merge of L and R across the border of characters a and b needs an L that ends in a
// and an R that begins with b. If the file has no such merge, nothing ever crosses that border, whatever is around
// it; what happens on one side then never depends on the other, and the order of the merges on each side (rank,
// then place) is the same alone as together. So the tokens of a text are those of its parts, cut at all such
// borders. In llama-2 that leaves 3,279 pairs of characters that hold together, in gemma-3 33,695: words, mostly,
// and in Chinese 1.0 and 1.3 characters a part.
//
// Byte tokens (<0x0A>) do not spell what they stand for; where one takes part in a merge this cannot be used. Where
// none does, text that is encoded in bytes is never crossed at all, and treating it as its characters only cuts less
// often than it could.
#pragma once

#include <cstdint>
#include <optional>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/merge/char_pairs.h"
#include "tokenizer/model/bpe.h"

namespace portico::tokenizer {

// Immutable once made.
class MergeBorders {
 public:
  // `cut_before`: a character that a part always begins with, or 0.
  MergeBorders(const Bpe& model, uint32_t cut_before);

  // The table as bytes, and back; nothing where these are not such bytes. Any such table is safe.
  void Save(CompiledWriter* out) const { pairs_.Save(out); }
  static std::optional<MergeBorders> Restore(CompiledReader* in, uint32_t cut_before);

  // True where a merge may reach from `a` to the `b` behind it; now and then also where none does.
  bool MayCross(uint32_t a, uint32_t b) const { return b != cut_before_ && pairs_.MayHave(a, b); }

 private:
  explicit MergeBorders(uint32_t cut_before) : cut_before_(cut_before) {}

  uint32_t cut_before_;
  CharPairs pairs_;
};

}  // namespace portico::tokenizer
