// Byte pair encoding, with the options of tokenizer.json.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/model.h"

namespace portico::tokenizer {

struct BpeOptions {
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

class Bpe : public Model {
 public:
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options);

  Status Tokenize(std::string_view piece, std::vector<Token>* out) const override;
  std::string_view Name() const override { return "BPE"; }

  const MergeTable& merges() const { return merges_; }
  const BpeOptions& options() const { return options_; }

 private:
  Status Symbols(std::string_view piece, std::vector<Token>* out) const;
  bool AppendBytes(std::string_view symbol, uint32_t at, std::vector<Token>* out) const;

  MergeTable merges_;
  BpeOptions options_;
  std::optional<TokenId> unk_id_;
  std::vector<TokenId> byte_ids_;  // of <0x00> … <0xFF>, -1 where it has none
};

// Merges `symbols` until no pair is left that merges: the lowest rank first, of equal ones the leftmost.
void MergeSymbols(const MergeTable& merges, std::vector<Token>* symbols);

}  // namespace portico::tokenizer
