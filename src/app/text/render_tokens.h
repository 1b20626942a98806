// What apply_chat_template does with the rendered text: ids, assistant masks, control tokens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "template/template.h"
#include "text/json.h"
#include "tokenizer/load/tokenizer_config.h"
#include "tokenizer/tokenizer.h"

namespace portico {

struct RenderedTokens {
  std::vector<TokenId> ids;
  std::vector<int> assistant_mask;  // where spans were given
};

// `kwargs`: truncation, max_length, padding, split_special_tokens; or null. `spans`: code points of
// the assistant's text, or null.
StatusOr<RenderedTokens> TokenizeRendered(const Tokenizer& tokenizer, const TokenizerConfig& config,
                                          const std::string& text, const Json* kwargs,
                                          const std::vector<std::pair<size_t, size_t>>* spans);

// Control tokens that users write are encoded as plain text. Marks them in every string of `value`
// (object keys aside) so that EncodeMarked() can tell them from the template's own.
class ControlTokens {
 public:
  explicit ControlTokens(const Tokenizer& tokenizer);

  void Mark(Json* value) const;
  StatusOr<std::vector<TokenId>> EncodeMarked(const std::string& text) const;

 private:
  std::string MarkText(const std::string& text) const;
  // The token that begins at `at`, or empty; longer ones first.
  std::string_view TokenAt(std::string_view text, size_t at) const;
  Status EncodePiece(std::string_view piece, bool as_text, bool first,
                     std::vector<TokenId>* ids) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> tokens_;  // longest first
};

}  // namespace portico
