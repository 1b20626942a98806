#include "tokenizer/merge/char_atoms.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/normalize/char_pages.h"

namespace portico::tokenizer {
namespace {

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }

constexpr size_t kTails = 64;  // 0x80 … 0xBF
constexpr size_t kLeads = 64;  // 0xC0 … 0xFF
constexpr size_t kAscii = 128;

size_t AsciiPart(char ascii, char lead) { return Byte(ascii) * kLeads + Byte(lead) % kLeads; }
size_t PartAscii(char tail, char ascii) { return Byte(tail) % kTails * kAscii + Byte(ascii); }
size_t PartPart(char tail, char lead) { return Byte(tail) % kTails * kLeads + Byte(lead) % kLeads; }

// Merges a character's bytes alone; true if they become one token, with the latest rank in `*last_rank`.
bool MergeAlone(const Bpe& model, std::vector<TokenId> ids, TokenId* whole, uint32_t* last_rank) {
  *last_rank = 0;
  while (ids.size() > 1) {
    size_t best = 0;
    Merge least;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      Merge m = model.FindMerge(ids[i], ids[i + 1]);
      if (m.rank < least.rank) {
        least = m;
        best = i;
      }
    }
    if (least.rank == Merge::kNone) return false;
    *last_rank = std::max(*last_rank, least.rank);
    ids[best] = least.id;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  *whole = ids[0];
  return true;
}

}  // namespace

CharAtoms::CharAtoms(const Bpe& model, const ByteTokens& tokens, std::span<const TokenEdges> edges,
                     const TokenId* byte_ids)
    : byte_ids_(byte_ids),
      block_of_(0x110000 / kBlock),
      atoms_(kBlock),
      ascii_part_(kAscii * kLeads, Merge::kNone),
      part_ascii_(kTails * kAscii, Merge::kNone),
      part_part_(kTails * kLeads, Merge::kNone) {
  for (uint32_t c = 0; c < kAscii; ++c) {
    Atom* atom = Of(c);
    atom->id = byte_ids[c];
    atom->rank = 0;
  }
  NoteAtoms(model, tokens);
  NoteBorders(model, tokens, edges);
}

void CharAtoms::Save(CompiledWriter* out) const {
  out->Rows(block_of_);
  out->Rows(atoms_);
  for (const auto* ranks : {&ascii_part_, &part_ascii_, &part_part_}) out->Rows(*ranks);
}

std::unique_ptr<const CharAtoms> CharAtoms::Restore(CompiledReader* in, TokenId limit,
                                                    const TokenId* byte_ids) {
  std::unique_ptr<CharAtoms> out(new CharAtoms(byte_ids));
  if (!in->Rows(&out->block_of_) || !in->Rows(&out->atoms_) || !in->Rows(&out->ascii_part_) ||
      !in->Rows(&out->part_ascii_) || !in->Rows(&out->part_part_) ||
      out->block_of_.size() != 0x110000 / kBlock || out->ascii_part_.size() != kAscii * kLeads ||
      out->part_ascii_.size() != kTails * kAscii || out->part_part_.size() != kTails * kLeads) {
    return nullptr;
  }
  bool known = true;
  for (uint16_t block : out->block_of_) known &= (block + size_t{1}) * kBlock <= out->atoms_.size();
  for (const Atom& atom : out->atoms_) known &= atom.id < limit;
  return known ? std::move(out) : nullptr;
}

CharAtoms::Atom* CharAtoms::Of(uint32_t code_point) {
  uint16_t& block = block_of_.Edit(code_point / kBlock);
  if (block == 0) {
    block = static_cast<uint16_t>(atoms_.size() / kBlock);
    atoms_.resize(atoms_.size() + kBlock);
  }
  return &atoms_.Edit(block * size_t{kBlock} + code_point % kBlock);
}

void CharAtoms::NoteAtoms(const Bpe& model, const ByteTokens& tokens) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < tokens.limit(); ++id) {
    std::string_view bytes = tokens.Of(id);
    if (bytes.size() < 2 || bytes.size() > 4 || Utf8SequenceLength(bytes) != bytes.size()) continue;
    ids.clear();
    for (char c : bytes) ids.push_back(byte_ids_[Byte(c)]);
    TokenId whole = 0;
    uint32_t rank = 0;
    if (!MergeAlone(model, ids, &whole, &rank)) continue;
    Atom* atom = Of(Utf8Decode(bytes, bytes.size()));
    atom->id = whole;
    atom->rank = rank;
  }
}

void CharAtoms::NoteBorders(const Bpe& model, const ByteTokens& tokens,
                            std::span<const TokenEdges> edges) {
  auto note = [](uint32_t* earliest, Merge merge) { *earliest = std::min(*earliest, merge.rank); };
  // Files converted from rank files list merges whose parts become tokens later than the whole does.
  auto check_order = [&](TokenId id, Merge merge) {
    const TokenEdge& e = edges[static_cast<size_t>(id)].left;
    std::string_view bytes = tokens.Of(id);
    if (e.kind != TokenEdge::kWhole || e.code_point < kAscii ||
        CharLengthOf(bytes[0]) != bytes.size()) {
      return;
    }
    if (Atom* atom = Of(e.code_point); merge.rank < atom->rank) atom->id = -1;
  };
  model.ForEachMerge([&](TokenId left, TokenId right, Merge merge) {
    check_order(left, merge);
    check_order(right, merge);
    const TokenEdge& a = edges[static_cast<size_t>(left)].right;
    const TokenEdge& b = edges[static_cast<size_t>(right)].left;
    if (a.kind == TokenEdge::kWhole && b.kind == TokenEdge::kPart) {
      bool ascii = a.code_point < kAscii;
      note(ascii ? &ascii_part_.Edit(AsciiPart(tokens.Of(left).back(), tokens.Of(right).front()))
                 : &Of(a.code_point)->with_part_after,
           merge);
    } else if (a.kind == TokenEdge::kPart && b.kind == TokenEdge::kWhole) {
      bool ascii = b.code_point < kAscii;
      note(ascii ? &part_ascii_.Edit(PartAscii(tokens.Of(left).back(), tokens.Of(right).front()))
                 : &Of(b.code_point)->with_part_before,
           merge);
    } else if (a.kind == TokenEdge::kPart && b.kind == TokenEdge::kPart) {
      note(&part_part_.Edit(PartPart(tokens.Of(left).back(), tokens.Of(right).front())), merge);
    }
  });
}

CharAtoms::Char CharAtoms::CharAt(const char* p) const {
  auto [c, length] = DecodeChar(p);
  return {&atoms_[block_of_[c / kBlock] * size_t{kBlock} + c % kBlock], length};
}

void CharAtoms::Spell(const char* p, uint32_t length, TokenId** to) const {
  for (uint32_t i = 0; i < length; ++i) *(*to)++ = byte_ids_[Byte(p[i])];
}

size_t CharAtoms::Symbols(std::string_view piece, TokenId* out) const {
  const char* p = piece.data();
  const char* end = p + piece.size();
  TokenId* to = out;
  Char c = CharAt(p);
  bool whole = c.atom->id >= 0;  // as far as its left border says
  while (p + c.length < end) {
    const char* border = p + c.length;
    Char d = CharAt(border);
    uint32_t crosses_c = Merge::kNone;  // the earliest rank of a merge that takes a part of c
    uint32_t crosses_d = Merge::kNone;
    if (d.length > 1) {
      crosses_d = c.length == 1 ? ascii_part_[AsciiPart(*p, *border)] : c.atom->with_part_after;
    }
    if (c.length > 1) {
      crosses_c =
          d.length == 1 ? part_ascii_[PartAscii(border[-1], *border)] : d.atom->with_part_before;
      if (d.length > 1) {
        uint32_t parts = part_part_[PartPart(border[-1], *border)];
        crosses_c = std::min(crosses_c, parts);
        crosses_d = std::min(crosses_d, parts);
      }
    }
    if (whole && crosses_c > c.atom->rank) {
      *to++ = c.atom->id;
    } else {
      Spell(p, c.length, &to);
    }
    whole = d.atom->id >= 0 && crosses_d > d.atom->rank;
    p = border;
    c = d;
  }
  if (whole) {
    *to++ = c.atom->id;
  } else {
    Spell(p, c.length, &to);
  }
  return static_cast<size_t>(to - out);
}

}  // namespace portico::tokenizer
