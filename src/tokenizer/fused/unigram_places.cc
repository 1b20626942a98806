// Where the tokens of a Unigram encode lie. Words that normalizing leaves as they are are placed by the lengths of their
// tokens; others are normalized with what each byte stands for.
#include <algorithm>
#include <string>
#include <utility>

#include "text/normalization.h"
#include "tokenizer/fused/id_sink.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/fused/unigram_encoder.h"
#include "tokenizer/fused/unigram_runs.h"
#include "tokenizer/model/space_symbol.h"
#include "tokenizer/normalize/normalized_string.h"

namespace portico::tokenizer {

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
  if (ids.size() == 1 && ids[0] != model_.unk_id()) {
    places->BeginWord();
    places->Add(word.data(), word.data() + word.size());
    return true;
  }
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

// Appends the normalized chunk and what each byte of that stands for. False where one of its graphemes becomes nothing.
bool UnigramEncoder::AlignRuns(std::string_view chunk, std::string* text,
                               std::vector<Span>* origin) const {
  thread_local std::vector<NormalizedChar> chars;
  bool ok = true;
  ForEachRun(
      chunk,
      [&](std::string_view run) {
        auto at = static_cast<uint32_t>(run.data() - chunk.data());
        text->append(run);
        origin->resize(text->size());
        for (Span *to = origin->data() + (text->size() - run.size()), *end = to + run.size();
             to < end;) {
          const uint32_t length = DecodeChar(chunk.data() + at).length;
          for (uint32_t i = 0; i < length; ++i) *to++ = {at, at + length};
          at += length;
        }
      },
      [&](std::string_view grapheme) {
        chars.clear();
        AppendPrecompiled(map_, grapheme, &chars);
        ok = ok &&
             AppendAligned(grapheme, chars, static_cast<uint32_t>(grapheme.data() - chunk.data()),
                           text, origin);
      });
  return ok;
}

// The same for any chunk: what becomes nothing goes with the character in front, unless nothing is in front of a chunk
// `at_start`. `*begin` is what the places are counted from.
bool UnigramEncoder::AlignWhole(std::string_view chunk, bool at_start, std::string* text,
                                std::vector<Span>* origin, const char** begin) const {
  std::vector<NormalizedChar> chars;
  if (!at_start) {
    chunk = {chunk.data() - 1, chunk.size() + 1};
    chars.push_back({' ', 0});
  }
  *begin = chunk.data();
  ForEachRun(
      chunk.substr(at_start ? 0 : 1),
      [&](std::string_view run) {
        for (uint32_t c : CodePointsOf(run)) chars.push_back({c, 0});
      },
      [&](std::string_view grapheme) { AppendPrecompiled(map_, grapheme, &chars); });
  return AppendAligned(chunk, chars, 0, text, origin);
}

bool UnigramEncoder::EncodeAligned(std::string_view chunk, bool at_start, IdSink* out,
                                   PlaceSink* places) const {
  thread_local std::string text;
  thread_local std::vector<Span> origin;
  const char* begin = chunk.data();
  text.clear();
  origin.clear();
  if (!AlignRuns(chunk, &text, &origin)) {
    places->HangOnFront();
    text.clear();
    origin.clear();
    if (!AlignWhole(chunk, at_start, &text, &origin, &begin)) return false;
  }
  auto encode = [&](size_t from, size_t to) {
    return from >= to || EncodeAlignedWord(begin, std::string_view(text).substr(from, to - from),
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

}  // namespace portico::tokenizer
