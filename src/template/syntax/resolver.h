// Gives every name its slot and every scope its loads, checks what Jinja checks when it compiles, folds constants.
#pragma once

#include "template/syntax/program.h"

namespace portico::jinja {

// Throws Failure with INVALID_ARGUMENT. `program->body` is parsed.
void Resolve(Program* program);

}  // namespace portico::jinja
