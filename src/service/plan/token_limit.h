// Which token ids a model takes for a text: known ones, and how many; and what becomes of a longer text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "tokenizer/encoding_ops.h"
#include "tokenizer/tokenizer.h"

namespace portico {

class TokenLimit {
 public:
  // `truncate`: EmbeddingRequest's. INVALID_ARGUMENT (field "truncate_prompt_tokens") for more than the model takes.
  static StatusOr<TokenLimit> Of(const EngineInfo& engine, std::optional<int32_t> truncate);

  size_t tokens() const { return tokens_; }
  // Longer texts are cut; else they are refused.
  bool cuts() const { return cuts_; }

  // INVALID_ARGUMENT (field `field`): no ids, an unknown one, or too many (with both numbers). `place` is where the
  // text stands, for a person.
  Status Check(const std::vector<TokenId>& ids, std::string_view field,
               std::string_view place) const;

  // Cuts as the tokenizer's file says, else at the end, and of a pair the longer one first: the special tokens
  // around the text stay.
  class Options {
   public:
    Options(const Tokenizer& tokenizer, const TokenLimit& limit);
    Options(const Options&) = delete;
    Options& operator=(const Options&) = delete;
    const Tokenizer::EncodeOptions& get() const { return options_; }
    bool left() const { return truncation_->left; }

   private:
    std::optional<tokenizer::Truncation> truncation_;
    std::optional<tokenizer::Padding> no_padding_;
    Tokenizer::EncodeOptions options_;
  };

 private:
  int32_t vocab_size_ = 0;
  size_t tokens_ = 0;
  bool cuts_ = false;
};

}  // namespace portico
