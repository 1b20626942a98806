// Text to ids for the T5 family: a Precompiled normalizer, WhitespaceSplit, Metaspace, Unigram.
//
// The normalizer works grapheme by grapheme, so text may be cut at a space that is a grapheme of its own, and what is
// between two such spaces can be looked up as it is given. ASCII characters other than CR LF always are graphemes of
// their own among ASCII; beside other characters the grapheme rules are asked. Most characters ("plain" here) have no
// replacement, no rule joins two of them into one grapheme, and runs of them are copied as they are.
#pragma once

#include <bitset>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/encoding.h"
#include "tokenizer/fused/fused_encoder.h"
#include "tokenizer/model/unigram.h"
#include "tokenizer/normalize/char_pages.h"
#include "tokenizer/normalize/charsmap.h"

namespace portico::tokenizer {

class UnigramEncoder : public FusedEncoder {
 public:
  // For a Metaspace that always puts a "▁" in front. Null where this does not hold for the map.
  static std::unique_ptr<const FusedEncoder> Make(const Charsmap& map, const Unigram& model);

  bool Encode(std::string_view text, bool at_start, IdSink* out) const override;
  bool EncodePlaced(std::string_view text, bool at_start, IdSink* out,
                    PlaceSink* places) const override;
  std::string_view Name() const override { return "fused Unigram path"; }

 private:
  struct Page {
    using Bits = std::bitset<CharPages<int>::kPage>;
    Bits plain;
    Bits kept;  // no replacement of its own, and no space that words end at, nor "▁"
  };
  UnigramEncoder(const Charsmap& map, const Unigram& model) : map_(map), model_(model) {}
  void FillAscii();
  const Page& PageOf(uint32_t c) const {
    return pages_.Get(c, [this](uint32_t first) { return MakePage(first); });
  }
  bool IsPlain(uint32_t c) const { return PageOf(c).plain[c % CharPages<int>::kPage]; }
  std::unique_ptr<const Page> MakePage(uint32_t first) const;
  const char* ChunkEnd(const char* p, const char* begin, const char* end) const;
  bool IsCut(const char* p, const char* begin, const char* end) const;
  void AppendNormalized(std::string_view chunk, std::string* out) const;
  bool EncodeChunk(std::string_view chunk, std::vector<TokenId>* ids) const;
  bool EncodeWord(std::string_view word, std::vector<TokenId>* ids) const;
  template <typename Places>
  bool EncodeChunks(std::string_view text, IdSink* out, Places* places) const;
  template <typename Plain, typename Other>
  void ForEachRun(std::string_view chunk, Plain plain, Other other) const;
  bool IsKeptWord(std::string_view chunk) const;
  bool EncodeKept(std::string_view word, IdSink* out, PlaceSink* places) const;
  void PlaceKept(std::string_view word, std::string_view piece, std::span<const Token> tokens,
                 PlaceSink* places) const;
  bool PlaceIds(std::string_view word, std::span<const TokenId> ids, PlaceSink* places) const;
  bool AlignRuns(std::string_view chunk, std::string* text, std::vector<Span>* origin) const;
  bool AlignWhole(std::string_view chunk, bool at_start, std::string* text,
                  std::vector<Span>* origin, const char** begin) const;
  bool EncodeAligned(std::string_view chunk, bool at_start, IdSink* out, PlaceSink* places) const;
  bool EncodeAlignedWord(const char* chunk, std::string_view word, const Span* origin, IdSink* out,
                         PlaceSink* places) const;
  void Place(const char* begin, const char* end, std::string_view piece, const Token& token,
             PlaceSink* places) const;

  const Charsmap& map_;
  const Unigram& model_;
  CharPages<Page> pages_;
  bool ascii_plain_[128] = {};
  bool ascii_space_[128] = {};  // becomes spaces, or is one
  bool ascii_word_[128] = {};   // plain, and no space
};

}  // namespace portico::tokenizer
