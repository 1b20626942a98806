// A model's tokens as grammars see them: the bytes that each adds to the answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace portico::grammar {

struct Vocabulary {
  std::vector<std::string> texts;  // by id; "" for ids that stand for nothing
  // Special tokens, whose texts begin with the byte 0xFF, which no grammar's text can match: only a structural tag that
  // names the token itself allows it.
  std::vector<TokenId> special;
  std::vector<TokenId> stops;  // end the answer where the grammar may end
};

// `size`: of the model's rows of logits, at least the tokenizer's.
Vocabulary MakeVocabulary(const Tokenizer& tokenizer, int32_t size, std::vector<TokenId> stops);

std::string Serialized(const Vocabulary& vocabulary);
// INVALID_ARGUMENT: not what Serialized() wrote.
StatusOr<Vocabulary> ReadVocabulary(std::string_view bytes);

}  // namespace portico::grammar
