// A tokenization model: one piece of text to tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/model/vocabulary.h"

namespace portico::tokenizer {

// A token of a piece; [begin, end) are bytes of the piece.
struct Token {
  TokenId id;
  uint32_t begin;
  uint32_t end;
};

// Immutable, safe to use from many threads.
class Model {
 public:
  virtual ~Model() = default;

  // Appends the tokens of `piece`, valid UTF-8 and not empty.
  virtual Status Tokenize(std::string_view piece, std::vector<Token>* out) const = 0;
  // The spelling that an encoding shows for a token: the vocabulary's, but for the unknown token of some models.
  virtual std::string TokenText(std::string_view piece, const Token& token) const;
  virtual std::string_view Name() const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  Vocabulary vocabulary_;
};

}  // namespace portico::tokenizer
