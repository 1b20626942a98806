// One field of what a worker answers in JSON.
#pragma once

#include <optional>
#include <string_view>

#include "text/json.h"

namespace portico::router {

// Nothing: the answer is no JSON object, or has no such field.
std::optional<Json> FieldOfAnswer(std::string_view answer, std::string_view name);

}  // namespace portico::router
