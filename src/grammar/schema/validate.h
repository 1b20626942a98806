// Whether one value satisfies a schema: for `enum` and `const`, whose values are few and known.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/schema/document.h"
#include "text/json.h"

namespace portico::grammar {

// INVALID_ARGUMENT naming pointer and keyword: malformed, or beyond what can be decided here.
StatusOr<bool> Satisfies(const SchemaDocument& document, const Json* schema, const Json& value,
                         int depth = 0);

// Whether the pattern is found in the text. UNIMPLEMENTED: it cannot be decided.
StatusOr<bool> MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace portico::grammar
