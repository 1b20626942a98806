// What a schema says, for those who write its values in a form other than JSON.
#pragma once

#include <initializer_list>
#include <string_view>

#include "text/json.h"

namespace portico {

// Whether the schema restricts values by these keywords only: what JSON Schema does not define, and what only describes, says
// nothing of them.
bool SaysOnly(const Json& schema, std::initializer_list<std::string_view> words);

// What a reference into `root` points to; null: there is none, or it points elsewhere.
const Json* ReferredSchema(const Json& root, const Json& schema);

}  // namespace portico
