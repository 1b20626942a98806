// Text to ids for BPE over whole texts whose spaces are spelled "▁" and whose unknown characters become bytes
// (llama-2, mistral, phi-3, gemma).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/fused/fused_encoder.h"
#include "tokenizer/fused/id_sink.h"
#include "tokenizer/merge/merge_borders.h"
#include "tokenizer/model/bpe.h"

namespace portico::tokenizer {

// When a "▁" is put in front of a text.
struct SpmBpePlan {
  enum class Prefix { kNever, kAlways, kUnlessThere };
  Prefix prefix = Prefix::kNever;
  bool only_at_start = false;  // … of the whole input
  bool split = false;          // every "▁" begins a piece of its own
};

class SpmBpeEncoder : public FusedEncoder {
 public:
  // Null where the model is not one that this equals.
  static std::unique_ptr<const FusedEncoder> Make(const Bpe& model, SpmBpePlan plan,
                                                  std::string_view stored);

  bool Encode(std::string_view text, bool at_start, IdSink* out) const override;
  bool EncodePlaced(std::string_view text, bool at_start, IdSink* out,
                    PlaceSink* places) const override;
  void Save(CompiledWriter* out) const override;
  std::string_view Name() const override { return "fused SentencePiece BPE path"; }

 private:
  static constexpr uint32_t kSpaceSymbol = 0x2581;
  static constexpr size_t kPage = 256;

  SpmBpeEncoder(const Bpe& model, SpmBpePlan plan, MergeBorders borders);
  static std::unique_ptr<SpmBpeEncoder> Restore(const Bpe& model, SpmBpePlan plan,
                                                std::string_view stored);
  bool FillByteIds();
  bool FillSymbols();
  bool FillAscii();
  // The token of a character of the text, -1 where it is encoded in bytes.
  TokenId SymbolOf(uint32_t c) const {
    return c < 128 ? ascii_[c] : pages_[page_of_[c / kPage] * kPage + c % kPage];
  }
  const char* NextCut(const char* p, const char* end) const;
  void AppendSymbol(std::string_view character, uint32_t code_point, uint32_t at,
                    std::vector<Token>* out) const;
  bool NeedsPrefix(std::string_view text, bool at_start) const;
  bool BeginsWord(const char* p) const;
  // Appends the ids of the part [p, q) of a text that ends at `end`.
  void AppendPart(const char* p, const char* q, const char* end, PieceCache* cache,
                  IdSink* out) const;
  template <typename Places>
  void EncodeParts(std::string_view text, IdSink* out, Places* places) const;
  // Tells `places` of the ids of the part [p, q).
  void PlacePart(const char* p, const char* q, std::span<const TokenId> ids,
                 PlaceSink* places) const;
  void EncodeNewPiece(std::string_view piece, std::vector<TokenId>* ids) const;

  const Bpe& model_;
  SpmBpePlan plan_;
  MergeBorders borders_;
  TokenId byte_ids_[256];
  TokenId ascii_[128];  // a space is "▁"
  bool ascii_cut_[128 * 128];
  StoredRows<uint16_t> chars_of_;  // how many characters a token spells; 0: it is a byte
  bool makes_bytes_ = false;       // a merge spells out a byte token's name
  StoredRows<uint16_t> page_of_;
  StoredRows<TokenId> pages_;
};

}  // namespace portico::tokenizer
