#include "api/router.h"

#include <openssl/crypto.h>

#include <utility>

#include "api/openai/errors.h"
#include "api/reply.h"

namespace portico::api {
namespace {

// Takes as long for any wrong key of the same length; the length itself is no secret.
bool SameKey(std::string_view given, std::string_view expected) {
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

bool Authorized(const net::HttpRequest& request, const std::string& api_key) {
  constexpr std::string_view kBearer = "bearer ";
  std::string_view header = request.Header("authorization");
  if (header.size() <= kBearer.size()) return false;
  for (size_t i = 0; i < kBearer.size(); ++i) {
    char c = header[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != kBearer[i]) return false;
  }
  return SameKey(header.substr(kBearer.size()), api_key);
}

void ReplyPreflight(net::Exchange& exchange, const ApiContext& api, const std::string& methods) {
  net::HttpResponse response = Head(exchange, api, 204, "");
  response.headers.emplace_back("access-control-allow-methods", methods);
  std::string_view asked = exchange.request.Header("access-control-request-headers");
  response.headers.emplace_back("access-control-allow-headers",
                                asked.empty() ? "authorization, content-type" : std::string(asked));
  response.headers.emplace_back("access-control-max-age", "600");
  exchange.Respond(std::move(response));
}

}  // namespace

void Router::Add(std::string_view method, std::string_view path, Access access,
                 RouteHandler handler) {
  bool prefix = path.size() > 2 && path.substr(path.size() - 2) == "/*";
  if (prefix) path.remove_suffix(1);
  routes_.push_back({std::string(method), std::string(path), prefix, access, std::move(handler)});
}

bool Router::Matches(const Route& route, std::string_view path) {
  if (!route.prefix) return path == route.path;
  return path.size() > route.path.size() && path.substr(0, route.path.size()) == route.path;
}

void Router::Dispatch(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) const {
  const net::HttpRequest& request = exchange->request;
  std::string allowed;
  for (const Route& route : routes_) {
    if (!Matches(route, request.path)) continue;
    bool head = request.method == "HEAD" && route.method == "GET";
    if (route.method == request.method || head) {
      if (route.access == Access::kKey && !shard.api.api_key.empty() &&
          !Authorized(request, shard.api.api_key)) {
        return ReplyError(*exchange, shard.api,
                          Error(StatusCode::kUnauthenticated,
                                "Incorrect or missing API key; send `Authorization: Bearer KEY`.",
                                {}, "invalid_api_key"));
      }
      return route.handler(std::move(exchange), shard);
    }
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
  }
  if (allowed.empty()) {
    return ReplyError(
        *exchange, shard.api,
        Error(StatusCode::kNotFound, "Unknown path: " + request.method + " " + request.path));
  }
  if (request.method == "OPTIONS" && !shard.api.cors_origin.empty()) {
    return ReplyPreflight(*exchange, shard.api, allowed);
  }
  net::HttpResponse response = Head(*exchange, shard.api, 405, "application/json");
  response.headers.emplace_back("allow", allowed);
  response.body = openai::ErrorBody(
      405, request.method + " is not allowed on " + request.path + "; use " + allowed);
  exchange->Respond(std::move(response));
}

}  // namespace portico::api
