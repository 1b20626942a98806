// The tokens that end a model's answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "message/sampling.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// Those of a tokenizer: its eos_token, which may be empty, and <|eom_id|>, with which Llama's models end a turn that calls
// a tool, where the vocabulary has it. SGLang ends answers with them beside the model's own.
std::vector<TokenId> EndTokensOf(const Tokenizer& tokenizer, std::string_view eos_token);

// `ids` and those of `more` that are not among them yet; without ids that are not below `vocab_size`.
std::vector<TokenId> JoinEndTokens(std::vector<TokenId> ids, std::span<const TokenId> more,
                                   int32_t vocab_size);

// "<|im_end|> (3066), <|endoftext|> (3064)"; "no token" for none.
std::string SpellTokens(const Tokenizer& tokenizer, std::span<const TokenId> ids);

}  // namespace portico
