// The check of API keys, for HTTP and gRPC alike.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::api {

// UNAUTHENTICATED unless the value of `authorization` is "Bearer KEY" or no key is configured.
Status CheckApiKey(std::string_view authorization, const std::string& api_key);

// The same of a request's headers, where `x-api-key: KEY` does as well: Anthropic's clients send that. One of them is
// enough where a client sends both.
Status CheckApiKey(const net::HttpRequest& request, const std::string& api_key);

// The same for what operators call: with the admin key, or with the API key where there is no other.
Status CheckAdminKey(std::string_view authorization, const std::string& api_key,
                     const std::string& admin_key);
Status CheckAdminKey(const net::HttpRequest& request, const std::string& api_key,
                     const std::string& admin_key);

}  // namespace portico::api
