// The Unigram model: of all ways to cut a piece into tokens, the most probable.
#pragma once

#include <optional>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/model/double_array.h"
#include "tokenizer/model/model.h"

namespace portico::tokenizer {

class Unigram : public Model {
 public:
  // scores[id] belongs to the token of that id; ids are 0 … n-1.
  static StatusOr<std::unique_ptr<const Model>> Make(Vocabulary vocabulary,
                                                     std::vector<double> scores,
                                                     std::optional<TokenId> unk_id,
                                                     bool byte_fallback);

  // As bytes, and back; nothing where the tokens are no list of ids from 0 on, or these are not such bytes. Any bytes are
  // safe. They are used where they lie, so they must outlive the model.
  bool Save(CompiledWriter* out) const;
  static std::unique_ptr<const Model> Restore(CompiledReader* in);

  Status Tokenize(std::string_view piece, std::vector<Token>* out) const override;
  std::string TokenText(std::string_view piece, const Token& token) const override;
  std::string_view Name() const override { return "Unigram"; }
  // Of unknown text; tokens of it show the text.
  std::optional<TokenId> unk_id() const { return unk_id_; }
  bool has_bytes() const { return has_bytes_; }

 private:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, std::optional<TokenId> unk_id,
          bool byte_fallback);
  bool IsList() const;
  void AppendPart(std::string_view piece, Token part, std::vector<Token>* out) const;

  std::vector<double> scores_;
  std::optional<TokenId> unk_id_;
  double unk_score_ = 0;
  bool has_bytes_ = false;         // every <0x00> … <0xFF> that there is stands in for unknown text
  std::vector<TokenId> byte_ids_;  // -1 where there is none
  DoubleArray trie_;
};

}  // namespace portico::tokenizer
