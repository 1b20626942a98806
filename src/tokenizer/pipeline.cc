#include "tokenizer/pipeline.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/fused/char_offsets.h"
#include "tokenizer/load/run_beside.h"

namespace portico::tokenizer {
namespace {

void AppendToken(TokenId id, std::string_view text, Span bytes, const CharOffsets& chars,
                 uint32_t type_id, int32_t word, Encoding* out) {
  out->ids.push_back(id);
  out->tokens.Add(text);
  out->byte_offsets.push_back(bytes);
  out->offsets.push_back(chars.Of(bytes));
  out->type_ids.push_back(type_id);
  out->attention_mask.push_back(1);
  out->special_tokens_mask.push_back(0);
  out->word_ids.push_back(word);
}

constexpr std::string_view kFirstText =
    "The quick brown fox jumps over the lazy dog, and then it's 12:45; what else? \n\n"
    "def f(x):\n    return {\"key\": [x + 1]}  # \xE4\xB8\xAD\xE6\x96\x87\xE3\x81\x82 \xC3\xA9\n";

// From here on a thread more is worth its while.
constexpr TokenId kManyIds = 1 << 15;

// Tables by id must not outgrow the file by much, however large an id it names.
Status CheckIds(TokenId size, size_t tokens) {
  constexpr size_t kMaxIds = size_t{1} << 24;
  constexpr size_t kFreeIds = size_t{1} << 20;
  constexpr size_t kMaxSparseness = 16;
  auto ids = static_cast<size_t>(size);
  if (ids <= kMaxIds && ids <= kFreeIds + tokens * kMaxSparseness) return OkStatus();
  return Error(StatusCode::kUnimplemented, "the vocabulary of " + std::to_string(tokens) +
                                               " tokens has ids up to " + std::to_string(size - 1) +
                                               "; that is not supported");
}

}  // namespace

StatusOr<std::unique_ptr<const Pipeline>> Pipeline::Make(PipelineParts parts) {
  std::unique_ptr<Pipeline> p(new Pipeline(std::move(parts)));
  PORTICO_RETURN_IF_ERROR(p->AddTokens());
  const Vocabulary& vocabulary = p->parts_.model->vocabulary();
  TokenId size = std::max(vocabulary.max_id(), p->added_.max_id()) + 1;
  PORTICO_RETURN_IF_ERROR(CheckIds(size, vocabulary.size() + p->added_.size()));
  RunBeside(
      size >= kManyIds, [&] { p->FillDecodeTable(size); },
      [&] {
        if (const auto* bpe = dynamic_cast<const Bpe*>(p->parts_.model.get())) {
          p->fast_ =
              ByteLevelEncoder::Make(*bpe, p->parts_.byte_level, std::move(p->parts_.merger));
        }
      });
  if (!p->fast_ && !p->added_.SearchesNormalized()) {
    p->fused_ = p->parts_.fused
                    ? std::move(p->parts_.fused)
                    : FusedEncoder::Make(p->parts_.normalizer.get(), p->parts_.pre_tokenizer.get(),
                                         *p->parts_.model);
  }
  p->parts_.fused.reset();
  if (p->parts_.post_processor) {
    p->frame_ = p->parts_.post_processor->FrameOfSingle();
    p->adds_special_tokens_ = p->parts_.post_processor->AddedTokens(false) > 0;
  } else {
    p->frame_.known = true;
  }
  p->EncodeFirstText();
  return std::unique_ptr<const Pipeline>(std::move(p));
}

void Pipeline::EncodeFirstText() const {
  std::vector<TokenId> ids;
  // Whether it can be encoded does not matter.
  AppendIds(kFirstText, /*parse_special=*/true, &ids).IgnoreError();
}

void Pipeline::FillDecodeTable(TokenId size) {
  const Vocabulary& vocabulary = parts_.model->vocabulary();
  decode_ = parts_.decode ? *std::move(parts_.decode) : DecodeTable(parts_.decode_plan, vocabulary);
  parts_.decode.reset();
  decode_.Resize(size);
  for (const std::string& text : added_.special_texts()) {
    vocabulary.ForEachIdOf(text, [this](TokenId id) { decode_.MarkSpecial(id); });
  }
  for (const auto& [id, entry] : added_.entries()) {
    decode_.Add(parts_.decode_plan, id, entry.text, added_.IsSpecialText(entry.text));
  }
}

Status Pipeline::AddCall(std::vector<AddedToken> tokens) {
  const Vocabulary& vocabulary = parts_.model->vocabulary();
  added_.BeginCall(vocabulary.size());
  for (AddedToken& token : tokens) {
    std::string normalized = token.content;
    if (token.normalized && parts_.normalizer && !token.content.empty()) {
      NormalizedString text(token.content);
      PORTICO_RETURN_IF_ERROR(parts_.normalizer->Apply(&text));
      normalized = text.text();
    }
    std::optional<TokenId> known = vocabulary.Find(token.content);
    added_.Add(std::move(token), known, std::move(normalized));
  }
  return OkStatus();
}

Status Pipeline::AddTokens() {
  PORTICO_RETURN_IF_ERROR(AddCall(std::move(parts_.added_tokens)));
  for (std::vector<AddedToken>& call : parts_.more_added_tokens) {
    PORTICO_RETURN_IF_ERROR(AddCall(std::move(call)));
  }
  parts_.added_tokens.clear();
  parts_.more_added_tokens.clear();
  const Vocabulary& vocabulary = parts_.model->vocabulary();
  for (const auto& [id, entry] : added_.entries()) {
    std::string_view spelling = vocabulary.Spelling(id);
    ids_tell_added_ = ids_tell_added_ && (spelling.empty() || spelling == entry.token.content);
  }
  return added_.Seal();
}

StatusOr<Pieces> Pipeline::Cut(std::string_view text, bool parse_special) const {
  Pieces raw;
  std::vector<AddedTokens::Part> found;
  NormalizedString whole(text);
  added_.Split(text, /*normalized=*/false, parse_special, &found);
  for (const AddedTokens::Part& part : found) {
    raw.push_back({whole.Slice(part.begin, part.end), part.id});
  }
  Pieces pieces;
  for (Piece& piece : raw) {
    if (piece.added) {
      pieces.push_back(std::move(piece));
      continue;
    }
    if (parts_.normalizer) PORTICO_RETURN_IF_ERROR(parts_.normalizer->Apply(&piece.text));
    found.clear();
    added_.Split(piece.text.text(), /*normalized=*/true, parse_special, &found);
    for (const AddedTokens::Part& part : found) {
      if (part.begin == part.end) continue;
      pieces.push_back({piece.text.Slice(part.begin, part.end), part.id});
    }
  }
  if (parts_.pre_tokenizer) PORTICO_RETURN_IF_ERROR(parts_.pre_tokenizer->Apply(&pieces));
  return pieces;
}

StatusOr<Encoding> Pipeline::EncodeSequence(std::string_view text, uint32_t type_id,
                                            bool parse_special) const {
  Encoding out;
  if (MayPlace() && EncodeSequenceFused(text, type_id, parse_special, &out)) return out;
  out = Encoding();
  CharOffsets chars(text);
  std::vector<Token> tokens;
  int32_t word = 0;
  PORTICO_ASSIGN_OR_RETURN(const Pieces pieces, Cut(text, parse_special));
  for (const Piece& piece : pieces) {
    const std::string& s = piece.text.text();
    if (piece.added) {
      AppendToken(*piece.added, s, piece.text.ToOriginal(0, s.size()), chars, type_id, word, &out);
    } else {
      tokens.clear();
      PORTICO_RETURN_IF_ERROR(parts_.model->Tokenize(s, &tokens));
      for (const Token& t : tokens) {
        AppendToken(t.id, parts_.model->TokenText(s, t), piece.text.ToOriginal(t.begin, t.end),
                    chars, type_id, word, &out);
      }
    }
    ++word;
  }
  return out;
}

StatusOr<Encoding> Pipeline::PostProcess(Encoding first, std::optional<Encoding> second,
                                         const Tokenizer::EncodeOptions& options) const {
  bool pair = second.has_value();
  const PostProcessor* processor = parts_.post_processor.get();
  if (const Truncation* truncation = TruncationOf(options)) {
    uint64_t max = truncation->max_length;
    uint64_t added = processor ? processor->AddedTokens(pair) : 0;
    if (options.add_special_tokens) max -= std::min(max, added);
    PORTICO_RETURN_IF_ERROR(TruncatePair(&first, pair ? &*second : nullptr, *truncation, max));
  }
  std::vector<Encoding> encodings;
  encodings.push_back(std::move(first));
  if (pair) encodings.push_back(*std::move(second));
  for (size_t i = 0; i < encodings.size(); ++i) {
    Encoding& e = encodings[i];
    if (!processor && !pair) break;
    SetSequence(static_cast<int32_t>(i), &e);
    if (!processor) continue;
    for (Encoding& part : e.overflowing) SetSequence(static_cast<int32_t>(i), &part);
    e.type_ids.assign(e.size(), static_cast<uint32_t>(i));
  }
  if (processor) processor->Apply(options.add_special_tokens, &encodings);
  Encoding out;
  for (Encoding& e : encodings) MergeInto(&out, std::move(e));
  if (const Padding* padding = PaddingOf(options)) Pad(&out, *padding, out.size());
  FillSequenceIds(&out);
  return out;
}

StatusOr<Encoding> Pipeline::EncodeFull(std::string_view text, const std::string_view* pair,
                                        const Tokenizer::EncodeOptions& options) const {
  PORTICO_ASSIGN_OR_RETURN(Encoding first, EncodeSequence(text, 0, options.parse_special));
  std::optional<Encoding> second;
  if (pair != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(second, EncodeSequence(*pair, 1, options.parse_special));
  }
  return PostProcess(std::move(first), std::move(second), options);
}

Status Pipeline::AppendIdsGeneral(std::string_view text, bool parse_special,
                                  std::vector<TokenId>* ids) const {
  std::vector<Token> tokens;
  PORTICO_ASSIGN_OR_RETURN(const Pieces pieces, Cut(text, parse_special));
  for (const Piece& piece : pieces) {
    if (piece.added) {
      ids->push_back(*piece.added);
      continue;
    }
    tokens.clear();
    PORTICO_RETURN_IF_ERROR(parts_.model->Tokenize(piece.text.text(), &tokens));
    for (const Token& t : tokens) ids->push_back(t.id);
  }
  return OkStatus();
}

Status Pipeline::AppendIds(std::string_view text, bool parse_special,
                           std::vector<TokenId>* ids) const {
  if (fused_ && AppendIdsFused(text, parse_special, ids)) return OkStatus();
  if (!fast_ || (parts_.normalizer && !parts_.nfc_only)) {
    return AppendIdsGeneral(text, parse_special, ids);
  }
  std::vector<AddedTokens::Part> raw;
  std::vector<AddedTokens::Part> inner;
  added_.Split(text, /*normalized=*/false, parse_special, &raw);
  for (const AddedTokens::Part& part : raw) {
    if (part.id) {
      ids->push_back(*part.id);
      continue;
    }
    std::string_view piece = text.substr(part.begin, part.end - part.begin);
    std::string normalized;
    if (parts_.nfc_only && !IsSurelyNfc(piece)) {
      normalized = ToNfc(piece);
      piece = normalized;
    }
    if (!added_.SearchesNormalized()) {
      fast_->Encode(piece, ids);
      continue;
    }
    inner.clear();
    added_.Split(piece, /*normalized=*/true, parse_special, &inner);
    for (const AddedTokens::Part& p : inner) {
      if (p.id) {
        ids->push_back(*p.id);
      } else {
        fast_->Encode(piece.substr(p.begin, p.end - p.begin), ids);
      }
    }
  }
  return OkStatus();
}

Status Pipeline::EncodeIds(std::string_view text, const Tokenizer::EncodeOptions& options,
                           std::vector<TokenId>* ids) const {
  bool limits = TruncationOf(options) != nullptr || PaddingOf(options) != nullptr;
  if (limits || !frame_.known) {
    PORTICO_ASSIGN_OR_RETURN(Encoding whole, EncodeFull(text, nullptr, options));
    ids->insert(ids->end(), whole.ids.begin(), whole.ids.end());
    return OkStatus();
  }
  size_t before = ids->size();
  if (options.add_special_tokens) {
    ids->insert(ids->end(), frame_.before.begin(), frame_.before.end());
  }
  if (Status status = AppendIds(text, options.parse_special, ids); !status.ok()) {
    ids->resize(before);
    return status;
  }
  if (options.add_special_tokens) {
    ids->insert(ids->end(), frame_.after.begin(), frame_.after.end());
  }
  return OkStatus();
}

const Truncation* Pipeline::TruncationOf(const Tokenizer::EncodeOptions& options) const {
  if (!options.truncation_and_padding) return nullptr;
  const auto& rule = options.truncation ? *options.truncation : parts_.truncation;
  return rule ? &*rule : nullptr;
}

const Padding* Pipeline::PaddingOf(const Tokenizer::EncodeOptions& options) const {
  if (!options.truncation_and_padding) return nullptr;
  const auto& rule = options.padding ? *options.padding : parts_.padding;
  return rule ? &*rule : nullptr;
}

std::string Pipeline::DecodeGeneral(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (TokenId id : ids) {
    if (!decode_.Shows(id, skip_special_tokens)) continue;
    const std::string* added = added_.TextOf(id);
    tokens.emplace_back(added ? std::string_view(*added) : parts_.model->vocabulary().Spelling(id));
  }
  bool join = !parts_.decoder;
  if (parts_.decoder && !tokens.empty()) parts_.decoder->Apply(&tokens);
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (join && i > 0) out.push_back(' ');
    out.append(tokens[i]);
  }
  return out;
}

std::string Pipeline::Decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  switch (parts_.decode_plan.kind) {
    case DecodePlan::Kind::kGeneral:
      return DecodeGeneral(ids, skip_special_tokens);
    case DecodePlan::Kind::kTokenwise:
      return DecodeTokenwise(ids, skip_special_tokens);
    default:
      return DecodePlanned(parts_.decode_plan, decode_, ids, skip_special_tokens);
  }
}

std::string Pipeline::DecodeTokenwise(std::span<const TokenId> ids,
                                      bool skip_special_tokens) const {
  while (!ids.empty() && !decode_.Shows(ids.front(), skip_special_tokens)) ids = ids.subspan(1);
  if (ids.empty()) return {};
  std::string out = DecodeGeneral(ids.first(1), skip_special_tokens);
  out.reserve(ids.size() * 4);
  for (TokenId id : ids.subspan(1)) {
    if (decode_.Shows(id, skip_special_tokens)) out.append(decode_.Bytes(decode_.At(id)));
  }
  return out;
}

std::optional<TokenId> Pipeline::TokenToId(std::string_view token) const {
  if (std::optional<TokenId> id = added_.Find(token)) return id;
  return parts_.model->vocabulary().Find(token);
}

std::string_view Pipeline::IdToToken(TokenId id) const {
  if (auto it = added_.entries().find(id); it != added_.entries().end()) {
    return it->second.token.content;
  }
  return parts_.model->vocabulary().Spelling(id);
}

std::string Pipeline::Describe() const {
  std::string out = parts_.description.empty() ? "tokenizer.json" : parts_.description;
  out += "; " + std::string(parts_.model->Name()) + " model of " +
         std::to_string(parts_.model->vocabulary().size()) + " tokens, " +
         std::to_string(added_.size()) + " added tokens, ids below " + std::to_string(vocab_size());
  out += "; ";
  out += fast_ ? "fused byte-level path" : fused_ ? fused_->Name() : "general path";
  return out;
}

}  // namespace portico::tokenizer
