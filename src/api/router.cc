#include "api/router.h"

#include <utility>

#include "api/authorization.h"
#include "api/openai/errors.h"
#include "api/reply.h"

namespace portico::api {
namespace {

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
      if (route.access == Access::kKey) {
        const Status key = CheckApiKey(request.Header("authorization"), shard.api.api_key);
        if (!key.ok()) return ReplyError(*exchange, shard.api, key);
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
