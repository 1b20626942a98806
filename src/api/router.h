// The route table: method and path → handler. Also what comes before every handler: authentication, CORS
// preflight, 404 and 405.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/context.h"
#include "net/exchange.h"

namespace portico::api {

using RouteHandler = std::function<void(std::unique_ptr<net::Exchange>, ShardContext&)>;

enum class Access {
  kOpen,  // no API key needed: probes
  kKey,
};

class Router {
 public:
  // `path` is exact, or ends in "/*" for everything below it.
  void Add(std::string_view method, std::string_view path, Access access, RouteHandler handler);

  void Dispatch(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) const;

 private:
  struct Route {
    std::string method;
    std::string path;
    bool prefix;
    Access access;
    RouteHandler handler;
  };

  static bool Matches(const Route& route, std::string_view path);

  std::vector<Route> routes_;
};

// All routes of the server.
Router MakeRouter();

}  // namespace portico::api
