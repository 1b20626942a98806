// Byte pair encoding, with the options of tokenizer.json.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/merge/merge_table.h"
#include "tokenizer/merge/pair_merges.h"
#include "tokenizer/model/model.h"

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
  // With the merges in their other form.
  Bpe(Vocabulary vocabulary, std::unique_ptr<const PairMerges> pairs, BpeOptions options);

  Status Tokenize(std::string_view piece, std::vector<Token>* out) const override;
  std::string_view Name() const override { return "BPE"; }

  const BpeOptions& options() const { return options_; }
  // The merges, laid out for look-ups; null where they do not fit that. Made by the first call.
  const PairMerges* pairs() const;
  // As they were given; nothing where that was pairs().
  const MergeTable& merges() const { return merges_; }

  Merge FindMerge(TokenId left, TokenId right) const {
    if (!merges_.empty()) return merges_.Get(left, right);
    return pairs_ ? pairs_->Find(left, right) : Merge{};
  }
  // Calls `visit(left, right, merge)` for each, in no order.
  template <typename Visit>
  void ForEachMerge(Visit visit) const {
    if (!merges_.empty()) {
      merges_.ForEach(visit);
    } else if (pairs_) {
      pairs_->ForEach(visit);
    }
  }
  // As MergeSymbols() below, by whichever form is there.
  void MergeAll(std::vector<Token>* symbols) const;

 private:
  Status Symbols(std::string_view piece, std::vector<Token>* out) const;
  bool AppendBytes(std::string_view symbol, uint32_t at, std::vector<Token>* out) const;

  void FindSpecials();

  MergeTable merges_;
  mutable std::once_flag pairs_once_;
  mutable std::unique_ptr<const PairMerges> pairs_;
  BpeOptions options_;
  std::optional<TokenId> unk_id_;
  std::vector<TokenId> byte_ids_;  // of <0x00> … <0xFF>, -1 where it has none
};

// Merges `symbols` until no pair is left that merges: the lowest rank first, of equal ones the leftmost.
void MergeSymbols(const MergeTable& merges, std::vector<Token>* symbols);

}  // namespace portico::tokenizer
