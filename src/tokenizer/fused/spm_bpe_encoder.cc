#include "tokenizer/fused/spm_bpe_encoder.h"

#include <string>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/cache/cached_pieces.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/normalize/char_pages.h"

namespace portico::tokenizer {

std::unique_ptr<const FusedEncoder> SpmBpeEncoder::Make(const Bpe& model, SpmBpePlan plan,
                                                        std::string_view stored) {
  const BpeOptions& o = model.options();
  if (!o.byte_fallback || o.ignore_merges || !o.continuing_subword_prefix.empty() ||
      !o.end_of_word_suffix.empty()) {
    return nullptr;
  }
  if (!stored.empty()) {
    if (auto restored = Restore(model, plan, stored)) return restored;
  }
  MergeBorders borders(model, plan.split ? kSpaceSymbol : 0);
  std::unique_ptr<SpmBpeEncoder> encoder(new SpmBpeEncoder(model, plan, std::move(borders)));
  if (!encoder->FillByteIds() || !encoder->FillSymbols() || !encoder->FillAscii()) return nullptr;
  return encoder;
}

SpmBpeEncoder::SpmBpeEncoder(const Bpe& model, SpmBpePlan plan, MergeBorders borders)
    : model_(model), plan_(plan), borders_(std::move(borders)) {}

void SpmBpeEncoder::Save(CompiledWriter* out) const {
  borders_.Save(out);
  out->Number<uint8_t>(makes_bytes_);
  out->Rows(chars_of_);
  out->Rows(page_of_);
  out->Rows(pages_);
}

std::unique_ptr<SpmBpeEncoder> SpmBpeEncoder::Restore(const Bpe& model, SpmBpePlan plan,
                                                      std::string_view stored) {
  CompiledReader in(stored);
  auto borders = MergeBorders::Restore(&in, plan.split ? kSpaceSymbol : 0);
  if (!borders) return nullptr;
  std::unique_ptr<SpmBpeEncoder> out(new SpmBpeEncoder(model, plan, *std::move(borders)));
  const TokenId limit = model.vocabulary().max_id() + 1;
  if (!in.Flag(&out->makes_bytes_) || !in.Rows(&out->chars_of_) || !in.Rows(&out->page_of_) ||
      !in.Rows(&out->pages_) || !in.AtEnd() ||
      out->chars_of_.size() != static_cast<size_t>(limit) ||
      out->page_of_.size() != 0x110000 / kPage || out->pages_.size() < kPage) {
    return nullptr;
  }
  bool known = true;
  for (uint16_t page : out->page_of_) known &= page < out->pages_.size() / kPage;
  for (TokenId id : out->pages_) known &= id >= -1 && id < limit;
  if (!known || !out->FillByteIds() || !out->FillAscii()) return nullptr;
  return out;
}

bool SpmBpeEncoder::FillByteIds() {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (size_t b = 0; b < 256; ++b) {
    std::string name = {'<', '0', 'x', kDigits[b >> 4], kDigits[b & 15], '>'};
    std::optional<TokenId> id = model_.vocabulary().Find(name);
    if (!id) return false;
    byte_ids_[b] = *id;
  }
  return true;
}

bool SpmBpeEncoder::FillSymbols() {
  const Vocabulary& vocabulary = model_.vocabulary();
  std::vector<bool> is_byte(static_cast<size_t>(vocabulary.max_id()) + 1);
  for (TokenId id : byte_ids_) is_byte[static_cast<size_t>(id)] = true;
  bool bytes_merge = false;
  model_.ForEachMerge([&](TokenId left, TokenId right, Merge merge) {
    bytes_merge |= is_byte[static_cast<size_t>(left)] || is_byte[static_cast<size_t>(right)];
    makes_bytes_ |= is_byte[static_cast<size_t>(merge.id)];
  });
  if (bytes_merge) return false;

  page_of_.assign(0x110000 / kPage, 0);
  pages_.assign(kPage, -1);
  chars_of_.assign(is_byte.size(), 0);
  for (TokenId id = 0; id <= vocabulary.max_id(); ++id) {
    std::string_view spelling = vocabulary.Spelling(id);
    if (!is_byte[static_cast<size_t>(id)]) {
      chars_of_.Edit(static_cast<size_t>(id)) = static_cast<uint16_t>(CountCodePoints(spelling));
    }
    if (spelling.empty() || spelling.size() > 4 ||
        Utf8SequenceLength(spelling) != spelling.size()) {
      continue;
    }
    uint32_t c = Utf8Decode(spelling, spelling.size());
    uint16_t& page = page_of_.Edit(c / kPage);
    if (page == 0) {
      page = static_cast<uint16_t>(pages_.size() / kPage);
      pages_.resize(pages_.size() + kPage, -1);
    }
    pages_.Edit(page * kPage + c % kPage) = *vocabulary.Find(spelling);
  }
  return true;
}

// What the other tables say of ASCII. False where a space has no token.
bool SpmBpeEncoder::FillAscii() {
  for (uint32_t c = 0; c < 128; ++c) ascii_[c] = pages_[page_of_[0] * kPage + c];
  ascii_[' '] = SymbolOf(kSpaceSymbol);
  for (uint32_t a = 0; a < 128; ++a) {
    for (uint32_t b = 0; b < 128; ++b) {
      ascii_cut_[a << 7 | b] =
          !borders_.MayCross(a == ' ' ? kSpaceSymbol : a, b == ' ' ? kSpaceSymbol : b);
    }
  }
  return ascii_[' '] >= 0;
}

// The end of the part that begins at `p`, which is not the end.
[[gnu::always_inline]] inline const char* SpmBpeEncoder::NextCut(const char* p,
                                                                 const char* end) const {
  auto a = static_cast<unsigned char>(*p);
  uint32_t before = a;
  if (a < 0x80) {
    for (++p; p < end; ++p) {
      auto b = static_cast<unsigned char>(*p);
      if (b >= 0x80) break;
      if (ascii_cut_[size_t{a} << 7 | b]) return p;
      a = b;
    }
    before = a == ' ' ? kSpaceSymbol : a;
  } else {
    DecodedChar c = DecodeChar(p);
    before = c.code_point;
    p += c.length;
  }
  while (p < end) {
    DecodedChar c = DecodeChar(p);
    uint32_t next = c.code_point == ' ' ? kSpaceSymbol : c.code_point;
    if (!borders_.MayCross(before, next)) return p;
    before = next;
    p += c.length;
  }
  return p;
}

void SpmBpeEncoder::AppendSymbol(std::string_view character, uint32_t code_point, uint32_t at,
                                 std::vector<Token>* out) const {
  TokenId id = SymbolOf(code_point);
  if (id >= 0) {
    out->push_back({id, at, at + static_cast<uint32_t>(character.size())});
    return;
  }
  for (char c : character) {
    out->push_back({byte_ids_[static_cast<unsigned char>(c)], at, at + 1});
    ++at;
  }
}

void SpmBpeEncoder::EncodeNewPiece(std::string_view piece, std::vector<TokenId>* ids) const {
  thread_local std::vector<Token> symbols;
  symbols.clear();
  for (uint32_t at = 0; at < piece.size();) {
    DecodedChar c = DecodeChar(piece.data() + at);
    AppendSymbol(piece.substr(at, c.length), c.code_point, at, &symbols);
    at += c.length;
  }
  model_.MergeAll(&symbols);
  for (const Token& t : symbols) ids->push_back(t.id);
}

bool SpmBpeEncoder::NeedsPrefix(std::string_view text, bool at_start) const {
  if (plan_.prefix == SpmBpePlan::Prefix::kNever || (plan_.only_at_start && !at_start)) {
    return false;
  }
  return plan_.prefix == SpmBpePlan::Prefix::kAlways ||
         !(text.starts_with(' ') || text.starts_with("\xE2\x96\x81"));
}

[[gnu::always_inline]] inline void SpmBpeEncoder::AppendPart(const char* p, const char* q,
                                                             const char* end, PieceCache* cache,
                                                             IdSink* out) const {
  DecodedChar c = DecodeChar(p);
  auto length = static_cast<size_t>(q - p);
  if (length != c.length) {
    AppendCached({p, length}, static_cast<size_t>(end - p), cache, out,
                 [this](std::string_view piece, std::vector<TokenId>* found) {
                   EncodeNewPiece(piece, found);
                   return true;
                 });
  } else if (TokenId id = SymbolOf(c.code_point); id >= 0) {
    out->Append(id);
  } else {
    for (; p < q; ++p) out->Append(byte_ids_[static_cast<unsigned char>(*p)]);
  }
}

// With `split` a part that begins with a space begins a word.
bool SpmBpeEncoder::BeginsWord(const char* p) const {
  if (!plan_.split) return false;
  uint32_t c = DecodeChar(p).code_point;
  return c == ' ' || c == kSpaceSymbol;
}

void SpmBpeEncoder::PlacePart(const char* p, const char* q, std::span<const TokenId> ids,
                              PlaceSink* places) const {
  if (ids.size() == 1) return places->Add(p, q);
  uint32_t bytes_left = 0;  // of the character at `p`
  for (TokenId id : ids) {
    const char* from = p;
    size_t chars = chars_of_[static_cast<size_t>(id)];
    if (chars == 0) {
      // One of the bytes of a character, which stands for all of it.
      const uint32_t length = p < q ? DecodeChar(p).length : 0;
      if (bytes_left == 0) bytes_left = length;
      places->Add(p, p + length);
      if (bytes_left > 0 && --bytes_left == 0) p += length;
      continue;
    }
    for (; chars > 0 && p < q; --chars) p += DecodeChar(p).length;
    places->Add(from, p);
  }
}

template <typename Places>
void SpmBpeEncoder::EncodeParts(std::string_view text, IdSink* out, Places* places) const {
  const char* end = text.data() + text.size();
  PieceCache* cache = Cache();
  AppendStretches(text, cache, out, places, [&](const char* p) {
    const char* q = NextCut(p, end);
    if constexpr (Places::kWanted) {
      const size_t first = out->size();
      AppendPart(p, q, end, cache, out);
      if (BeginsWord(p)) places->BeginWord();
      PlacePart(p, q, out->From(first), places);
    } else {
      AppendPart(p, q, end, cache, out);
    }
    return q;
  });
}

bool SpmBpeEncoder::Encode(std::string_view text, bool at_start, IdSink* out) const {
  std::string prefixed;
  if (NeedsPrefix(text, at_start)) {
    prefixed.reserve(text.size() + 1);
    prefixed.append(" ").append(text);
    text = prefixed;
  }
  NoPlaces places;
  EncodeParts(text, out, &places);
  return true;
}

bool SpmBpeEncoder::EncodePlaced(std::string_view text, bool at_start, IdSink* out,
                                 PlaceSink* places) const {
  if (makes_bytes_) return false;
  if (!NeedsPrefix(text, at_start)) {
    if (!BeginsWord(text.data())) places->BeginWord();
    EncodeParts(text, out, places);
    return true;
  }
  std::string prefixed;
  prefixed.reserve(text.size() + 1);
  prefixed.append(" ").append(text);
  places->BeginPrefixed(prefixed.data(), text.data());
  if (!BeginsWord(prefixed.data())) places->BeginWord();
  EncodeParts(prefixed, out, places);
  places->EndPrefixed();
  return true;
}

}  // namespace portico::tokenizer
