// What a 404 says of a path that no route has.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace portico::api {

// Names the API that the path belongs to, where that is known and is not served here, or the route that is one slip away: a base
// URL without /v1, or with two. `has`: whether a path has a route.
std::string UnknownPath(std::string_view method, std::string_view path,
                        absl::FunctionRef<bool(std::string_view path)> has);

}  // namespace portico::api
