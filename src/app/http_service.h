// The running server: shards with their contexts, the listener, the routes. Built before any model is loaded, so that
// probes are answered from the first moment on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/context.h"
#include "api/grpc/service.h"
#include "api/router.h"
#include "app/options.h"
#include "net/server.h"
#include "service/model_registry.h"
#include "service/service_metrics.h"

namespace portico {

class HttpService {
 public:
  static StatusOr<std::unique_ptr<HttpService>> Start(const ServeOptions& options);
  ~HttpService();

  int port() const { return server_->port(); }
  ModelRegistry& models() { return models_; }

  // Readiness goes off, new connections are refused, requests in flight may finish for `patience`; what is left
  // then is aborted. False if something was. Blocks.
  bool Drain(Duration patience);

 private:
  explicit HttpService(const ServeOptions& options);
  // Runs `task` on every shard and waits for all of them.
  void OnEveryShard(const std::function<void(api::ShardContext&)>& task);

  ModelRegistry models_;
  Registry registry_;
  ServiceMetrics metrics_;
  api::ApiContext api_;
  api::Router router_;
  std::optional<CpuPool> pool_;
  std::vector<std::unique_ptr<net::Shard>> shards_;
  std::vector<std::unique_ptr<api::ShardContext>> contexts_;  // one a shard
  std::optional<api::rpc::GrpcService> grpc_;                 // unless it is disabled
  std::unique_ptr<net::Server> server_;
};

}  // namespace portico
