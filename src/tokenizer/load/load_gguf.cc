#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/load/gguf.h"
#include "tokenizer/load/gguf_pre_tokenizers.h"
#include "tokenizer/load/load.h"
#include "tokenizer/load/sentencepiece_parts.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/word_models.h"

namespace portico::tokenizer {
namespace {

constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;

// What the loaders for each kind of vocabulary share.
struct Source {
  GgufMetadata metadata;
  std::vector<std::string_view> tokens;
  std::vector<int32_t> types;

  int32_t TypeOf(size_t id) const { return id < types.size() ? types[id] : 1; }
  std::optional<TokenId> Token(std::string_view key) const {
    std::optional<int64_t> id = metadata.Integer("tokenizer.ggml." + std::string(key));
    if (!id || *id < 0 || static_cast<size_t>(*id) >= tokens.size()) return std::nullopt;
    return static_cast<TokenId>(*id);
  }
  bool Adds(std::string_view key, bool fallback) const {
    return metadata.Flag("tokenizer.ggml." + std::string(key)).value_or(fallback);
  }
};

std::vector<AddedToken> AddedTokensOf(const Source& source) {
  std::vector<AddedToken> out;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    int32_t type = source.TypeOf(id);
    if (type != kControl && type != kUserDefined) continue;
    AddedToken token;
    token.content = std::string(source.tokens[id]);
    token.normalized = false;
    token.special = type == kControl;
    out.push_back(std::move(token));
  }
  return out;
}

Json Special(std::string_view name) {
  return Json(
      JsonObject{{"SpecialToken", Json(JsonObject{{"id", Json(name)}, {"type_id", Json(0)}})}});
}

Json SequenceA() {
  return Json(JsonObject{{"Sequence", Json(JsonObject{{"id", Json("A")}, {"type_id", Json(0)}})}});
}

// BOS and EOS around a text, where the file asks for them.
StatusOr<std::unique_ptr<const PostProcessor>> Frame(const Source& source,
                                                     std::optional<TokenId> first,
                                                     std::optional<TokenId> last) {
  JsonArray single;
  JsonObject specials;
  auto add = [&](TokenId id) {
    std::string_view name = source.tokens[static_cast<size_t>(id)];
    single.push_back(Special(name));
    specials.emplace_back(std::string(name),
                          Json(JsonObject{{"id", Json(name)},
                                          {"ids", Json(JsonArray{Json(int64_t{id})})},
                                          {"tokens", Json(JsonArray{Json(name)})}}));
  };
  if (first) add(*first);
  single.push_back(SequenceA());
  if (last) add(*last);
  JsonArray pair = single;
  for (const Json& item : single) pair.push_back(item);
  for (size_t i = single.size(); i < pair.size(); ++i) {
    if (Json* sequence = pair[i].Find("Sequence")) sequence->Set("id", Json("B"));
  }
  return PostProcessor::FromJson(Json(JsonObject{{"type", Json("TemplateProcessing")},
                                                 {"single", Json(std::move(single))},
                                                 {"pair", Json(std::move(pair))},
                                                 {"special_tokens", Json(std::move(specials))}}));
}

Vocabulary VocabularyOf(const Source& source) {
  Vocabulary vocabulary;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    vocabulary.Add(source.tokens[id], static_cast<TokenId>(id), /*keep_old_id=*/true);
  }
  vocabulary.Seal();
  return vocabulary;
}

StatusOr<MergeTable> MergesOf(const Source& source, const Vocabulary& vocabulary) {
  std::vector<std::string_view> lines = source.metadata.Texts("tokenizer.ggml.merges");
  MergeTable merges;
  merges.Reserve(lines.size());
  uint32_t rank = 0;
  for (std::string_view line : lines) {
    size_t space = line.find(' ', 1);  // the first character may itself be a space
    if (space == std::string_view::npos) {
      return Error(StatusCode::kInvalidArgument,
                   "the GGUF file has the merge '" + std::string(line) + "' of one part");
    }
    std::string joined(line.substr(0, space));
    std::optional<TokenId> left = vocabulary.Find(joined);
    std::optional<TokenId> right = vocabulary.Find(line.substr(space + 1));
    joined.append(line.substr(space + 1));
    std::optional<TokenId> whole = vocabulary.Find(joined);
    if (!left || !right || !whole) {
      return Error(StatusCode::kInvalidArgument,
                   "the GGUF file merges '" + std::string(line) + "', which its vocabulary lacks");
    }
    merges.Add(*left, *right, {rank++, *whole});
  }
  return merges;
}

StatusOr<std::unique_ptr<const Model>> ByteLevelModel(const Source& source, bool ignore_merges) {
  Vocabulary vocabulary = VocabularyOf(source);
  PORTICO_ASSIGN_OR_RETURN(MergeTable merges, MergesOf(source, vocabulary));
  BpeOptions options;
  options.ignore_merges = ignore_merges;
  return std::unique_ptr<const Model>(
      std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), options));
}

StatusOr<PipelineParts> ByteLevelParts(const Source& source, std::unique_ptr<const Model> model) {
  std::string_view pre = source.metadata.Text("tokenizer.ggml.pre");
  PORTICO_ASSIGN_OR_RETURN(GgufPreTokenizer kind, FindGgufPreTokenizer(pre));
  PipelineParts parts;
  PORTICO_ASSIGN_OR_RETURN(Json pre_tokenizer, Json::Parse(kind.pre_tokenizer));
  PORTICO_ASSIGN_OR_RETURN(parts.pre_tokenizer, PreTokenizer::FromJson(pre_tokenizer));
  parts.byte_level = PlanByteLevel(pre_tokenizer);
  Json normalizer(JsonObject{{"type", Json("NFC")}});
  if (kind.nfc) {
    PORTICO_ASSIGN_OR_RETURN(parts.normalizer, Normalizer::FromJson(normalizer));
    parts.nfc_only = true;
  }
  Json decoder(JsonObject{
      {"type", Json("ByteLevel")}, {"add_prefix_space", Json(true)}, {"trim_offsets", Json(true)}});
  PORTICO_ASSIGN_OR_RETURN(parts.decoder, Decoder::FromJson(decoder));
  parts.decode_plan = PlanDecode(decoder);
  parts.model = std::move(model);
  if (!parts.model) {
    PORTICO_ASSIGN_OR_RETURN(parts.model, ByteLevelModel(source, kind.ignore_merges));
  }
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  if (source.Adds("add_bos_token", kind.add_bos)) bos = source.Token("bos_token_id");
  if (source.Adds("add_eos_token", false)) eos = source.Token("eos_token_id");
  PORTICO_ASSIGN_OR_RETURN(parts.post_processor, Frame(source, bos, eos));
  return parts;
}

// The vocabulary writes a word's first token with "▁" in front; WordPiece marks the others with "##".
std::unique_ptr<const Model> BertModel(const Source& source) {
  constexpr std::string_view kWordStart = "\xE2\x96\x81";
  Vocabulary vocabulary;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    std::string token(source.tokens[id]);
    bool normal = source.TypeOf(id) != kControl;
    bool is_start = token.starts_with(kWordStart);
    if (is_start) {
      token.erase(0, kWordStart.size());
    } else if (normal) {
      token.insert(0, "##");
    }
    vocabulary.Add(token, static_cast<TokenId>(id), /*keep_old_id=*/true);
  }
  vocabulary.Seal();
  WordPieceOptions options;
  std::optional<TokenId> unk = source.Token("unknown_token_id");
  if (unk) options.unk_token = std::string(source.tokens[static_cast<size_t>(*unk)]);
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(options));
}

StatusOr<PipelineParts> BertParts(const Source& source, std::unique_ptr<const Model> model) {
  PipelineParts parts;
  Json normalizer(JsonObject{{"type", Json("BertNormalizer")},
                             {"clean_text", Json(true)},
                             {"handle_chinese_chars", Json(true)},
                             {"strip_accents", Json(true)},
                             {"lowercase", Json(true)}});
  PORTICO_ASSIGN_OR_RETURN(parts.normalizer, Normalizer::FromJson(normalizer));
  PORTICO_ASSIGN_OR_RETURN(
      parts.pre_tokenizer,
      PreTokenizer::FromJson(Json(JsonObject{{"type", Json("BertPreTokenizer")}})));
  PORTICO_ASSIGN_OR_RETURN(
      parts.decoder,
      Decoder::FromJson(Json(JsonObject{
          {"type", Json("WordPiece")}, {"prefix", Json("##")}, {"cleanup", Json(true)}})));
  parts.model = model ? std::move(model) : BertModel(source);
  std::optional<TokenId> cls = source.Token("cls_token_id");
  if (!cls) cls = source.Token("bos_token_id");
  std::optional<TokenId> sep = source.Token("seperator_token_id");  // spelled so in the format
  if (!sep) sep = source.Token("eos_token_id");
  PORTICO_ASSIGN_OR_RETURN(parts.post_processor, Frame(source, cls, sep));
  return parts;
}

StatusOr<PipelineParts> SentencePieceLike(const Source& source, bool unigram,
                                          std::unique_ptr<const Model> made) {
  SentencePieceSource model;
  std::vector<float> scores = source.metadata.Floats("tokenizer.ggml.scores");
  if (scores.size() != source.tokens.size()) {
    return Error(StatusCode::kInvalidArgument, "the GGUF file has no score for each token");
  }
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    auto kind = static_cast<SentencePieceSource::Kind>(source.TypeOf(id));
    if (made && !IsSpecialPiece(kind)) continue;
    model.pieces.push_back({std::string(source.tokens[id]), scores[id], kind});
  }
  model.unigram = unigram;
  model.add_dummy_prefix = source.Adds("add_space_prefix", true);
  model.remove_extra_whitespaces = source.Adds("remove_extra_whitespaces", unigram);
  model.charsmap = std::string(source.metadata.Bytes("tokenizer.ggml.precompiled_charsmap"));
  PORTICO_ASSIGN_OR_RETURN(PipelineParts parts, PartsOf(std::move(model), std::move(made)));
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  if (source.Adds("add_bos_token", !unigram)) bos = source.Token("bos_token_id");
  if (source.Adds("add_eos_token", unigram)) eos = source.Token("eos_token_id");
  PORTICO_ASSIGN_OR_RETURN(parts.post_processor, Frame(source, bos, eos));
  return parts;
}

}  // namespace

StatusOr<PipelineParts> PartsFromGguf(std::string_view file) {
  PORTICO_ASSIGN_OR_RETURN(GgufMetadata metadata, GgufMetadata::Parse(file));
  return PartsFromGguf(std::move(metadata));
}

StatusOr<PipelineParts> PartsFromGguf(GgufMetadata metadata, std::unique_ptr<const Model> made) {
  Source source;
  source.metadata = std::move(metadata);
  source.tokens = source.metadata.Texts("tokenizer.ggml.tokens");
  source.types = source.metadata.Integers("tokenizer.ggml.token_type");
  std::string model(source.metadata.Text("tokenizer.ggml.model"));
  if (source.tokens.empty() || model.empty()) {
    return Error(StatusCode::kInvalidArgument, "the GGUF file has no tokenizer");
  }
  StatusOr<PipelineParts> parts =
      Error(StatusCode::kUnimplemented,
            "GGUF vocabularies of the kind '" + model + "' are not supported");
  if (model == "gpt2") parts = ByteLevelParts(source, std::move(made));
  if (model == "bert") parts = BertParts(source, std::move(made));
  if (model == "llama" || model == "t5") {
    parts = SentencePieceLike(source, model == "t5", std::move(made));
  }
  if (!parts.ok()) return parts;
  parts->added_tokens = AddedTokensOf(source);
  parts->description = "GGUF vocabulary (" + model + ")";
  return parts;
}

}  // namespace portico::tokenizer
