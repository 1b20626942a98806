// The parts of a tokenizer, put together: added tokens → normalizer → pre-tokenizer → model → post-processor, and
// back through the decoder. The class Tokenizer is its public face.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/compiled/compiled_image.h"
#include "tokenizer/decode/decode_table.h"
#include "tokenizer/decode/decoder.h"
#include "tokenizer/encoding_ops.h"
#include "tokenizer/fused/byte_level_encoder.h"
#include "tokenizer/fused/fused_encoder.h"
#include "tokenizer/model/model.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/split/added_tokens.h"
#include "tokenizer/split/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {

class IdSink;
class PlaceSink;

// What a loader fills in.
struct PipelineParts {
  std::shared_ptr<const CompiledImage>
      image;  // what the model and other parts refer to, if anything
  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<const PreTokenizer> pre_tokenizer;
  std::unique_ptr<const Model> model;
  std::unique_ptr<const PostProcessor> post_processor;
  std::unique_ptr<const Decoder> decoder;
  std::vector<AddedToken> added_tokens;
  // The ids that a tokenizer.json gives them; nothing where it has no list of them.
  std::optional<std::vector<int64_t>> added_token_ids;
  // What is added behind them, call by call (AddedTokens::BeginCall()).
  std::vector<std::vector<AddedToken>> more_added_tokens;
  std::string
      added_tokens_note;  // why the folder's other files add none, for a person; empty: they may
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  DecodePlan decode_plan;
  ByteLevelPlan byte_level;                   // kNone unless the fused way equals the parts above
  std::unique_ptr<const PieceMerger> merger;  // of a byte-level model, if it is made already
  std::unique_ptr<const FusedEncoder> fused;  // of these parts, likewise
  std::optional<DecodeTable> decode;  // of the model's vocabulary under decode_plan, likewise
  bool nfc_only = false;              // the normalizer is NFC and nothing else
  std::string description;            // where it came from, for a person
};

// Immutable, safe to use from many threads.
class Pipeline {
 public:
  static StatusOr<std::unique_ptr<const Pipeline>> Make(PipelineParts parts);

  // `text` is valid UTF-8 in all of these.
  Status EncodeIds(std::string_view text, const Tokenizer::EncodeOptions& options,
                   std::vector<TokenId>* ids) const;
  Status EncodeOffsets(std::string_view text, const Tokenizer::EncodeOptions& options,
                       OffsetUnit unit, std::vector<TokenId>* ids,
                       std::vector<Span>* offsets) const;
  StatusOr<Encoding> EncodeFull(std::string_view text, const std::string_view* pair,
                                const Tokenizer::EncodeOptions& options) const;

  std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const;
  // As Decode(), by the decoder's own steps; for short lists.
  std::string DecodeGeneral(std::span<const TokenId> ids, bool skip_special_tokens) const;

  std::optional<TokenId> TokenToId(std::string_view token) const;
  std::string_view IdToToken(TokenId id) const;
  bool IsSpecial(TokenId id) const { return decode_.IsSpecial(id); }
  bool HasToken(TokenId id) const { return decode_.Has(id); }
  TokenId vocab_size() const { return decode_.size(); }
  const SpecialFrame& frame() const { return frame_; }
  bool adds_special_tokens() const { return adds_special_tokens_; }
  const PipelineParts& parts() const { return parts_; }
  const AddedTokens& added_tokens() const { return added_; }
  // What cuts and what fills an encode with these options; null for none.
  const Truncation* TruncationOf(const Tokenizer::EncodeOptions& options) const;
  const Padding* PaddingOf(const Tokenizer::EncodeOptions& options) const;
  const DecodeTable& decode_table() const { return decode_; }
  std::string Describe() const;

 private:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {}

  Status AddTokens();
  Status AddCall(std::vector<AddedToken> tokens);
  void FillDecodeTable(TokenId size);
  // So that the first text does not wait until the classes of characters, tables that are made when they are needed and
  // this thread's caches are there.
  void EncodeFirstText() const;
  // Decode() under DecodePlan::Kind::kTokenwise.
  std::string DecodeTokenwise(std::span<const TokenId> ids, bool skip_special_tokens) const;
  // The pieces of `text` that the model works on.
  StatusOr<Pieces> Cut(std::string_view text, bool parse_special) const;
  StatusOr<Encoding> EncodeSequence(std::string_view text, uint32_t type_id,
                                    bool parse_special) const;
  Status AppendIds(std::string_view text, bool parse_special, std::vector<TokenId>* ids) const;
  // False where the text needs the general way; nothing is appended then.
  bool AppendIdsFused(std::string_view text, bool parse_special, std::vector<TokenId>* ids) const;
  template <typename Places>
  bool AppendStretches(std::string_view text, IdSink* out, Places* places) const;
  // Whether the fused ways may tell the places of this text's tokens.
  bool MayPlace() const;
  // Whether they leave spaces out of them, so that the post-processor need not.
  bool MayTrim(std::string_view text) const;
  // Appends the ids of `text`, which is the sink's, and tells of their places; the tokens' texts where `texts` is not
  // null. False where the text needs the general way; what was appended counts for nothing then.
  bool PlaceText(std::string_view text, bool parse_special, PlaceSink* places,
                 std::vector<TokenId>* ids, TokenTexts* texts) const;
  bool PlaceStretches(std::string_view text, PlaceSink* places, std::vector<TokenId>* ids) const;
  void SpellTokens(std::span<const TokenId> ids, size_t told, const PlaceSink& places,
                   TokenTexts* texts) const;
  bool PlacePart(std::string_view part, bool at_start, PlaceSink* places, std::vector<TokenId>* ids,
                 TokenTexts* texts) const;
  bool PlaceByteLevel(std::string_view part, bool parse_special, PlaceSink* places,
                      std::vector<TokenId>* ids, TokenTexts* texts) const;
  bool PlaceNormalized(std::string_view part, bool parse_special, PlaceSink* places,
                       std::vector<TokenId>* ids, TokenTexts* texts) const;
  bool EncodeSequenceFused(std::string_view text, uint32_t type_id, bool parse_special,
                           Encoding* out) const;
  Status AppendIdsGeneral(std::string_view text, bool parse_special,
                          std::vector<TokenId>* ids) const;
  StatusOr<Encoding> PostProcess(Encoding first, std::optional<Encoding> second,
                                 const Tokenizer::EncodeOptions& options) const;

  PipelineParts parts_;
  AddedTokens added_;
  DecodeTable decode_;
  std::unique_ptr<const ByteLevelEncoder> fast_;  // null where only the general way is exact
  std::unique_ptr<const FusedEncoder> fused_;     // the same for the other families
  SpecialFrame frame_;
  bool adds_special_tokens_ = false;
  bool ids_tell_added_ = true;  // no added token has an id by which the vocabulary has another text
};

}  // namespace portico::tokenizer
