// Where the tokens of a byte-level encode lie in its text: one behind the other, each as long as its bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "text/utf8.h"
#include "tokenizer/fused/byte_level_encoder.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/model/byte_level.h"

namespace portico::tokenizer {
namespace {

// The spelling of each byte in UTF-8.
struct Spelled {
  char bytes[2];
  uint8_t length;
};
constexpr size_t kVector = 16;
constexpr size_t kSlack = kVector + 2;
constexpr std::array<Spelled, 256> kSpelled = [] {
  std::array<Spelled, 256> out{};
  for (size_t b = 0; b < 256; ++b) {
    uint32_t c = kByteLevelChars[b];
    if (c < 0x80) {
      out[b] = {{static_cast<char>(c), 0}, 1};
    } else {
      out[b] = {{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))}, 2};
    }
  }
  return out;
}();

// Writes the spelling of a token of `length` bytes at `p` to `out`, which has room for kSlack bytes more than it takes,
// and returns its end. `readable` bytes may be read.
char* Spell(const char* p, size_t length, size_t readable, char* out) {
#if defined(__SSE2__)
  // A word, as nearly all are: printable ASCII, with a space before it or none.
  if (length - 1 < kVector && readable > kVector) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    __m128i plain = _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(0x20)),
                                  _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x7F)));
    size_t space = *p == ' ' ? 1 : 0;
    auto found = static_cast<uint32_t>(_mm_movemask_epi8(plain)) | static_cast<uint32_t>(space);
    uint32_t wanted = (uint32_t{1} << length) - 1;
    if ((found & wanted) == wanted) {
      std::memcpy(out, kSpelled[' '].bytes, 2);
      std::memcpy(out + 2 * space, p + space, kVector);
      return out + length + space;
    }
  }
#else
  static_cast<void>(readable);
#endif
  for (size_t i = 0; i < length; ++i) {
    const Spelled& s = kSpelled[static_cast<unsigned char>(p[i])];
    std::memcpy(out, s.bytes, sizeof s.bytes);
    out += s.length;
  }
  return out;
}

}  // namespace

void ByteLevelEncoder::Place(const char* begin, const char* end, std::span<const TokenId> ids,
                             std::span<const char* const> piece_ends, bool with_words,
                             PlaceSink* places) const {
  const ByteTokens& tokens = merger_->tokens();
  const auto size = static_cast<uint32_t>(end - begin);
  const uint32_t from = places->ByteAt(begin);
  const PlaceSink::Rows rows = places->AddTokens(ids.size());
  uint32_t at = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t token_end = std::min(at + tokens.LengthOf(ids[i]), size);
    rows.bytes[i] = {from + at, from + token_end};
    at = token_end;
  }
  if (with_words) {
    uint32_t word = places->words() + 1;
    size_t piece = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      // Every piece has a token.
      if (piece + 1 < piece_ends.size() &&
          rows.bytes[i].begin - from >= static_cast<uint32_t>(piece_ends[piece] - begin)) {
        ++piece;
        ++word;
      }
      rows.words[i] = word;
    }
  }
  places->AddWords(piece_ends.size());
}

void ByteLevelEncoder::SpellTokens(std::string_view text, std::span<const TokenId> ids,
                                   TokenTexts* out) const {
  const ByteTokens& tokens = merger_->tokens();
  std::string prefixed;
  text = Prefixed(text, &prefixed);
  size_t longer = 0;
  for (char c : text) longer += c > 0x20 && c < 0x7F ? 0 : 1;
  out->Add(ids.size(), text.size() + longer + kSlack, [&](size_t i, char* at) {
    size_t length = std::min<size_t>(tokens.LengthOf(ids[i]), text.size());
    at = Spell(text.data(), length, text.size(), at);
    text.remove_prefix(length);
    return at;
  });
}

}  // namespace portico::tokenizer
