// A constraint as engines here apply it: a compiled grammar, and one choice's place in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "grammar/mask/compiled_grammar.h"
#include "message/constraint.h"

namespace portico {

class GrammarConstraint final : public CompiledConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<const grammar::CompiledGrammar> compiled)
      : grammar_(std::move(compiled)) {}
  const std::shared_ptr<const grammar::CompiledGrammar>& compiled() const { return grammar_; }

 private:
  std::shared_ptr<const grammar::CompiledGrammar> grammar_;
};

// Tokens of one row that may be drawn: bit i of the words, lowest bit first. Empty: all. Tokens behind the last word may not.
using TokenMask = std::span<const uint32_t>;

inline bool Allows(TokenMask mask, TokenId token) {
  const auto word = static_cast<size_t>(token) / 32;
  return mask.empty() || (word < mask.size() && (mask[word] >> (token % 32) & 1) != 0);
}

// Of one choice. Used by one thread at a time.
class ConstraintState {
 public:
  // The constraint is compiled, unless it is kReasoning.
  explicit ConstraintState(const Constraint& constraint);

  // Fills the mask for the next token, unless that has been done; long enough to be done beside the forward pass.
  void Prepare();
  // Of the next token; while the model thinks, all but those that end the answer. The first one may be the one that begins reasoning.
  TokenMask mask();
  // No token may follow, or it is too_slow(): the grammar is at fault.
  bool stuck();
  // A mask or a token took more work than it may: no mask comes any more, and no token is accepted.
  bool too_slow() const { return matcher_ && matcher_->too_slow(); }
  // The token has been drawn. False: the grammar does not allow it, or it is too_slow().
  bool Accept(TokenId token);
  // The grammar has ended with the last token.
  bool finished() const { return finished_; }

 private:
  std::vector<TokenId> stops_;  // of the grammar: reasoning in front of it cannot end the answer
  // A constraint of the reasoning alone has no grammar.
  std::optional<grammar::Matcher> matcher_;
  std::vector<uint32_t> mask_;
  TokenId think_start_;
  TokenId think_end_;
  bool thinking_;
  bool may_think_;         // the next token may begin reasoning
  int32_t thinking_left_;  // tokens of reasoning; negative: no bound
  bool prepared_ = false;
  bool free_ = false;  // while prepared: every token may come
  bool stuck_ = false;
  bool finished_ = false;
};

}  // namespace portico
