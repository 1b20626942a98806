// The query of a URL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::api {

// The first value of that name, decoded; "" for a name without one, nothing where it is absent.
// INVALID_ARGUMENT (field `name`) for a bad escape.
StatusOr<std::optional<std::string>> QueryValue(std::string_view query, std::string_view name);

// The same as an integer.
StatusOr<std::optional<int64_t>> QueryInt(std::string_view query, std::string_view name);

}  // namespace portico::api
