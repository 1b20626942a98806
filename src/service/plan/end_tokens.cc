#include "service/plan/end_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace portico {

std::vector<TokenId> EndTokensOf(const Tokenizer& tokenizer, std::string_view eos_token) {
  std::vector<TokenId> ids;
  for (std::string_view token : {eos_token, std::string_view("<|eom_id|>")}) {
    if (token.empty()) continue;
    const std::optional<TokenId> id = tokenizer.TokenToId(token);
    if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  }
  return ids;
}

std::vector<TokenId> JoinEndTokens(std::vector<TokenId> ids, std::span<const TokenId> more,
                                   int32_t vocab_size) {
  for (TokenId id : more) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  std::erase_if(ids, [&](TokenId id) { return id < 0 || id >= vocab_size; });
  return ids;
}

std::string SpellTokens(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  if (ids.empty()) return "no token";
  std::string text;
  for (TokenId id : ids) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} ({})", tokenizer.IdToToken(id), id);
  }
  return text;
}

}  // namespace portico
