#include "tokenizer/merge/word_table.h"

#include <algorithm>

namespace portico::tokenizer {

size_t WordTable::LinesFor(const ByteTokens& tokens) {
  size_t count = 0;
  for (TokenId id = 0; id < tokens.limit(); ++id) count += MayBeAsked(tokens.Of(id));
  // Two and a half words a line: one in fifteen does not fit, and they are the rarest.
  return std::max<size_t>(kLeastLines, count * 2 / 5);
}

std::unique_ptr<const WordTable> WordTable::Restore(CompiledReader* in, TokenId limit) {
  std::unique_ptr<WordTable> out(new WordTable());
  if (!in->Rows(&out->lines_) || out->lines_.empty()) return nullptr;
  uint64_t most = 0;
  for (const Line& line : out->lines_) {
    for (const PieceKey& slot : line.slots) most = std::max(most, slot.high & kIdMask);
  }
  return static_cast<TokenId>(most >> kIdShift) < limit ? std::move(out) : nullptr;
}

void WordTable::Add(std::string_view piece, TokenId id) {
  PieceKey key = PieceKey::Of(piece);
  Line& line = lines_.Edit(LineOf(key.Hash()));
  for (PieceKey& slot : line.slots) {
    if (slot.high != 0) continue;
    slot = {key.low, key.high | static_cast<uint64_t>(id) << kIdShift};
    return;
  }
}

}  // namespace portico::tokenizer
