// A set of engines and a policy, and an Engine again. A request goes to the engine of the worker that
// the policy names; the deltas come back through here, on the same shard, so that requests and tokens in
// flight are counted and a worker that fails before its first token costs the client nothing: the
// request is tried on others, up to kMaxAttempts in all. After the first token nothing is tried again.
//
// Who can take a request: a worker that is healthy (one not probed yet only where no other can), not
// draining, and whose breaker lets it. None: UNAVAILABLE with the reason, without addresses.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "router/policy/policy.h"
#include "router/routed_member.h"
#include "router/routed_pooling.h"

namespace portico::router {

struct RoutedOptions {
  EngineInfo info;  // of the model that all members serve
  std::shared_ptr<Policy> policy;
  int shards = 1;                   // sinks are of shards below it
  int64_t worker_max_requests = 0;  // of each; more are refused; 0: no limit
  std::function<void()> on_stop;    // called first by Stop(); may be null
};

class RoutedEngine final : public Engine {
 public:
  static constexpr int kMaxAttempts = 4;

  explicit RoutedEngine(RoutedOptions options);
  ~RoutedEngine() override;

  // Replaces the members, sorted by their workers' numbers; tells the policy of those that come and go.
  // Streams on members that are gone go on. Any thread.
  void SetMembers(std::vector<RoutedMember> members);

  // Whether any member can take a request; else why not.
  Status Ready() const;

  const EngineInfo& info() const override { return options_.info; }
  Status Submit(GenerateRequest request, TokenSink* sink) override;
  // All texts of a call go to one worker; they are not tried again once it has them.
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override;
  void Abort(StreamId stream, ShardIndex shard) override;
  EngineLoad load() const override;
  std::vector<EngineLoad> rank_loads() const override;
  std::vector<LoraAdapter> adapters() const override;
  void Control(EngineControl control, TimePoint deadline, ControlDone done) override;
  void Stop() override;

 private:
  class Lane;
  struct Route;
  using Members = std::vector<RoutedMember>;

  std::shared_ptr<const Members> members() const;
  Lane& LaneOf(ShardIndex shard);
  // Sends the route's request to a worker that it has not tried. Errors as Submit().
  Status Send(Lane& lane, Route& route);
  StatusOr<const RoutedMember*> Choose(const Members& members, std::span<const uint64_t> tried,
                                       const RoutingKey& key) const;
  Status WhyNone(const Members& members) const;

  const RoutedOptions options_;
  mutable Mutex mutex_;
  std::shared_ptr<const Members> members_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Lane>> lanes_;  // by shard; the last: of no shard
  RoutedPooling pooling_;
  std::atomic<bool> stopped_{false};
};

}  // namespace portico::router
