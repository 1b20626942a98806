// The running server: shards with their contexts, the listener, the routes. Built before any model is loaded, so that
// probes are answered from the first moment on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "api/context.h"
#include "api/grpc/service.h"
#include "api/route_table.h"
#include "app/options/options.h"
#include "base/mutex.h"
#include "net/loop/server.h"
#include "pipeline/coordinator/pipeline.h"
#include "service/model_registry.h"
#include "service/service_metrics.h"

namespace portico {

class HttpService {
 public:
  static StatusOr<std::unique_ptr<HttpService>> Start(const ServeOptions& options);
  // The same without a listener: for callers in this process, and servers of others (app/omni/).
  static StatusOr<std::unique_ptr<HttpService>> Make(const ServeOptions& options);
  ~HttpService();

  // Starts the pipeline that the options ask for, if any; before the models are published.
  Status StartPipeline(const ServeOptions& options);

  int port() const { return server_->port(); }
  ModelRegistry& models() { return models_; }
  // Null: there is none.
  const pipeline::Pipeline* pipeline() const { return pipeline_.get(); }
  // By index; they run until this is destroyed.
  std::vector<net::Shard*> shards() const;
  Registry& registry() { return registry_; }
  // What another server's routes work with: the models, the pipeline and what the options say of answers.
  void Share(const ServeOptions& options, api::ApiContext* api);
  // Answers on the exchange's shard, which is one of these.
  void Dispatch(std::unique_ptr<net::Exchange> exchange);
  // Kept until no engine delivers any more: the shards of a server that has used the models.
  void Keep(std::shared_ptr<void> used);

  // Readiness goes off, new connections are refused, requests in flight may finish for `patience`; what is left
  // then is aborted. False if something was. Blocks.
  bool Drain(Duration patience);

 private:
  explicit HttpService(const ServeOptions& options);
  Status Listen(const ServeOptions& options);
  void AddGauges();
  // Runs `task` on every shard and waits for all of them.
  void OnEveryShard(const std::function<void(api::ShardContext&)>& task);

  ModelRegistry models_;
  Mutex keeping_;
  std::vector<std::shared_ptr<void>> kept_ ABSL_GUARDED_BY(keeping_);
  Registry registry_;
  ServiceMetrics metrics_;
  api::ApiContext api_;
  api::RouteTable routes_;
  const std::shared_ptr<net::ServerLoad> load_;
  std::optional<CpuPool> pool_;
  std::vector<std::unique_ptr<net::Shard>> shards_;
  bool started_ = false;                                      // the shards run
  std::vector<std::unique_ptr<api::ShardContext>> contexts_;  // one a shard
  std::unique_ptr<pipeline::Pipeline> pipeline_;              // null: there is none
  std::optional<api::rpc::GrpcService> grpc_;                 // unless it is disabled
  std::unique_ptr<net::Server> server_;
};

}  // namespace portico
