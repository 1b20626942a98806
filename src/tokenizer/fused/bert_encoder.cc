#include "tokenizer/fused/bert_encoder.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "text/unicode.h"
#include "text/utf8.h"
#include "tokenizer/cache/cached_pieces.h"
#include "tokenizer/fused/place_sink.h"

namespace portico::tokenizer {
namespace {

// Between the characters of a page while they are normalized: nothing happens to it, and marks do not pass it.
constexpr char kSeparator = '|';

bool IsSurrogate(uint32_t c) { return c >= 0xD800 && c < 0xE000; }

// It is a BERT normalizer, which has no pattern that can give up.
std::string Normalized(const Normalizer& normalizer, std::string_view text) {
  NormalizedString out(text);
  if (!normalizer.Apply(&out).ok()) return {};
  return out.text();
}

}  // namespace

std::unique_ptr<const FusedEncoder> BertEncoder::Make(const Normalizer& normalizer,
                                                      bool strips_accents, const WordPiece& model,
                                                      std::string_view stored) {
  std::unique_ptr<BertEncoder> encoder(new BertEncoder(normalizer, strips_accents, model));
  std::optional<TokenId> unk = model.vocabulary().Find(model.options().unk_token);
  if (!unk || !(encoder->RestoreTries(stored) || encoder->FillTries())) return nullptr;
  encoder->unk_id_ = *unk;
  for (uint32_t c = 0; c < 128; ++c) encoder->ascii_[c] = encoder->EntryOf(c);
  encoder->prefix_chars_ = CountCodePoints(model.options().continuing_subword_prefix);
  for (TokenId id = 0; id <= model.vocabulary().max_id(); ++id) {
    encoder->chars_of_.push_back(
        static_cast<uint32_t>(CountCodePoints(model.vocabulary().Spelling(id))));
  }
  return encoder;
}

BertEncoder::BertEncoder(const Normalizer& normalizer, bool strips_accents, const WordPiece& model)
    : normalizer_(normalizer), strips_accents_(strips_accents), model_(model) {}

void BertEncoder::Save(CompiledWriter* out) const {
  begins_.Save(out);
  continues_.Save(out);
}

bool BertEncoder::RestoreTries(std::string_view stored) {
  CompiledReader in(stored);
  const TokenId limit = model_.vocabulary().max_id() + 1;
  std::optional<DoubleArray> begins = DoubleArray::Restore(&in, limit);
  std::optional<DoubleArray> continues = DoubleArray::Restore(&in, limit);
  if (!begins || !continues || !in.AtEnd()) return false;
  begins_ = *std::move(begins);
  continues_ = *std::move(continues);
  return true;
}

bool BertEncoder::FillTries() {
  const Vocabulary& vocabulary = model_.vocabulary();
  const std::string& prefix = model_.options().continuing_subword_prefix;
  std::vector<std::pair<std::string_view, TokenId>> begins;
  std::vector<std::pair<std::string_view, TokenId>> continues;
  size_t bytes = 0;
  for (TokenId id = 0; id <= vocabulary.max_id(); ++id) {
    std::string_view token = vocabulary.Spelling(id);
    if (token.empty()) continue;
    TokenId value = *vocabulary.Find(token);
    bytes += token.size();
    begins.emplace_back(token, value);
    if (token.size() > prefix.size() && token.starts_with(prefix)) {
      continues.emplace_back(token.substr(prefix.size()), value);
    }
  }
  if (bytes > DoubleArray::kMaxBytes) return false;
  begins_ = DoubleArray(std::move(begins));
  continues_ = DoubleArray(std::move(continues));
  return true;
}

BertEncoder::Entry BertEncoder::Isolated(std::string_view piece) const {
  std::vector<Token> tokens;
  if (!model_.Tokenize(piece, &tokens).ok() || tokens.size() != 1) return {Kind::kComplex, 0};
  return {Kind::kIsolated, static_cast<uint32_t>(tokens[0].id)};
}

// What a character becomes whose normal form is `normalized`.
BertEncoder::Entry BertEncoder::MakeEntry(std::string_view normalized,
                                          std::string* page_text) const {
  if (normalized.empty()) return {Kind::kDropped, 0};
  std::vector<uint32_t> chars = CodePointsOf(normalized);
  // An ideograph stands between two spaces.
  if (chars.size() == 3 && chars[0] == ' ' && chars[2] == ' ') {
    if (PropertiesOf(chars[1]).is_space()) return {Kind::kSpace, 0};
    return Isolated(normalized.substr(1, normalized.size() - 2));
  }
  auto is_complex = [this](uint32_t c) {
    CharProperties p = PropertiesOf(c);
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
    return p.is_space() || p.is_punctuation() ||
           (strips_accents_ && property->combining_class != 0);
  };
  if (chars.size() == 1) {
    CharProperties p = PropertiesOf(chars[0]);
    if (p.is_space()) return {Kind::kSpace, 0};
    if (p.is_punctuation()) return Isolated(normalized);
    return {is_complex(chars[0]) ? Kind::kComplex : Kind::kWord, chars[0]};
  }
  if (std::any_of(chars.begin(), chars.end(), is_complex) ||
      normalized.find('\0') != std::string_view::npos) {
    return {Kind::kComplex, 0};
  }
  auto at = static_cast<uint32_t>(page_text->size());
  page_text->append(normalized).push_back('\0');
  return {Kind::kMany, at};
}

std::unique_ptr<const BertEncoder::Page> BertEncoder::MakePage(uint32_t first) const {
  auto page = std::make_unique<Page>();
  std::string all;
  for (uint32_t c = first; c < first + CharPages<int>::kPage; ++c) {
    if (IsSurrogate(c) || c == kSeparator) {
      all.push_back(' ');
    } else {
      AppendUtf8(c, &all);
    }
    all.push_back(kSeparator);
  }
  all = Normalized(normalizer_, all);
  std::string_view rest = all;
  for (Entry& entry : page->entries) {
    size_t length = rest.find(kSeparator);
    entry = MakeEntry(rest.substr(0, length), &page->text);
    rest.remove_prefix(length + 1);
  }
  if (first == 0) {
    page->entries[size_t{kSeparator}] =
        MakeEntry(Normalized(normalizer_, std::string(1, kSeparator)), &page->text);
  }
  return page;
}

// The end of the word at `p`, which begins with a part of a word. `*plain` stays true if every character of it is kept as
// one.
[[gnu::always_inline]] inline const char* BertEncoder::WordEnd(const char* p, const char* end,
                                                               bool* plain) const {
  while (p < end) {
    DecodedChar c = DecodeChar(p);
    Kind kind = c.length == 1 ? ascii_[c.code_point].kind : EntryOf(c.code_point).kind;
    if (kind > Kind::kDropped) break;
    if (plain != nullptr) *plain = *plain && kind == Kind::kWord;
    p += c.length;
  }
  return p;
}

void BertEncoder::EncodeWord(std::string_view word, std::vector<TokenId>* ids) const {
  thread_local std::string text;
  text.clear();
  for (size_t at = 0; at < word.size();) {
    DecodedChar c = DecodeChar(word.data() + at);
    at += c.length;
    const Entry& entry = c.length == 1 ? ascii_[c.code_point] : EntryOf(c.code_point);
    if (entry.kind == Kind::kMany) {
      text.append(PageOf(c.code_point).text.c_str() + entry.value);
    } else if (entry.kind == Kind::kWord) {
      entry.value < 0x80 ? text.push_back(static_cast<char>(entry.value))
                         : AppendUtf8(entry.value, &text);
    }
  }
  uint64_t most = model_.options().max_input_chars_per_word;
  if (text.size() > most && CountCodePoints(text) > most) {
    ids->push_back(unk_id_);
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const DoubleArray& trie = at == 0 ? begins_ : continues_;
    TokenId longest = -1;
    size_t longest_end = at;
    uint32_t node = DoubleArray::kRoot;
    for (size_t i = at; i < text.size();) {
      node = trie.Child(node, static_cast<unsigned char>(text[i]));
      if (node == DoubleArray::kNoNode) break;
      ++i;
      if (TokenId id = trie.Value(node); id >= 0) {
        longest = id;
        longest_end = i;
      }
    }
    if (longest < 0) {
      ids->assign(1, unk_id_);
      return;
    }
    ids->push_back(longest);
    at = longest_end;
  }
}

// Appends the ids of the word [p, q) in a text that ends at `end`.
[[gnu::always_inline]] inline void BertEncoder::AppendWord(const char* p, const char* q,
                                                           const char* end, PieceCache* cache,
                                                           IdSink* out) const {
  AppendCached({p, static_cast<size_t>(q - p)}, static_cast<size_t>(end - p), cache, out,
               [this](std::string_view word, std::vector<TokenId>* found) {
                 EncodeWord(word, found);
                 return true;
               });
}

size_t BertEncoder::KeptOf(DecodedChar c) const {
  const Entry& entry = c.length == 1 ? ascii_[c.code_point] : EntryOf(c.code_point);
  if (entry.kind == Kind::kWord) return 1;
  if (entry.kind != Kind::kMany) return 0;
  return CountCodePoints(PageOf(c.code_point).text.c_str() + entry.value);
}

// Places the ids of the word [p, q), whose characters are all kept, each as one.
void BertEncoder::PlacePlainWord(const char* p, const char* q, std::span<const TokenId> ids,
                                 PlaceSink* places) const {
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const char* from = p;
    for (size_t n = CharsOf(ids[i], i == 0); n > 0 && p < q; --n) p += DecodeChar(p).length;
    places->Add(from, p);
  }
  if (!ids.empty()) places->Add(p, q);
}

// The same for any word: what is dropped stands for nothing.
void BertEncoder::PlaceWord(const char* p, const char* q, std::span<const TokenId> ids,
                            PlaceSink* places) const {
  const char* begin =
      p;             // of the character in front of `p`, a part of which may be another token's
  size_t kept = 0;   // of that character, not told of
  auto next = [&] {  // to the first character that is kept
    while (kept == 0 && p < q) {
      begin = p;
      const DecodedChar c = DecodeChar(p);
      kept = KeptOf(c);
      p += c.length;
    }
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    next();
    const char* from = begin;
    const char* to = p;
    // The last one has all that is left.
    size_t wanted = i + 1 < ids.size() ? CharsOf(ids[i], i == 0) : SIZE_MAX;
    while (wanted > 0 && kept > 0) {
      to = p;
      const size_t taken = std::min(wanted, kept);
      wanted -= taken;
      kept -= taken;
      if (wanted > 0) next();
    }
    places->Add(from, to);
  }
}

template <typename Places>
bool BertEncoder::EncodeText(std::string_view text, IdSink* out, Places* places) const {
  PieceCache* cache = Cache();
  const char* end = text.data() + text.size();
  return AppendStretches(text, cache, out, places, [&](const char* p) -> const char* {
    DecodedChar c = DecodeChar(p);
    const Entry& entry = c.length == 1 ? ascii_[c.code_point] : EntryOf(c.code_point);
    const char* q = p + c.length;
    if (entry.kind == Kind::kComplex) return nullptr;
    if (entry.kind <= Kind::kMany) {
      if constexpr (Places::kWanted) {
        bool plain = entry.kind == Kind::kWord;
        q = WordEnd(q, end, &plain);
        const size_t first = out->size();
        AppendWord(p, q, end, cache, out);
        places->BeginWord();
        plain ? PlacePlainWord(p, q, out->From(first), places)
              : PlaceWord(p, q, out->From(first), places);
      } else {
        q = WordEnd(q, end);
        AppendWord(p, q, end, cache, out);
      }
    } else if (entry.kind == Kind::kIsolated) {
      out->Append(static_cast<TokenId>(entry.value));
      if constexpr (Places::kWanted) {
        places->BeginWord();
        places->Add(p, q);
      }
    }
    return q;
  });
}

bool BertEncoder::Encode(std::string_view text, bool, IdSink* out) const {
  NoPlaces places;
  return EncodeText(text, out, &places);
}

bool BertEncoder::EncodePlaced(std::string_view text, bool, IdSink* out, PlaceSink* places) const {
  return EncodeText(text, out, places);
}

}  // namespace portico::tokenizer
