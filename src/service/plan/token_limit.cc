#include "service/plan/token_limit.h"

#include <fmt/format.h>

#include <string>

#include "message/embedding_request.h"
#include "service/plan/plan.h"
#include "tokenizer/pipeline.h"

namespace portico {
namespace {

constexpr std::string_view kTruncateField = "truncate_prompt_tokens";

}  // namespace

StatusOr<TokenLimit> TokenLimit::Of(const EngineInfo& engine, std::optional<int32_t> truncate) {
  TokenLimit limit;
  limit.vocab_size_ = engine.vocab_size;
  limit.cuts_ = truncate.has_value();
  limit.tokens_ = static_cast<size_t>(engine.context_length);
  if (!truncate || *truncate == kTruncateToLimit) return limit;
  if (*truncate > engine.context_length) {
    return InvalidArgument(kTruncateField,
                           fmt::format("{} must be -1 (what the model takes) or in 1 to {}, got {}",
                                       kTruncateField, engine.context_length, *truncate));
  }
  limit.tokens_ = static_cast<size_t>(*truncate);
  return limit;
}

Status TokenLimit::Check(const std::vector<TokenId>& ids, std::string_view field,
                         std::string_view place) const {
  if (ids.empty()) return InvalidArgument(field, std::string(place) + " gives no tokens");
  if (const Status known = CheckIds(ids, vocab_size_, place); !known.ok()) {
    return InvalidArgument(field, std::string(MessageOf(known)));
  }
  if (ids.size() <= tokens_) return OkStatus();
  if (cuts_) {
    return InvalidArgument(kTruncateField,
                           fmt::format("{} must leave room for {} special tokens, got {}",
                                       kTruncateField, ids.size(), tokens_));
  }
  return ContextExceeded(
      field, fmt::format("{} has {} tokens and the model takes at most {}; with {}: -1 it is cut",
                         place, ids.size(), tokens_, kTruncateField));
}

TokenLimit::Options::Options(const Tokenizer& tokenizer, const TokenLimit& limit)
    : truncation_(tokenizer.pipeline().parts().truncation) {
  if (!truncation_) truncation_.emplace();
  truncation_->max_length = limit.tokens();
  truncation_->stride = 0;
  options_.truncation_and_padding = true;
  options_.truncation = &truncation_;
  options_.padding = &no_padding_;
}

}  // namespace portico
