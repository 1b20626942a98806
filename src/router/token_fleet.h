// Token workers behind one RoutedEngine: connects them, asks what they serve, probes them, and asks for
// their load. All of it happens on the first shard.
//
// A worker that is not healthy is probed every down_interval; one good probe, and facts that fit the
// model, bring it back. A healthy one is probed every `interval`, and a stream that is lost marks it
// down at once. A worker that has been down counts as restarted: the policy forgets what it had cached.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/grpc/grpc_engine.h"
#include "net/loop/shard.h"
#include "router/routed_engine.h"

namespace portico::router {

struct TokenFleetOptions {
  std::vector<WorkerSpec> workers;
  GrpcEngineOptions engine;  // of each worker; host, port, TLS and key are the worker's own
  BreakerOptions breaker;
  Duration probe_timeout = std::chrono::seconds(5);
  Duration interval = std::chrono::seconds(10);
  Duration down_interval = std::chrono::milliseconds(500);
  Duration load_interval = std::chrono::seconds(1);
  int failure_threshold = 3;  // probes in a row that a healthy worker may miss
};

class TokenFleet {
 public:
  explicit TokenFleet(TokenFleetOptions options);
  // After Stop().
  ~TokenFleet();
  TokenFleet(const TokenFleet&) = delete;
  TokenFleet& operator=(const TokenFleet&) = delete;

  // Begins to probe. Once.
  void Start();
  // What the first worker that answers serves. Blocks: never on a shard. DEADLINE_EXCEEDED with the last
  // failure of each if none answers in time.
  StatusOr<TokenWorkerFacts> WaitForFacts(Duration patience);
  // The engine of all workers, for facts that WaitForFacts() gave; stops the fleet when it is stopped, and
  // keeps it alive. Once, then workers whose facts differ are left out.
  static std::unique_ptr<RoutedEngine> MakeEngine(std::shared_ptr<TokenFleet> fleet,
                                                  const TokenWorkerFacts& facts,
                                                  std::shared_ptr<Policy> policy);
  // Ends probing and the workers' engines. Blocks until the shard has heard of it.
  void Stop();

 private:
  struct Watch;

  void Tick();
  void Probe(Watch& watch);
  void OnProbe(Watch& watch, const Status& status);
  void OnFacts(Watch& watch, const StatusOr<TokenWorkerFacts>& facts);
  KvWish OnKvEvents(Watch& watch, const KvEventBatch* batch, bool reset);
  void AskLoad(Watch& watch);
  void GoDown(Watch& watch, const Status& why);

  const TokenFleetOptions options_;
  net::Shard& shard_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::unique_ptr<net::Shard::Timer> timer_;
  TimePoint next_policy_tick_{};

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Policy> policy_ ABSL_GUARDED_BY(mutex_);
  // Of the first that answered.
  std::optional<TokenWorkerFacts> facts_ ABSL_GUARDED_BY(mutex_);
  Status last_failure_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace portico::router
