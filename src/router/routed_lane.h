// The requests of a RoutedEngine on their way. Used by it only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "base/mutex.h"
#include "router/routed_engine.h"

namespace portico::router {

struct RoutedEngine::Route {
  GenerateRequest request;
  TokenSink* sink = nullptr;
  WorkerPtr worker;                // written under the lane's lock
  std::shared_ptr<Engine> engine;  // guarded by the lane's lock: any thread aborts
  absl::InlinedVector<uint64_t, kMaxAttempts> tried;  // numbers of workers
  TimePoint started{};
  TimePoint first{};
  bool begun = false;    // a token has come
  bool aborted = false;  // guarded by the lane's lock
  int64_t prefill = 0;   // as the worker's Start() has it
};

// The routes of one shard's sinks, and where their engines deliver.
class RoutedEngine::Lane final : public TokenSink {
 public:
  Lane(RoutedEngine& engine, ShardIndex shard) : engine_(engine), shard_(shard) {}

  ShardIndex shard() const override { return shard_; }
  void Deliver(std::vector<TokenDelta> batch) override { Pass(std::move(batch), /*here=*/false); }
  void DeliverHere(std::vector<TokenDelta> batch) override {
    Pass(std::move(batch), /*here=*/true);
  }

  // The lane of no shard is used by any thread; on the others the lock is never waited for.
  Mutex mutex;
  absl::flat_hash_map<StreamId, std::unique_ptr<Route>> routes ABSL_GUARDED_BY(mutex);

 private:
  void Pass(std::vector<TokenDelta> batch, bool here);
  // What is to be handed on of a delta, or null for one that another worker will make good.
  TokenSink* Take(TokenDelta& delta, TimePoint now);
  void Finish(Route& route, const TokenDelta& last, bool aborted, TimePoint now);

  RoutedEngine& engine_;
  const ShardIndex shard_;
};

}  // namespace portico::router
