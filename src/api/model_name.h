// Which model a control request is about: `model` in its query or its body; "" where it names none.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/json.h"

namespace portico::api {

// INVALID_ARGUMENT (field "model") for a bad escape.
StatusOr<std::string> ModelInQuery(std::string_view query);
// INVALID_ARGUMENT (field "model") for anything but a string or null.
StatusOr<std::string> ModelInBody(const Json& body);

}  // namespace portico::api
