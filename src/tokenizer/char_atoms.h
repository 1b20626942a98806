// Characters that byte-level BPE always makes whole before anything else happens to them.
//
// A run of Chinese is three bytes a character, and most of the work of merging it is to put each character together
// again. Where a character's own merges all come before any merge across its borders that takes only a part of it,
// the result is the same if the merging starts from the whole characters. Let R(c) be the latest rank among the
// merges that make c from its bytes, and T(a, b) the earliest rank of a merge, across a border between a character
// that ends in byte a and one that begins with byte b, of which one side has only a part of its outer character. If
// T > R(c) and T > R(d) on the border of c and d, both are whole before that border is crossed. Where it does not
// hold, the two characters are left as bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.h"

namespace portico::tokenizer {

// Immutable once made.
class CharAtoms {
 public:
  // `byte_ids` are the tokens of the 256 bytes.
  CharAtoms(const Bpe& model, const TokenId* byte_ids);

  // Appends the symbols that the merging of `piece`, valid UTF-8, may start from.
  void AppendSymbols(std::string_view piece, std::vector<Token>* symbols) const;

 private:
  struct Atom {
    uint32_t code_point = UINT32_MAX;
    TokenId id = -1;
    uint32_t last_rank = 0;  // R
  };

  const Atom* Find(uint32_t code_point) const;
  void Add(Atom atom);
  void NoteBorders(const Bpe& model);

  const TokenId* byte_ids_;
  std::vector<Atom> atoms_;  // open addressing, a power of two
  size_t count_ = 0;
  std::vector<uint32_t> border_;  // T of (last byte, first byte)
};

}  // namespace portico::tokenizer
