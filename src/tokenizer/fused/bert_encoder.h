// Text to ids for the BERT family: BertNormalizer, BertPreTokenizer and WordPiece.
//
// What the normalizer makes of a character does not depend on its neighbours, with one exception. Cleaning, spacing
// out ideographs and lower-casing look at one character each. NFD replaces each character by its decomposition and
// then puts marks (characters with a combining class) that follow one another in order; as the next step drops all
// nonspacing marks, their order does not matter. It would for the few marks that are not nonspacing (U+302E,
// U+1D165 …): texts with these go the general way. So one table says what each character becomes, and words can be
// cut and looked up in the text as it is given.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/fused/fused_encoder.h"
#include "tokenizer/fused/id_sink.h"
#include "tokenizer/model/double_array.h"
#include "tokenizer/model/word_models.h"
#include "tokenizer/normalize/char_pages.h"

namespace portico::tokenizer {

class BertEncoder : public FusedEncoder {
 public:
  // `normalizer` is a BertNormalizer that strips accents or not. Null where the model is not one that this equals.
  static std::unique_ptr<const FusedEncoder> Make(const Normalizer& normalizer, bool strips_accents,
                                                  const WordPiece& model, std::string_view stored);

  bool Encode(std::string_view text, bool at_start, IdSink* out) const override;
  bool EncodePlaced(std::string_view text, bool at_start, IdSink* out,
                    PlaceSink* places) const override;
  void Save(CompiledWriter* out) const override;
  std::string_view Name() const override { return "fused BERT path"; }

 private:
  enum class Kind : uint8_t {
    kWord,     // part of a word, as the character `value`
    kMany,     // part of a word, as several: `value` is their place in the page's text
    kDropped,  // nothing; a word goes on behind it
    kSpace,
    kIsolated,  // a piece of its own, of the id `value`
    kComplex    // depends on what is around it
  };
  struct Entry {
    Kind kind;
    uint32_t value;
  };
  struct Page {
    Entry entries[CharPages<int>::kPage];
    std::string text;  // of kMany, each ended by a zero byte
  };

  BertEncoder(const Normalizer& normalizer, bool strips_accents, const WordPiece& model);
  bool RestoreTries(std::string_view stored);
  bool FillTries();
  const Page& PageOf(uint32_t c) const {
    return pages_.Get(c, [this](uint32_t first) { return MakePage(first); });
  }
  const Entry& EntryOf(uint32_t c) const { return PageOf(c).entries[c % CharPages<int>::kPage]; }
  std::unique_ptr<const Page> MakePage(uint32_t first) const;
  Entry MakeEntry(std::string_view normalized, std::string* page_text) const;
  Entry Isolated(std::string_view piece) const;
  const char* WordEnd(const char* p, const char* end, bool* plain = nullptr) const;
  void EncodeWord(std::string_view word, std::vector<TokenId>* ids) const;
  void AppendWord(const char* p, const char* q, const char* end, PieceCache* cache,
                  IdSink* out) const;
  template <typename Places>
  bool EncodeText(std::string_view text, IdSink* out, Places* places) const;
  // The text that normalizing a character of a word leaves, in characters.
  size_t KeptOf(DecodedChar c) const;
  size_t CharsOf(TokenId id, bool first) const {
    return chars_of_[static_cast<size_t>(id)] - (first ? 0 : prefix_chars_);
  }
  void PlacePlainWord(const char* p, const char* q, std::span<const TokenId> ids,
                      PlaceSink* places) const;
  void PlaceWord(const char* p, const char* q, std::span<const TokenId> ids,
                 PlaceSink* places) const;

  const Normalizer& normalizer_;
  bool strips_accents_;
  const WordPiece& model_;
  TokenId unk_id_ = -1;
  DoubleArray begins_;              // words, and tokens that words begin with
  DoubleArray continues_;           // tokens inside words, without their prefix
  std::vector<uint32_t> chars_of_;  // that a token spells
  size_t prefix_chars_ = 0;         // of those, the prefix of one inside a word
  CharPages<Page> pages_;
  Entry ascii_[128];
};

}  // namespace portico::tokenizer
