// Streams of the native API hold what is new in each message, or all so far.
#pragma once

#include <string_view>

#include "base/status.h"

namespace portico::api {

// The header or metadata with which a client chooses for one request: delta or cumulative.
inline constexpr std::string_view kStreamForm = "x-portico-stream";

// True for cumulative: `form` is what the client sent under that name; without it, `otherwise`.
// `kind` ("header", "metadata") is how an error calls it.
StatusOr<bool> WantsCumulative(std::string_view form, std::string_view kind, bool otherwise);

}  // namespace portico::api
