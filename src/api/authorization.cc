#include "api/authorization.h"

#include <openssl/crypto.h>

namespace portico::api {
namespace {

// Takes as long for any wrong key of the same length; the length itself is no secret.
bool SameKey(std::string_view given, std::string_view expected) {
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

bool IsBearer(std::string_view header, std::string_view api_key) {
  constexpr std::string_view kBearer = "bearer ";
  if (header.size() <= kBearer.size()) return false;
  for (size_t i = 0; i < kBearer.size(); ++i) {
    char c = header[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != kBearer[i]) return false;
  }
  return SameKey(header.substr(kBearer.size()), api_key);
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
                     SameKey(request.Header("x-api-key"), api_key);
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

std::string ShownAuthorization(const net::HttpRequest& request) {
  std::string shown(request.Header("authorization"));
  const std::string_view key = request.Header("x-api-key");
  if (shown.empty() && !key.empty()) shown.append("Bearer ").append(key);
  return shown;
}

}  // namespace portico::api
