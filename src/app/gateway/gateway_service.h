// The running gateway: shards, listener, workers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/gateway/gateway_routes.h"
#include "app/gateway/token_fronts.h"
#include "net/loop/server.h"
#include "router/discovery/discovery.h"
#include "router/gateway.h"
#include "service/control/profiling.h"

namespace portico {

struct GatewayServiceOptions {
  router::GatewayOptions gateway;
  net::ServerOptions listener;
  int shards = 0;  // 0: a quarter of the cores, at least 1
  std::string api_key;
  std::vector<api::ControlKey> control_keys;
  bool audit = false;
  std::vector<std::string> cors_origins;  // empty: no CORS
  std::string allowed_host;               // as of ServeOptions
  std::string server_note;                // a JSON object for /get_server_info; empty: none
  std::optional<int> prometheus_port;     // a listener of its own for /metrics; none: not
  std::string prometheus_host = "127.0.0.1";
  bool prometheus_required = false;  // else the start goes on if it cannot be bound
  std::optional<router::DiscoveryOptions> discovery;
  ProfileOptions profile;
  ModelOptions model;  // of workers that take tokens: paths of tokenizer and template
  // Of workers whose model has that name; by what they call it.
  std::map<std::string, ModelOptions, std::less<>> named_models;
};

class GatewayService {
 public:
  static StatusOr<std::unique_ptr<GatewayService>> Start(GatewayServiceOptions options);
  ~GatewayService();

  int port() const { return server_->port(); }
  router::Gateway& gateway() { return *gateway_; }
  // Requests in flight may finish for `patience`; false if some were cut off.
  bool Drain(Duration patience);

 private:
  GatewayService() = default;

  Registry registry_;
  std::unique_ptr<router::Gateway> gateway_;
  api::GatewayContext context_;
  std::vector<std::unique_ptr<net::Shard>> shards_;
  std::vector<std::unique_ptr<router::GatewayShard>> gateway_shards_;  // one a shard
  std::unique_ptr<TokenFronts> fronts_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<net::Server> metrics_server_;
  std::unique_ptr<router::Discovery> discovery_;
};

}  // namespace portico
