// What an answer must look like, as the client said it, and what was compiled from that.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "message/sampling.h"

namespace portico {

enum class ConstraintKind {
  kJsonSchema,     // `text` is a JSON Schema
  kJsonObject,     // any JSON object; `text` is empty
  kRegex,          // the whole answer matches
  kEbnf,           // GBNF as xgrammar reads it
  kStructuralTag,  // `text` is SGLang's structural_tag object
  kChoice,         // `text` is a JSON array of strings, of which the answer is one
  kReasoning,      // nothing but max_thinking_tokens; `text` is empty
};

// What a grammar library made of a constraint for one tokenizer. Opaque here, so that requests do not depend on the
// library; an engine that masks logits knows the derived class. Immutable and thread safe.
class CompiledConstraint {
 public:
  virtual ~CompiledConstraint() = default;

 protected:
  CompiledConstraint() = default;
};

// Immutable; shared between the choices of a request.
struct Constraint {
  ConstraintKind kind = ConstraintKind::kJsonSchema;
  std::string text;   // as the client sent it, for engines that compile it themselves
  std::string field;  // the request's field that it came in; named in errors
  bool closed =
      false;  // objects have no properties but those that a schema names, unless it says so itself
  bool compact = false;  // JSON without white space between its tokens
  // Null: not compiled here (EngineCapabilities::compiles_grammars).
  std::shared_ptr<const CompiledConstraint> compiled;
  // The constraint holds for what comes after this token, the end of the model's reasoning; -1: from the first token.
  TokenId think_end = -1;
  // With think_end: the answer begins outside reasoning, which is entered if this is its first token; -1: it begins inside.
  TokenId think_start = -1;
  // With think_end: after so many tokens of reasoning it comes; -1: whenever the model likes.
  int32_t max_thinking_tokens = -1;

  // Whether the answer begins inside reasoning. A remote engine would apply a grammar behind reasoning to nothing where the
  // answer may begin without: there the grammar begins with the answer.
  bool BeginsInReasoning() const { return think_end >= 0 && think_start < 0; }
};

}  // namespace portico
