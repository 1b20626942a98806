#include "tokenizer/unigram_encoder.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "text/unicode.h"
#include "text/utf8.h"
#include "tokenizer/cached_pieces.h"
#include "tokenizer/place_sink.h"
#include "tokenizer/precompiled.h"
#include "tokenizer/space_symbol.h"

namespace portico::tokenizer {
namespace {

bool IsSurrogate(uint32_t c) { return c >= 0xD800 && c < 0xE000; }

bool IsSpaceAt(std::string_view text, size_t at, size_t* length) {
  DecodedChar c = DecodeChar(text.data() + at);
  *length = c.length;
  return c.code_point < 0x80 ? c.code_point == ' ' || (c.code_point >= 9 && c.code_point <= 13)
                             : PropertiesOf(c.code_point).is_space();
}

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
  while ((static_cast<unsigned char>(*p) & 0xC0) == 0x80);
  return DecodeChar(p).code_point;
}

}  // namespace

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

// Calls `plain` with each run of plain characters and `other` with each other grapheme, in order.
template <typename Plain, typename Other>
[[gnu::always_inline]] inline void UnigramEncoder::ForEachRun(std::string_view chunk, Plain plain,
                                                              Other other) const {
  const char* p = chunk.data();
  const char* end = p + chunk.size();
  auto plain_at = [&](const char* at, uint32_t* length) {
    DecodedChar c = DecodeChar(at);
    *length = c.length;
    return c.length == 1 ? ascii_plain_[c.code_point] : IsPlain(c.code_point);
  };
  while (p < end) {
    // A plain character in front of one that is not may belong to its grapheme.
    const char* run = p;
    uint32_t length = 0;
    const char* last = p;
    while (p < end && plain_at(p, &length)) {
      last = p;
      p += length;
    }
    if (p < end) p = last;
    if (p > run) plain(std::string_view(run, static_cast<size_t>(p - run)));
    if (p == end) return;
    size_t grapheme = GraphemeLength({p, static_cast<size_t>(end - p)});
    other(std::string_view(p, grapheme));
    p += grapheme;
  }
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

// Whether the chunk is surely one word that normalizing leaves as it is.
bool UnigramEncoder::IsKeptWord(std::string_view chunk) const {
  uint32_t before = kMaxCluster;  // bytes of the character in front
  bool was_plain = true;
  for (size_t at = 0; at < chunk.size();) {
    DecodedChar c = DecodeChar(chunk.data() + at);
    bool is_plain = true;
    if (c.length == 1) {
      if (!ascii_word_[c.code_point]) return false;
    } else {
      const Page& page = PageOf(c.code_point);
      const uint32_t i = c.code_point % CharPages<int>::kPage;
      if (!page.kept[i]) return false;
      is_plain = page.plain[i];
    }
    // The two may be a grapheme that has a replacement.
    if (!(is_plain && was_plain) && before + c.length < kMaxCluster) return false;
    was_plain = is_plain;
    before = c.length;
    at += c.length;
  }
  return true;
}

// Tells of a token of `piece`, which stands for [begin, end).
void UnigramEncoder::Place(const char* begin, const char* end, std::string_view piece,
                           const Token& token, PlaceSink* places) const {
  places->Add(begin, end);
  if (token.id == model_.unk_id()) {
    places->SetText(piece.substr(token.begin, token.end - token.begin));
  }
}

// Places the tokens of `piece`, "▁" and a word as it is given; the "▁" stands for the first character.
void UnigramEncoder::PlaceKept(std::string_view word, std::string_view piece,
                               std::span<const Token> tokens, PlaceSink* places) const {
  constexpr size_t kFront = kSpaceSymbol.size();
  const char* begin = word.data();
  places->BeginWord();
  for (const Token& t : tokens) {
    const char* from = begin + (t.begin < kFront ? 0 : t.begin - kFront);
    const char* to = begin + (t.end <= kFront ? DecodeChar(begin).length : t.end - kFront);
    Place(from, to, piece, t, places);
  }
}

// Places the ids of a word that normalizing leaves as it is, by their spellings where these tell.
bool UnigramEncoder::PlaceIds(std::string_view word, std::span<const TokenId> ids,
                              PlaceSink* places) const {
  thread_local std::string piece;
  thread_local std::vector<Token> tokens;
  piece.assign(kSpaceSymbol).append(word);
  tokens.clear();
  uint32_t known = 0;
  size_t unknown = 0;
  for (TokenId id : ids) {
    const bool is_unknown = id == model_.unk_id();
    unknown += is_unknown ? 1 : 0;
    const size_t length = is_unknown ? 0 : model_.vocabulary().Spelling(id).size();
    tokens.push_back({id, known, known + static_cast<uint32_t>(length)});
    known += static_cast<uint32_t>(length);
  }
  const size_t left = piece.size() - std::min<size_t>(known, piece.size());
  if (model_.has_bytes() || unknown > 1 || known > piece.size() || (unknown == 0 && left > 0)) {
    tokens.clear();
    if (!model_.Tokenize(piece, &tokens).ok() || tokens.size() != ids.size()) return false;
  } else if (unknown == 1) {
    // What the others leave is the unknown one's.
    bool behind = false;
    for (Token& t : tokens) {
      if (behind) t.begin += static_cast<uint32_t>(left);
      behind = behind || t.id == model_.unk_id();
      if (behind) t.end += static_cast<uint32_t>(left);
    }
  }
  PlaceKept(word, piece, tokens, places);
  return true;
}

bool UnigramEncoder::EncodeKept(std::string_view word, IdSink* out, PlaceSink* places) const {
  thread_local std::string piece;
  thread_local std::vector<Token> tokens;
  piece.assign(kSpaceSymbol).append(word);
  tokens.clear();
  if (!model_.Tokenize(piece, &tokens).ok()) return false;
  for (const Token& t : tokens) out->Append(t.id);
  PlaceKept(word, piece, tokens, places);
  return true;
}

// Appends the tokens of a word that is normalized; `origin` are its bytes' places in the chunk.
bool UnigramEncoder::EncodeAlignedWord(const char* chunk, std::string_view word, const Span* origin,
                                       IdSink* out, PlaceSink* places) const {
  thread_local std::vector<Token> tokens;
  thread_local std::string prefixed;
  constexpr size_t kFront = kSpaceSymbol.size();
  size_t front = 0;  // bytes put in front
  if (!word.starts_with(kSpaceSymbol)) {
    prefixed.assign(kSpaceSymbol).append(word);
    word = prefixed;
    front = kFront;
  }
  for (size_t at = 0; at < word.size();) {
    const size_t length = std::min(word.find(kSpaceSymbol, at + kFront), word.size()) - at;
    const std::string_view piece = word.substr(at, length);
    tokens.clear();
    if (!model_.Tokenize(piece, &tokens).ok()) return false;
    places->BeginWord();
    for (const Token& t : tokens) {
      const Span& first = origin[std::max(at + t.begin, front) - front];
      const Span& last = origin[std::max(at + t.end, front + 1) - front - 1];
      if (first.begin >= last.end) return false;
      out->Append(t.id);
      Place(chunk + first.begin, chunk + last.end, piece, t, places);
    }
    at += length;
  }
  return true;
}

// Normalizes the chunk with what each byte of that stands for. What becomes nothing goes with the character in front, so
// that is looked at too; nothing is in front of a chunk `at_start`.
bool UnigramEncoder::EncodeAligned(std::string_view chunk, bool at_start, IdSink* out,
                                   PlaceSink* places) const {
  thread_local std::vector<NormalizedChar> chars;
  thread_local std::string text;
  thread_local std::vector<Span> origin;
  chars.clear();
  text.clear();
  origin.clear();
  std::string_view source = chunk;
  ForEachRun(
      chunk,
      [&](std::string_view run) {
        for (size_t at = 0; at < run.size();) {
          DecodedChar c = DecodeChar(run.data() + at);
          chars.push_back({c.code_point, 0});
          at += c.length;
        }
      },
      [&](std::string_view grapheme) {
        if (chars.empty() && !at_start) {
          chars.push_back({' ', 0});
          source = {source.data() - 1, source.size() + 1};
        }
        AppendPrecompiled(map_, grapheme, &chars);
      });
  if (!AppendAligned(source, chars, 0, &text, &origin)) return false;
  auto encode = [&](size_t from, size_t to) {
    return from >= to ||
           EncodeAlignedWord(source.data(), std::string_view(text).substr(from, to - from),
                             origin.data() + from, out, places);
  };
  size_t word = 0;
  size_t length = 0;
  for (size_t at = 0; at < text.size(); at += length) {
    if (!IsSpaceAt(text, at, &length)) continue;
    if (!encode(word, at)) return false;
    word = at + length;
  }
  return encode(word, text.size());
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
