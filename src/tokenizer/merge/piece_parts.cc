#include "tokenizer/merge/piece_parts.h"

#include <utility>

#include "text/utf8.h"
#include "tokenizer/normalize/char_pages.h"

namespace portico::tokenizer {

PieceParts::PieceParts(const Bpe& model, const ByteTokens& tokens,
                       std::span<const TokenEdges> edges, const std::vector<bool>& whole)
    : holds_(kCodePoints / kPerWord), parts_(kSideBytes * kSideBytes / 64) {
  std::vector<uint64_t> pairs;
  NoteMerges(model, tokens, edges, &pairs);
  if (model.options().ignore_merges) {
    for (TokenId id = 0; id < tokens.limit(); ++id) {
      if (!whole[static_cast<size_t>(id)]) NoteUnmade(tokens.Of(id), &pairs);
    }
  }
  pairs_ = CharPairs(std::move(pairs));
}

void PieceParts::Hold(uint32_t code_point, uint64_t side) {
  code_point = std::min(code_point, kCodePoints - 1);
  holds_.Edit(code_point / kPerWord) |= side << 2 * (code_point % kPerWord);
}

void PieceParts::NoteMerges(const Bpe& model, const ByteTokens& tokens,
                            std::span<const TokenEdges> edges, std::vector<uint64_t>* pairs) {
  model.ForEachMerge([&](TokenId left, TokenId right, Merge) {
    const TokenEdge& a = edges[static_cast<size_t>(left)].right;
    const TokenEdge& b = edges[static_cast<size_t>(right)].left;
    if (a.kind == TokenEdge::kNone || b.kind == TokenEdge::kNone) return;  // not at a border
    bool whole_a = a.kind == TokenEdge::kWhole;
    bool whole_b = b.kind == TokenEdge::kWhole;
    if (whole_a && whole_b) {
      if (a.code_point >= kAscii || b.code_point >= kAscii)
        pairs->push_back(CharPairs::Of(a.code_point, b.code_point));
    } else if (whole_a) {
      Hold(a.code_point, kHoldsBehind);
    } else if (whole_b) {
      Hold(b.code_point, kHoldsBefore);
    } else {
      size_t at = PartsAt(tokens.Of(left).back(), tokens.Of(right).front());
      parts_.Edit(at / 64) |= uint64_t{1} << at % 64;
    }
  });
}

void PieceParts::NoteUnmade(std::string_view token, std::vector<uint64_t>* pairs) {
  if (token.empty() || !IsValidUtf8(token)) return;  // no piece, and no part of one
  const char* p = token.data();
  const char* end = p + token.size();
  DecodedChar a = DecodeChar(p);
  Hold(a.code_point, kHoldsBefore);
  while ((p += a.length) < end) {
    DecodedChar b = DecodeChar(p);
    pairs->push_back(CharPairs::Of(a.code_point, b.code_point));
    a = b;
  }
  Hold(a.code_point, kHoldsBehind);
}

void PieceParts::Save(CompiledWriter* out) const {
  pairs_.Save(out);
  out->Rows(holds_);
  out->Rows(parts_);
}

std::unique_ptr<const PieceParts> PieceParts::Restore(CompiledReader* in) {
  std::unique_ptr<PieceParts> out(new PieceParts());
  if (!out->pairs_.Restore(in) || !in->Rows(&out->holds_) || !in->Rows(&out->parts_) ||
      out->holds_.size() != kCodePoints / kPerWord ||
      out->parts_.size() != kSideBytes * kSideBytes / 64) {
    return nullptr;
  }
  return out;
}

const char* PieceParts::NextEnd(const char* begin, const char* end) const {
  DecodedChar a = DecodeChar(begin);
  const char* p = begin + a.length;
  while (p < end) {
    DecodedChar b = DecodeChar(p);
    bool joined = a.length == 1 && b.length == 1;
    if (!joined) {
      uint64_t held =
          (HoldsOf(a.code_point) & kHoldsBehind) | (HoldsOf(b.code_point) & kHoldsBefore);
      bool both = a.length > 1 && b.length > 1;
      size_t at = PartsAt(p[-1], *p);
      joined = held != 0 || (both && (parts_[at / 64] >> at % 64 & 1) != 0) ||
               pairs_.MayHave(a.code_point, b.code_point);
    }
    if (!joined) return p;
    a = b;
    p += b.length;
  }
  return end;
}

}  // namespace portico::tokenizer
