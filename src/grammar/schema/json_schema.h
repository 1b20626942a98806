// JSON Schema (draft 2020-12, and what earlier drafts spell otherwise) as a grammar that allows no value which the schema
// forbids. docs/structured_output.md has the table of what is expressed, narrowed and refused.
//
// A part of the grammar stands for a set of schemas that hold at once: those of allOf, of references, and the siblings of both.
// anyOf, oneOf, if and their like are choices between larger sets. What a keyword says of a type holds for that type only, and
// what can never match is cut out in the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::grammar {

struct SchemaOptions {
  size_t max_bytes = 256 << 10;
  size_t max_depth = 64;  // of schemas in schemas: members, items, branches
  int32_t max_rules = 20000;
  int32_t max_branches = 2000;  // of all choices between schemas
  // Objects whose schema says nothing of other properties have none (OpenAI's strict mode asks for schemas that say so).
  bool closed_objects = false;
  // Nothing between JSON's tokens.
  bool compact = false;
  // Strings have `<` as \u003c only, so that nothing in them looks like a tag.
  bool escape_less = false;

  // Of the schema's text: a member of an object is two levels of JSON further in, constants have levels of their own.
  size_t max_json_depth() const { return 2 * max_depth + 64; }
};

// EBNF as xgrammar reads it, with the rule `root`. INVALID_ARGUMENT without a field: the text is no schema, is too big, allows
// nothing, or has a keyword that no grammar enforces; then it says "#/pointer: keyword: why".
StatusOr<std::string> JsonSchemaToEbnf(std::string_view schema, const SchemaOptions& options);

}  // namespace portico::grammar
