// The pieces that are one token: most words of most texts.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tokenizer/cache/piece_key.h"
#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/model/byte_tokens.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// Pieces of up to twelve bytes that begin with ASCII, four to a line, so that a look-up costs one cache line, found or
// not. Where a line is full, the pieces of the largest ids are left out. Of other scripts few pieces are one token.
// Immutable once made.
class WordTable {
 public:
  static constexpr size_t kMostBytes = 12;

  // `is_whole(id)`: the piece of that token's bytes is that one token.
  template <typename IsWhole>
  WordTable(const ByteTokens& tokens, IsWhole is_whole) : lines_(LinesFor(tokens)) {
    if (tokens.limit() > kIds) return;
    for (TokenId id = 0; id < tokens.limit(); ++id) {
      if (MayBeAsked(tokens.Of(id)) && is_whole(id)) Add(tokens.Of(id), id);
    }
  }

  // The table as bytes, and back for ids below `limit`; null where these are not such bytes.
  void Save(CompiledWriter* out) const { out->Rows(lines_); }
  static std::unique_ptr<const WordTable> Restore(CompiledReader* in, TokenId limit);

  // Whether such a piece may be in the table; `length` are its bytes, of which the first two decide.
  static bool MayHave(const PieceKey& key, size_t length) {
    return length <= kMostBytes && (key.low & 0x8080) == 0;
  }

  // Where to look, to be given to Prefetch() and Find(); `hash` is the key's.
  size_t LineOf(uint64_t hash) const { return (hash >> 32) * lines_.size() >> 32; }
  void Prefetch(size_t line) const { __builtin_prefetch(&lines_[line]); }
  // The token that the piece is, or -1.
  TokenId Find(const PieceKey& key, size_t line) const {
    const Line& at = lines_[line];
    unsigned found = Matching(at, key);
    if (found == 0) return -1;
    return static_cast<TokenId>((at.slots[std::countr_zero(found) / 2].high & kIdMask) >> kIdShift);
  }

 private:
  static constexpr unsigned kSlots = 4;
  static constexpr size_t kLeastLines = 128;
  static constexpr int kIdShift = 32;
  static constexpr TokenId kIds = TokenId{1} << 24;
  static constexpr uint64_t kIdMask = uint64_t{kIds - 1} << kIdShift;

  // A key whose bytes 12 to 14, which are zero, hold the id. A free slot has no length.
  struct alignas(64) Line {
    PieceKey slots[kSlots];
  };

  // Two bits for each slot, the lower one set where it has the key.
  [[gnu::always_inline]] static unsigned Matching(const Line& line, const PieceKey& key) {
#if defined(__AVX2__)
    auto high = static_cast<int64_t>(key.high & ~kIdMask);
    auto low = static_cast<int64_t>(key.low);
    __m256i wanted = _mm256_set_epi64x(high, low, high, low);
    constexpr auto kCompared = static_cast<int64_t>(~kIdMask);
    const __m256i compared = _mm256_set_epi64x(kCompared, -1, kCompared, -1);
    const auto* slots = reinterpret_cast<const __m256i*>(line.slots);
    auto equal = [&](const __m256i* two) {
      __m256i words =
          _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_load_si256(two), compared), wanted);
      return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(words)));
    };
    unsigned words = equal(slots) | equal(slots + 1) << 4;
    // A slot matches if both of its words do.
    return words & words >> 1 & 0b01010101;
#else
    unsigned found = 0;
    for (unsigned i = 0; i < kSlots; ++i) {
      uint64_t differs =
          (line.slots[i].low ^ key.low) | ((line.slots[i].high ^ key.high) & ~kIdMask);
      found |= static_cast<unsigned>(differs == 0) << 2 * i;
    }
    return found;
#endif
  }

  WordTable() = default;
  // Of a token's bytes.
  static bool MayBeAsked(std::string_view bytes) {
    return bytes.size() - 1 < kMostBytes && MayHave(PieceKey::Of(bytes), bytes.size());
  }
  static size_t LinesFor(const ByteTokens& tokens);
  void Add(std::string_view piece, TokenId id);

  StoredRows<Line> lines_;
};

}  // namespace portico::tokenizer
