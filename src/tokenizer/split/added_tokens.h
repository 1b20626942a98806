// Tokens that a file adds to its model's vocabulary, and how they are found in a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "tokenizer/model/byte_trie.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

struct AddedToken {
  std::string content;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = true;
  bool special = false;
  std::optional<TokenId> id;  // where the file's own id counts; tokenizer.json's does not
  std::string source;         // what names it, for a person; empty: the file of the vocabulary
  // Whether they are found and shown alike.
  friend bool operator==(const AddedToken& a, const AddedToken& b) {
    return a.content == b.content && a.single_word == b.single_word && a.lstrip == b.lstrip &&
           a.rstrip == b.rstrip && a.normalized == b.normalized && a.special == b.special;
  }
};

// Leftmost-longest search for a set of words. The time is that of the text's length times the longest word's.
class WordFinder {
 public:
  struct Found {
    size_t begin;
    size_t end;
    TokenId id;
  };

  // Of a word that is there already the first id stays. False for an empty word, or too many of them.
  bool Add(std::string_view word, TokenId id);
  bool empty() const { return count_ == 0; }
  // The first word at or behind `from`. `*looked` becomes the end of what decided it, if that is further.
  std::optional<Found> Find(std::string_view text, size_t from, size_t* looked) const;

 private:
  size_t NextCandidate(std::string_view text, size_t from) const;

  ByteTrie trie_;
  size_t count_ = 0;
  size_t first_bytes_ = 0;
  bool is_first_[256] = {};
  unsigned char only_first_ = 0;  // the byte that all words begin with, if first_bytes_ is 1
  std::vector<bool> is_pair_ = std::vector<bool>(65536);  // the first two bytes of a word
  bool has_single_ = false;                               // a word of one byte
};

// Filled while loading, then read by any thread.
class AddedTokens {
 public:
  // Before the tokens of one call of the reference's add_tokens(): the next one free is then behind the model's and
  // behind all that were added before.
  void BeginCall(size_t model_size);
  // The id of a token: its own if it is added already, else the model's, else the next one free.
  // `normalized` is its content in normal form.
  void Add(AddedToken token, std::optional<TokenId> model_id, std::string normalized);
  // Builds the search. Of tokens that look the same once they are normalized a special one is found, then the one with
  // the least id; the reference finds now the one, now the other. INVALID_ARGUMENT where nothing is left of a token.
  Status Seal();

  struct Part {
    size_t begin;
    size_t end;
    std::optional<TokenId> id;
  };
  // Covers `text` with tokens and the parts between them. `normalized`: search for the tokens that match normalized
  // text, else for the others. Without `parse_special`, special tokens stay plain text.
  void Split(std::string_view text, bool normalized, bool parse_special,
             std::vector<Part>* out) const;
  // The same, one part after the other: a long text may have a part for every byte or two.
  void ForEachPart(std::string_view text, bool normalized, bool parse_special,
                   absl::FunctionRef<void(const Part&)> take) const;
  // Whether a raw text's tokens are found by nothing but their words, special ones too: none takes spaces or must stand
  // alone. Then FindRaw() from the end of one to the next does as Split().
  bool AreRawWords() const { return are_raw_words_ && SearchesRaw(); }
  std::optional<WordFinder::Found> FindRaw(std::string_view text, size_t from,
                                           size_t* looked) const {
    return raw_finder_.Find(text, from, looked);
  }
  bool SearchesNormalized() const { return !normalized_finder_.empty(); }
  bool SearchesRaw() const { return !raw_finder_.empty(); }

  std::optional<TokenId> Find(std::string_view content) const;
  // What a decode takes for this id, or null if it is not an added token.
  const std::string* TextOf(TokenId id) const;
  // True for texts that a decode leaves out with skip_special_tokens.
  bool IsSpecialText(std::string_view text) const {
    return !text.empty() && special_first_[static_cast<unsigned char>(text[0])] &&
           specials_.contains(std::string(text));
  }
  const std::unordered_set<std::string>& special_texts() const { return specials_; }
  TokenId max_id() const { return max_id_; }
  size_t size() const { return by_id_.size(); }

  struct Entry {
    AddedToken token;
    // What a decode takes: its normal form, or the one that it had under earlier flags.
    std::string text;
  };
  const std::unordered_map<TokenId, Entry>& entries() const { return by_id_; }

 private:
  std::unordered_map<std::string, TokenId> by_content_;
  std::unordered_map<TokenId, Entry> by_id_;
  std::unordered_set<std::string> specials_;
  bool special_first_[256] = {};  // by first byte: every token of a vocabulary is looked up
  bool are_raw_words_ = true;
  WordFinder raw_finder_;
  WordFinder normalized_finder_;
  TokenId next_id_ = -1;
  TokenId max_id_ = -1;
};

}  // namespace portico::tokenizer
