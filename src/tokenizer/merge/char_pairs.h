// A set of pairs of characters.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"

namespace portico::tokenizer {

// Of a pair that is not in the set, MayHave() is true once in fifty times: two bits of a word are all it looks at. Immutable
// once made.
class CharPairs {
 public:
  static uint64_t Of(uint32_t a, uint32_t b) { return uint64_t{a} << 21 | b; }

  CharPairs() : CharPairs(std::vector<uint64_t>()) {}
  // `pairs` as Of() makes them; some may be there more than once.
  explicit CharPairs(std::vector<uint64_t> pairs) {
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    int log_words = 6;
    while ((size_t{1} << log_words) < pairs.size() / kPairsPerWord) ++log_words;
    shift_ = 64 - log_words;
    words_.assign(size_t{1} << log_words, 0);
    for (uint64_t pair : pairs) {
      uint64_t hash = HashOf(pair);
      words_.Edit(hash >> shift_) |= BitsOf(hash);
    }
  }

  // The set as bytes, and back; false where these are not such bytes. Any such set is safe.
  void Save(CompiledWriter* out) const { out->Rows(words_); }
  bool Restore(CompiledReader* in) {
    if (!in->Rows(&words_) || words_.size() < 2 || !std::has_single_bit(words_.size()))
      return false;
    shift_ = 64 - std::countr_zero(words_.size());
    return true;
  }

  bool MayHave(uint32_t a, uint32_t b) const {
    uint64_t hash = HashOf(Of(a, b));
    uint64_t bits = BitsOf(hash);
    return (words_[hash >> shift_] & bits) == bits;
  }

 private:
  static constexpr size_t kPairsPerWord = 4;

  static uint64_t HashOf(uint64_t pair) {
    uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
  }
  static uint64_t BitsOf(uint64_t hash) {
    return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63);
  }

  int shift_ = 64;
  StoredRows<uint64_t> words_;  // a power of two
};

}  // namespace portico::tokenizer
