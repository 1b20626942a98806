// The check of API keys, for HTTP and gRPC alike.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::api {

// UNAUTHENTICATED unless the value of `authorization` is "Bearer KEY" or no key is configured.
Status CheckApiKey(std::string_view authorization, const std::string& api_key);

}  // namespace portico::api
