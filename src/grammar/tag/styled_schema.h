// Schemas in a style other than JSON's (qwen_xml, glm_xml …): the library writes their grammars itself, and drops what it cannot
// express without a word.
#pragma once

#include "base/status.h"
#include "text/json.h"

namespace portico::grammar {

// Whether the library enforces all that the schema says: one type or several with their own keywords, references, enumerations,
// anyOf and an allOf of one schema, each without siblings that say more. Keywords of types that the schema does not allow, and
// those that JSON Schema does not define, say nothing. INVALID_ARGUMENT without a field: "#/pointer: keyword: why". Requires a
// schema that JsonSchemaToEbnf() takes.
Status CheckStyledSchema(Json schema);

}  // namespace portico::grammar
