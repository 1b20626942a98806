// A list of texts as a regular expression, as SGLang's guided choice is sent to engines that have no such constraint.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico {

// "(a|b\.)": each text of the JSON array `json`, escaped. INVALID_ARGUMENT without a field: it is no list of texts, or is empty.
StatusOr<std::string> RegexOfChoices(std::string_view json);

}  // namespace portico
