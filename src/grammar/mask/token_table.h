// The library's view of a vocabulary, shared by all grammars compiled for it.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/mask/space_bound.h"
#include "tokenizer/token_id.h"

namespace portico::grammar {

struct TokenTable {
  explicit TokenTable(xgrammar::TokenizerInfo of);

  // What the token says; special tokens begin with the byte 0xFF (Vocabulary).
  std::string_view TextOf(TokenId token) const {
    return tokens.GetDecodedVocab()[static_cast<size_t>(token)];
  }

  const xgrammar::TokenizerInfo tokens;
  std::vector<uint32_t> blank;  // a mask of the tokens that are white space and nothing else
  TokenId line_end = -1;        // the token of one line end, and of one space; -1 if there is none
  TokenId space = -1;
};

class CompiledGrammarImpl {
 public:
  xgrammar::CompiledGrammar grammar;
  std::shared_ptr<const TokenTable> tokens;
  SpaceRule space = SpaceRule::kFree;
};

}  // namespace portico::grammar
