// Schemas in a style other than JSON's (qwen_xml, glm_xml …): the library writes their grammars itself, and drops what it cannot
// express without a word.
#pragma once

#include <string_view>

#include "base/status.h"

namespace portico::grammar {

// Whether the library enforces all that the schema says: one type or several with their own keywords, references, enumerations
// and anyOf, each without siblings that say more. INVALID_ARGUMENT without a field: "#/pointer: keyword: why". Requires a schema
// that JsonSchemaToEbnf() takes.
Status CheckStyledSchema(std::string_view schema);

}  // namespace portico::grammar
