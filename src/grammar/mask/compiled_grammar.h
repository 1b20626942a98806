// A grammar compiled for one vocabulary, and where an answer stands in it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/token_id.h"

namespace portico::grammar {

class CompiledGrammarImpl;
struct TokenTable;

// Words of a mask for so many tokens.
constexpr size_t MaskWords(size_t tokens) { return (tokens + 31) / 32; }

// Immutable and thread safe.
class CompiledGrammar {
 public:
  // `serialized` is what CompileProcess::Compile() gave for the vocabulary of `tokens`. INTERNAL: it is not.
  static StatusOr<std::shared_ptr<const CompiledGrammar>> Read(
      std::string_view serialized, std::shared_ptr<const TokenTable> tokens);
  ~CompiledGrammar();
  CompiledGrammar(const CompiledGrammar&) = delete;
  CompiledGrammar& operator=(const CompiledGrammar&) = delete;

  size_t bytes() const { return bytes_; }
  int32_t vocab_size() const;
  // That end an answer where the grammar may end.
  const std::vector<TokenId>& stops() const;
  const CompiledGrammarImpl& impl() const { return *impl_; }

 private:
  CompiledGrammar();

  std::unique_ptr<CompiledGrammarImpl> impl_;
  size_t bytes_ = 0;
};

// What the library may do for one mask, or to accept one token: states, parents and edges looked at, of which each takes a few ns. It
// depends on the grammar, the vocabulary and the answer alone.
inline constexpr int64_t kMaxMaskWork = int64_t{1} << 26;

// One answer's way through a grammar. Used by one thread at a time, not always the same. The constructor does little; what begins the
// grammar is done with the first mask or token.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar, int64_t max_work = kMaxMaskWork);
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Sets one bit for each token that may come next, lowest bit of the first word first; `mask` has MaskWords(vocab_size())
  // words. False: none may, or too_slow(); both are errors of the grammar.
  bool FillMask(std::span<uint32_t> mask);
  // The token has been drawn. False: it was not allowed, and the matcher stands where it stood; or too_slow().
  bool Accept(TokenId token);
  // A mask or a token took more work than it may. No call of FillMask() or Accept() succeeds any more.
  bool too_slow() const { return too_slow_; }
  // A stop token has been accepted.
  bool finished() const;
  // The answer may end here.
  bool complete();

 private:
  struct State;

  // What `call` returns of the state; false where it throws.
  template <typename Call>
  bool WithState(Call call);

  std::shared_ptr<const CompiledGrammar> grammar_;
  const int64_t max_work_;
  std::unique_ptr<State> state_;  // null before the first call, and once it is too slow
  bool too_slow_ = false;
};

}  // namespace portico::grammar
