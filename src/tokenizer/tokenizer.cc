#include "tokenizer/tokenizer.h"

#include <utility>

#include "text/utf8.h"
#include "tokenizer/load/load.h"
#include "tokenizer/pipeline.h"

namespace portico {
namespace {

using tokenizer::Pipeline;
using tokenizer::PipelineParts;

StatusOr<std::shared_ptr<const Tokenizer>> Build(StatusOr<PipelineParts> parts) {
  if (!parts.ok()) return parts.status();
  PORTICO_ASSIGN_OR_RETURN(auto pipeline, Pipeline::Make(*std::move(parts)));
  return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(pipeline)));
}

// Valid UTF-8: the text itself, or a copy in `*copy`.
std::string_view Valid(std::string_view text, std::string* copy) {
  if (IsValidUtf8(text)) return text;
  *copy = ToValidUtf8(text);
  return *copy;
}

Status CheckLength(std::string_view text) {
  constexpr size_t kMaxText = size_t{1}
                              << 30;  // offsets are 32 bits, normalization may triple them
  if (text.size() <= kMaxText) return OkStatus();
  return Error(StatusCode::kResourceExhausted, "the text is longer than 1 GiB");
}

}  // namespace

StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Load(const std::string& path,
                                                           const TokenizerLoadOptions& options) {
  return Build(tokenizer::PartsFromPath(path, options));
}

StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::FromJson(std::string_view json) {
  return Build(tokenizer::PartsFromJson(json));
}

Tokenizer::Tokenizer(std::unique_ptr<const Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}
Tokenizer::~Tokenizer() = default;

void Tokenizer::Encode(std::string_view text, bool add_special_tokens,
                       std::vector<TokenId>* ids) const {
  TryEncode(text, add_special_tokens, ids).IgnoreError();
}

Status Tokenizer::TryEncode(std::string_view text, bool add_special_tokens,
                            std::vector<TokenId>* ids) const {
  EncodeOptions options;
  options.add_special_tokens = add_special_tokens;
  return EncodeWith(text, options, ids);
}

Status Tokenizer::EncodeWith(std::string_view text, const EncodeOptions& options,
                             std::vector<TokenId>* ids) const {
  PORTICO_RETURN_IF_ERROR(CheckLength(text));
  std::string copy;
  return pipeline_->EncodeIds(Valid(text, &copy), options, ids);
}

Status Tokenizer::EncodeOffsets(std::string_view text, const EncodeOptions& options,
                                OffsetUnit unit, std::vector<TokenId>* ids,
                                std::vector<Span>* offsets) const {
  PORTICO_RETURN_IF_ERROR(CheckLength(text));
  std::string copy;
  return pipeline_->EncodeOffsets(Valid(text, &copy), options, unit, ids, offsets);
}

StatusOr<Encoding> Tokenizer::EncodeFull(std::string_view text, const std::string_view* pair,
                                         const EncodeOptions& options) const {
  PORTICO_RETURN_IF_ERROR(CheckLength(text));
  std::string copy;
  if (pair == nullptr) return pipeline_->EncodeFull(Valid(text, &copy), nullptr, options);
  PORTICO_RETURN_IF_ERROR(CheckLength(*pair));
  std::string pair_copy;
  std::string_view second = Valid(*pair, &pair_copy);
  return pipeline_->EncodeFull(Valid(text, &copy), &second, options);
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  return pipeline_->Decode(ids, skip_special_tokens);
}

int32_t Tokenizer::vocab_size() const { return pipeline_->vocab_size(); }

std::optional<TokenId> Tokenizer::TokenToId(std::string_view token) const {
  return pipeline_->TokenToId(token);
}

std::string_view Tokenizer::IdToToken(TokenId id) const { return pipeline_->IdToToken(id); }

std::string Tokenizer::TokenBytes(TokenId id) const {
  const tokenizer::DecodeTable& table = pipeline_->decode_table();
  if (!table.Has(id)) return {};
  const auto kind = pipeline_->parts().decode_plan.kind;
  if (kind == tokenizer::DecodePlan::Kind::kGeneral ||
      kind == tokenizer::DecodePlan::Kind::kTokenwise) {
    return pipeline_->DecodeGeneral(std::span<const TokenId>(&id, 1), false);
  }
  return std::string(table.Bytes(table.At(id)));
}

bool Tokenizer::IsSpecial(TokenId id) const { return pipeline_->IsSpecial(id); }
bool Tokenizer::AddsSpecialTokens() const { return pipeline_->adds_special_tokens(); }
std::string Tokenizer::Describe() const { return pipeline_->Describe(); }

}  // namespace portico
