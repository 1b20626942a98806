// Characters that byte-level BPE always makes whole before anything else happens to them.
//
// A run of Chinese is three bytes a character, and most of the work of merging it is to put each character together
// again. Let R(c) be the latest rank among the merges that make c from its bytes. Until a merge crosses one of its
// borders, a character's bytes merge as they would alone; and as long as every merge that crosses a border and takes
// only a part of the character has a rank above R(c), none of them happens before c is whole. Merging may then start
// with c as one symbol, provided that nothing which merges c as a whole has a rank below R(c) either: it would come too
// early. On the border of c and d, what such a merge joins is
//   - something that ends in all of c, and a part of d: the earliest rank is kept for (c, first byte of d);
//   - a part of c, and something that begins with all of d: for (last byte of c, d);
//   - a part of c and a part of d: for (last byte of c, first byte of d).
// Where c is not ASCII the first is kept for c alone, and the second likewise for d alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/merge/token_edges.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/byte_tokens.h"

namespace portico::tokenizer {

// Immutable once made.
class CharAtoms {
 public:
  // `edges` are the tokens', `byte_ids` the tokens of the 256 bytes.
  CharAtoms(const Bpe& model, const ByteTokens& tokens, std::span<const TokenEdges> edges,
            const TokenId* byte_ids);

  // The tables as bytes, and back for ids below `limit`; null where these are not such bytes.
  void Save(CompiledWriter* out) const;
  static std::unique_ptr<const CharAtoms> Restore(CompiledReader* in, TokenId limit,
                                                  const TokenId* byte_ids);

  // Writes the symbols that the merging of `piece`, valid UTF-8, may start from to `out`, which has room for one a
  // byte. Returns their number.
  size_t Symbols(std::string_view piece, TokenId* out) const;

 private:
  struct Atom {
    TokenId id = -1;               // -1: the character does not become one token by itself
    uint32_t rank = Merge::kNone;  // R
    uint32_t with_part_after = Merge::kNone;
    uint32_t with_part_before = Merge::kNone;
  };
  struct Char {
    const Atom* atom;
    uint32_t length;
  };
  static constexpr uint32_t kBlock = 256;  // code points

  explicit CharAtoms(const TokenId* byte_ids) : byte_ids_(byte_ids) {}
  Char CharAt(const char* p) const;
  void Spell(const char* p, uint32_t length, TokenId** to) const;
  Atom* Of(uint32_t code_point);
  void NoteAtoms(const Bpe& model, const ByteTokens& tokens);
  void NoteBorders(const Bpe& model, const ByteTokens& tokens, std::span<const TokenEdges> edges);

  const TokenId* byte_ids_;
  StoredRows<uint16_t> block_of_;  // the first block has no atoms
  StoredRows<Atom> atoms_;
  // The earliest ranks on a border: of an ASCII character with a part behind it, of a part with an ASCII character
  // behind it, of two parts. By the bytes on its two sides; of bytes from 0x80 on, the low bits.
  StoredRows<uint32_t> ascii_part_;
  StoredRows<uint32_t> part_ascii_;
  StoredRows<uint32_t> part_part_;
};

}  // namespace portico::tokenizer
