#include "api/authorization.h"

#include "net/http/bearer.h"

namespace portico::api {
namespace {

bool IsBearer(std::string_view header, std::string_view api_key) {
  const std::string_view token = net::BearerToken(header);
  return !token.empty() && net::SameKey(token, api_key);
}

Status KeyRefused() {
  return Error(StatusCode::kUnauthenticated,
               "incorrect or missing API key; send `Authorization: Bearer KEY`", {},
               "invalid_api_key");
}

// Its clients may well have a key, and the one of --api-key is the wrong one here.
Status AdminKeyRefused() {
  return Error(StatusCode::kUnauthenticated,
               "this needs the server's admin key (--admin-api-key); send `Authorization: Bearer "
               "KEY`",
               {}, "invalid_api_key");
}

}  // namespace

Status CheckApiKey(std::string_view authorization, const std::string& api_key) {
  return api_key.empty() || IsBearer(authorization, api_key) ? OkStatus() : KeyRefused();
}

Status CheckApiKey(const net::HttpRequest& request, const std::string& api_key) {
  const bool shown = api_key.empty() || IsBearer(request.Header("authorization"), api_key) ||
                     net::SameKey(request.Header("x-api-key"), api_key);
  return shown ? OkStatus() : KeyRefused();
}

Status CheckAdminKey(std::string_view authorization, const std::string& api_key,
                     const std::string& admin_key) {
  if (admin_key.empty()) return CheckApiKey(authorization, api_key);
  return CheckApiKey(authorization, admin_key).ok() ? OkStatus() : AdminKeyRefused();
}

Status CheckAdminKey(const net::HttpRequest& request, const std::string& api_key,
                     const std::string& admin_key) {
  if (admin_key.empty()) return CheckApiKey(request, api_key);
  return CheckApiKey(request, admin_key).ok() ? OkStatus() : AdminKeyRefused();
}

}  // namespace portico::api
