// The KV-cache events that HTTP workers publish over ZMQ: which workers are followed, and to whom what they tell goes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "engine/kv_feed/kv_feed.h"
#include "router/fleet/worker_set.h"
#include "router/gateway_metrics.h"
#include "router/gateway_options.h"

namespace portico::router {

// Called on the feed's thread, on_lost on the follower's too.
struct KvFollowerEvents {
  std::function<KvWish(Worker&, const KvEventBatch& batch, bool reset)> on_events;
  std::function<void(Worker&)> on_lost;  // what it told does not count any more
};

// On the gateway's admin shard.
class KvFollower {
 public:
  KvFollower(const GatewayOptions& options, GatewayMetrics& metrics, KvFollowerEvents events);
  ~KvFollower();

  // Follows the HTTP workers of `set` that publish, as far as is known, and no others; none at all unless `wanted`. Looks
  // about once a second, and when `version`, the set's, has changed.
  void Keep(const WorkerSet& set, uint64_t version, bool wanted);

 private:
  class Listener;
  struct Followed {
    std::weak_ptr<Worker> worker;
    KvAddress address;
    uint64_t subscription = 0;  // 0: it cannot be followed
  };

  // Empty: it tells nothing.
  KvAddress AddressOf(const Worker& worker) const;
  Followed Follow(const WorkerPtr& worker, const KvAddress& address);
  void Unfollow(const Followed& followed);

  const GatewayOptions& options_;
  GatewayMetrics& metrics_;
  const KvFollowerEvents events_;
  absl::flat_hash_map<uint64_t, Followed> followed_;  // by the worker's number
  TimePoint next_look_{};
  uint64_t version_ = 0;
  std::unique_ptr<KvFeed> feed_;  // made with the first worker
};

}  // namespace portico::router
