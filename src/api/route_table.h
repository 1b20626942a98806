// The route table: what the server answers to a method and a path, and what each route takes. A request is
// admitted when its head has come, before any of its body is read.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/common/error_body.h"
#include "api/context.h"
#include "net/http/exchange.h"

namespace portico::api {

using RouteHandler = std::function<void(std::unique_ptr<net::Exchange>, ShardContext&)>;

enum class Access {
  kOpen,   // no API key: probes, and sockets that look at the key themselves
  kKey,    // --api-key
  kAdmin,  // what operators call: --admin-api-key, where there is one
};

// The media type of a request's body. A body without a type is taken for what the route wants.
enum class BodyType {
  kNone,  // the route reads none; a short one of any type is ignored
  kJson,  // application/json
  kForm,  // multipart/form-data
};

// A body that control routes have at most: what a shard may parse by itself.
inline constexpr size_t kControlBody = 1 << 20;

struct Route {
  std::string method;
  std::string path;  // exact, or ends in "/*" for everything below it
  Access access = Access::kKey;
  BodyType body = BodyType::kJson;
  size_t max_body_bytes = 0;  // 0: --max-body-bytes
  // The form of its errors.
  std::string (*error_body)(const Status& status) = ErrorBody;
  RouteHandler handler;
};

class RouteTable {
 public:
  void Add(Route route);
  // With a JSON body; GET has none. `max_body_bytes` is Route's.
  void Add(std::string_view method, std::string_view path, Access access, RouteHandler handler,
           size_t max_body_bytes = 0);

  // Looks at a head: browser rules (api/browser_rules.h), route, key, media type, coding, declared length. An admitted
  // one has its Route in `head.route`. Any shard.
  net::HeadVerdict Admit(net::HttpRequest& head, const ApiContext& api) const;
  // Hands an admitted request to its handler. One that no head check has seen (a gRPC method's, a token front's)
  // is looked at here, but for the browser rules. JSON comes to its handler without a byte order mark.
  void Dispatch(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) const;

  // In the order of Add().
  const std::vector<std::unique_ptr<Route>>& routes() const { return routes_; }

 private:
  // Empty if the request may go on, with its route in head.route.
  std::optional<net::HttpResponse> Check(net::HttpRequest& head, const ApiContext& api) const;
  // Those of the path, whatever their method.
  std::vector<const Route*> Find(std::string_view path) const;

  std::vector<std::unique_ptr<Route>> routes_;
  absl::flat_hash_map<std::string, std::vector<const Route*>> exact_;
  std::vector<const Route*> below_;  // those that end in "/*"
};

// All routes of the server.
RouteTable MakeRouteTable();

}  // namespace portico::api
