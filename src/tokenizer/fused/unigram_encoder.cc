#include "tokenizer/fused/unigram_encoder.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "text/unicode.h"
#include "text/utf8.h"
#include "tokenizer/cache/cached_pieces.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/fused/unigram_runs.h"
#include "tokenizer/model/space_symbol.h"
#include "tokenizer/normalize/precompiled.h"

namespace portico::tokenizer {
namespace {

bool IsSurrogate(uint32_t c) { return c >= 0xD800 && c < 0xE000; }

// Whether no rule joins a character of this class with one of them behind it.
bool StandsAlone(uint32_t c) {
  switch (utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->boundclass) {
    case UTF8PROC_BOUNDCLASS_OTHER:
    case UTF8PROC_BOUNDCLASS_LV:
    case UTF8PROC_BOUNDCLASS_LVT:
    case UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC:
      return true;
    default:
      return false;
  }
}

bool Breaks(uint32_t a, uint32_t b) {
  utf8proc_int32_t state = 0;
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(a),
                                          static_cast<utf8proc_int32_t>(b), &state);
}

uint32_t CharBefore(const char* p) {
  do --p;
  while (IsTailByte(*p));
  return DecodeChar(p).code_point;
}

}  // namespace

bool IsSpaceAt(std::string_view text, size_t at, size_t* length) {
  DecodedChar c = DecodeChar(text.data() + at);
  *length = c.length;
  return c.code_point < 0x80 ? c.code_point == ' ' || (c.code_point >= 9 && c.code_point <= 13)
                             : PropertiesOf(c.code_point).is_space();
}

std::unique_ptr<const FusedEncoder> UnigramEncoder::Make(const Charsmap& map,
                                                         const Unigram& model) {
  std::unique_ptr<UnigramEncoder> encoder(new UnigramEncoder(map, model));
  encoder->FillAscii();
  if (!encoder->ascii_space_[size_t{' '}]) return nullptr;
  return encoder;
}

void UnigramEncoder::FillAscii() {
  for (uint32_t c = 0; c < 128; ++c) {
    auto byte = static_cast<char>(c);
    std::string normalized(1, byte);
    if (std::optional<std::string_view> found = map_.Shortest({&byte, 1})) {
      normalized = *found;
    } else {
      ascii_plain_[c] = c != '\r';
    }
    size_t length = 0;
    bool space = c != '\r' && !normalized.empty();
    for (size_t at = 0; at < normalized.size(); at += length) {
      space = IsSpaceAt(normalized, at, &length) && space;
    }
    ascii_space_[c] = space;
    ascii_word_[c] = ascii_plain_[c] && !IsSpaceAt({&byte, 1}, 0, &length);
  }
}

std::unique_ptr<const UnigramEncoder::Page> UnigramEncoder::MakePage(uint32_t first) const {
  auto page = std::make_unique<Page>();
  for (uint32_t c = first; c < first + 256; ++c) {
    if (IsSurrogate(c)) continue;
    std::string text;
    AppendUtf8(c, &text);
    const bool replaced = c < 128 ? !ascii_plain_[c] : map_.Shortest(text).has_value();
    page->plain[c - first] = !replaced && (c < 128 || StandsAlone(c));
    size_t length = 0;
    page->kept[c - first] = !replaced && text != kSpaceSymbol && !IsSpaceAt(text, 0, &length);
  }
  return page;
}

// Whether the ASCII space at `p` is a grapheme of its own.
bool UnigramEncoder::IsCut(const char* p, const char* begin, const char* end) const {
  auto space = static_cast<unsigned char>(*p);
  if (p > begin) {
    auto before = static_cast<unsigned char>(p[-1]);
    if (before < 0x80 ? before == '\r' && space == '\n' : !Breaks(CharBefore(p), space)) {
      return false;
    }
  }
  if (p + 1 == end || static_cast<unsigned char>(p[1]) < 0x80) return true;
  return Breaks(space, DecodeChar(p + 1).code_point);
}

// The first place from `p` on where text may be cut.
[[gnu::always_inline]] inline const char* UnigramEncoder::ChunkEnd(const char* p, const char* begin,
                                                                   const char* end) const {
  for (; p < end; ++p) {
    auto b = static_cast<unsigned char>(*p);
    if (b < 0x80 && ascii_space_[b] && IsCut(p, begin, end)) break;
  }
  return p;
}

void UnigramEncoder::AppendNormalized(std::string_view chunk, std::string* out) const {
  ForEachRun(
      chunk, [&](std::string_view run) { out->append(run); },
      [&](std::string_view grapheme) { AppendPrecompiled(map_, grapheme, out); });
}

bool UnigramEncoder::EncodeWord(std::string_view word, std::vector<TokenId>* ids) const {
  thread_local std::vector<Token> tokens;
  thread_local std::string prefixed;
  if (!word.starts_with(kSpaceSymbol)) {
    prefixed.assign(kSpaceSymbol).append(word);
    word = prefixed;
  }
  // Each "▁" begins a piece.
  while (!word.empty()) {
    size_t length = std::min(word.find(kSpaceSymbol, kSpaceSymbol.size()), word.size());
    tokens.clear();
    if (!model_.Tokenize(word.substr(0, length), &tokens).ok()) return false;
    for (const Token& t : tokens) ids->push_back(t.id);
    word.remove_prefix(length);
  }
  return true;
}

bool UnigramEncoder::EncodeChunk(std::string_view chunk, std::vector<TokenId>* ids) const {
  thread_local std::string normalized;
  normalized.clear();
  AppendNormalized(chunk, &normalized);
  std::string_view text = normalized;
  size_t begin = 0;
  size_t length = 0;
  for (size_t at = 0; at < text.size(); at += length) {
    if (!IsSpaceAt(text, at, &length)) continue;
    if (begin < at && !EncodeWord(text.substr(begin, at - begin), ids)) return false;
    begin = at + length;
  }
  return begin >= text.size() || EncodeWord(text.substr(begin), ids);
}

template <typename Places>
bool UnigramEncoder::EncodeChunks(std::string_view text, IdSink* out, Places* places) const {
  PieceCache* cache = Cache();
  const char* begin = text.data();
  const char* end = begin + text.size();
  return AppendStretches(text, cache, out, places, [&](const char* p) -> const char* {
    const char* q = ChunkEnd(p, begin, end);
    if (q == p) return p + 1;  // a space
    const std::string_view chunk(p, static_cast<size_t>(q - p));
    if constexpr (Places::kWanted) {
      if (!IsKeptWord(chunk)) {
        return EncodeAligned(chunk, p == begin, out, places) ? q : nullptr;
      }
      if (chunk.size() > PieceCache::kLongBytes) {
        return EncodeKept(chunk, out, places) ? q : nullptr;
      }
    }
    [[maybe_unused]] const size_t first = out->size();
    bool ok = AppendCached(chunk, static_cast<size_t>(end - p), cache, out,
                           [this](std::string_view piece, std::vector<TokenId>* found) {
                             return EncodeChunk(piece, found);
                           });
    if constexpr (Places::kWanted) ok = ok && PlaceIds(chunk, out->From(first), places);
    return ok ? q : nullptr;
  });
}

bool UnigramEncoder::Encode(std::string_view text, bool, IdSink* out) const {
  NoPlaces places;
  return EncodeChunks(text, out, &places);
}

bool UnigramEncoder::EncodePlaced(std::string_view text, bool, IdSink* out,
                                  PlaceSink* places) const {
  return EncodeChunks(text, out, places);
}

}  // namespace portico::tokenizer
