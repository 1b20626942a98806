#include "tokenizer/word_table.h"

#include <algorithm>

namespace portico::tokenizer {

WordTable::Lines WordTable::LinesFor(const ByteTokens& tokens) {
  size_t count = 0;
  for (TokenId id = 0; id < tokens.limit(); ++id) count += tokens.LengthOf(id) - 1 < kMostBytes;
  return {count / 3 + 1};
}

std::unique_ptr<const WordTable> WordTable::Restore(CompiledReader* in, TokenId limit) {
  uint64_t slots = in->NextCount();
  if (slots == 0 || slots % kSlots != 0 || slots > in->size() / sizeof(PieceKey)) return nullptr;
  std::unique_ptr<WordTable> out(new WordTable(Lines{slots / kSlots}));
  if (!in->Rows(&out->lines_[0].slots[0], slots)) return nullptr;
  uint64_t most = 0;
  for (size_t i = 0; i < out->line_count_; ++i) {
    for (const PieceKey& slot : out->lines_[i].slots) most = std::max(most, slot.high & kIdMask);
  }
  return static_cast<TokenId>(most >> kIdShift) < limit ? std::move(out) : nullptr;
}

void WordTable::Add(std::string_view piece, TokenId id) {
  PieceKey key = PieceKey::Of(piece);
  Line& line = lines_[LineOf(key.Hash())];
  for (PieceKey& slot : line.slots) {
    if (slot.high != 0) continue;
    slot = {key.low, key.high | static_cast<uint64_t>(id) << kIdShift};
    return;
  }
}

}  // namespace portico::tokenizer
