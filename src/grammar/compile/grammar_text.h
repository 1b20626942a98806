// What a client says an answer must look like, and how it becomes a compiled grammar. Everything here takes as long and as much
// memory as it takes: compile_process.h bounds both.
#pragma once

#include <string>

#include "base/status.h"
#include "grammar/compile/vocabulary.h"
#include "grammar/mask/space_bound.h"

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

// What a text, and a schema in it, may be.
struct TextLimits {
  int64_t bytes = int64_t{256} << 10;
  int32_t depth = 64;       // of schemas
  int32_t branches = 2000;  // of all choices between schemas
  int32_t rules = 20000;    // of the grammar that a schema becomes
};

// What of its white space is bounded.
SpaceRule SpaceRuleOf(const GrammarText& text);

// The library's view of a vocabulary. Throws what it throws.
xgrammar::TokenizerInfo MakeTokenizerInfo(const Vocabulary& vocabulary);

// INVALID_ARGUMENT without a field: it is malformed, allows nothing, or cannot be enforced.
StatusOr<xgrammar::CompiledGrammar> CompileText(const GrammarText& text,
                                                const Vocabulary& vocabulary,
                                                const xgrammar::TokenizerInfo& tokens,
                                                const TextLimits& limits = {});

}  // namespace portico::grammar
