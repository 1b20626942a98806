// One token worker of a gateway: Portico's own front (APIs, templates, tokenizer) whose engine is that
// worker alone. The gateway has chosen it, counts what it does and asks another one if it fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/route_table.h"
#include "engine/grpc/grpc_engine.h"
#include "service/model_registry.h"

namespace portico {

class TokenFront {
 public:
  // `options.shards` are the server's.
  TokenFront(uint64_t worker, GrpcEngineOptions options);
  // After Close().
  ~TokenFront();

  uint64_t worker() const { return worker_; }
  GrpcEngine& engine() { return *engine_; }
  // For a ServingModel; this outlives it.
  std::unique_ptr<Engine> MakeEngineRef();

  // Serves requests from now on. Once, by one thread, before any other uses what is below.
  void Publish(const TokenWorkerFacts& facts, std::string texts,
               std::unique_ptr<ServingModel> model, CpuPool* pool);
  const ServingModel& model() const { return *models_.models().front(); }
  // What its tokenizer was made from; fronts with the same share it.
  const std::string& texts() const { return texts_; }
  // Whether what the worker says now is what this was made for.
  bool Fits(const TokenWorkerFacts& facts) const;

  // On the exchange's shard.
  void Handle(const api::RouteTable& routes, std::unique_ptr<net::Exchange> exchange);

  // Requests that run. Blocks until all shards have said so: never on one of them.
  size_t Running();
  // Drops the calls that are left; then nothing of the pool may run for it. Blocks likewise.
  void DropCalls();
  // The end; blocks likewise. Twice is once.
  void Close();

 private:
  template <typename Task>
  void OnEveryShard(const Task& task);

  const uint64_t worker_;
  const std::vector<net::Shard*> shards_;
  std::unique_ptr<GrpcEngine> engine_;
  TokenWorkerFacts facts_;
  std::string texts_;
  ModelRegistry models_;
  Registry registry_;  // its metrics are not shown: the gateway has its own
  std::unique_ptr<ServiceMetrics> metrics_;
  api::ApiContext api_;
  std::vector<std::unique_ptr<api::ShardContext>> contexts_;  // by shard; empty before Publish()
};

}  // namespace portico
