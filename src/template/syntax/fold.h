// Constants worked out once, where that cannot change what a template does.
#pragma once

#include "template/syntax/nodes.h"
#include "template/value/arena.h"

namespace portico::jinja {

// The node, or a constant in its place: negative numbers, joined strings, lists, tuples and dicts of constants.
Expr* Fold(Expr* expr, Arena* arena);

// Neighbouring texts and constant strings as one.
std::span<OutputItem> MergeText(std::span<OutputItem> items, Arena* arena);

}  // namespace portico::jinja
