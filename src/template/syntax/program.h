// A parsed template: what the parser makes, the resolver completes and the interpreter runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "template/syntax/nodes.h"
#include "template/value/arena.h"

namespace portico::jinja {

struct Program {
  std::string source;  // newlines normalized; tokens point into it
  Arena arena;
  StmtList body;
  Function root;
  // Names that are looked up in the context, by id. The first ones are the globals' (globals.h).
  std::vector<std::string_view> context_names;
  std::vector<BlockStmt*> blocks;
  bool has_generation = false;
  size_t size_hint = 0;  // bytes of literal text
};

// Fills `program`, whose source is set. Throws Failure with INVALID_ARGUMENT.
void Compile(Program* program);

}  // namespace portico::jinja
