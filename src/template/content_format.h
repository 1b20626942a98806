// Whether a template reads a message's content as a list of parts.
#pragma once

#include "template/syntax/program.h"

namespace portico::jinja {

// True where the template loops over `message.content` or `message['content']` (of any variable, also through
// filters, slices, another variable or a macro's parameter), as SGLang finds out.
bool LoopsOverContent(const Program& program);

}  // namespace portico::jinja
