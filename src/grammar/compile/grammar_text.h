// What a client says an answer must look like, and how it becomes a compiled grammar. Everything here takes as long and as much
// memory as it takes: compile_process.h bounds both.
#pragma once

#include <string>

#include "base/status.h"
#include "grammar/compile/vocabulary.h"

namespace xgrammar {
class CompiledGrammar;
class TokenizerInfo;
}  // namespace xgrammar

namespace portico::grammar {

enum class GrammarKind : uint8_t {
  kJsonSchema,
  kJsonObject,     // `text` is empty
  kRegex,          // the whole answer matches it
  kEbnf,           // GBNF with the rule `root`; without any `::=` Lark with the rule `start`
  kStructuralTag,  // JSON; both forms
  kChoice,         // a JSON array of strings
};

struct GrammarText {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
  bool closed_objects = false;  // of schemas: SchemaOptions
  bool compact = false;

  // Names it and its options.
  std::string Key() const;
};

// Whether all that it describes is JSON, and text that is fixed.
bool IsJson(const GrammarText& text);

// The library's view of a vocabulary. Throws what it throws.
xgrammar::TokenizerInfo MakeTokenizerInfo(const Vocabulary& vocabulary);

// INVALID_ARGUMENT without a field: it is malformed, allows nothing, or cannot be enforced.
StatusOr<xgrammar::CompiledGrammar> CompileText(const GrammarText& text,
                                                const Vocabulary& vocabulary,
                                                const xgrammar::TokenizerInfo& tokens);

}  // namespace portico::grammar
