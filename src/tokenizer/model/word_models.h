// The models that look words up: WordPiece (longest match first) and WordLevel (the whole piece).
#pragma once

#include <string>
#include <vector>

#include "tokenizer/model/model.h"

namespace portico::tokenizer {

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  uint64_t max_input_chars_per_word = 100;
};

class WordPiece : public Model {
 public:
  WordPiece(Vocabulary vocabulary, WordPieceOptions options);

  Status Tokenize(std::string_view piece, std::vector<Token>* out) const override;
  std::string_view Name() const override { return "WordPiece"; }
  const WordPieceOptions& options() const { return options_; }

 private:
  Status Unknown(std::string_view piece, std::vector<Token>* out) const;

  WordPieceOptions options_;
  size_t longest_ = 0;  // bytes of the longest spelling
};

class WordLevel : public Model {
 public:
  WordLevel(Vocabulary vocabulary, std::string unk_token);

  Status Tokenize(std::string_view piece, std::vector<Token>* out) const override;
  std::string TokenText(std::string_view piece, const Token& token) const override;
  std::string_view Name() const override { return "WordLevel"; }
  const std::string& unk_token() const { return unk_token_; }

 private:
  std::string unk_token_;
};

}  // namespace portico::tokenizer
