// Whether the server can answer: health and pause of its engines, and who wants to know when that
// changes (grpc.health.v1 Watch, WatchEngineState).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "api/context.h"
#include "base/mutex.h"
#include "net/loop/shard.h"

namespace portico::api::rpc {

class EngineState {
 public:
  struct Snapshot {
    uint64_t revision = 0;  // from 1, grows with every change
    bool healthy = false;   // loaded, an engine alive, and not draining
    bool paused = false;
    bool draining = false;
  };

  // On its shard; unregistered before it is destroyed.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // Every change after the snapshot that Watch() returned, in order.
    virtual void OnState(const Snapshot& snapshot) = 0;

   private:
    friend class EngineState;
    uint64_t seen_ = 0;
  };

  // After context.shards is complete. Outlives what runs on them.
  explicit EngineState(ApiContext& context);

  // Looks at the engines and tells watchers of a change. On any shard.
  Snapshot Refresh();

  // On the watcher's shard. Pauses are told by Refresh(). While a shard has watchers it looks at
  // the engines 20 times a second, too: the end of loading, draining and a death, which stay, come
  // from nowhere in particular.
  Snapshot Watch(ShardContext& shard, Watcher* watcher);
  void Unwatch(ShardContext& shard, Watcher* watcher);

  // An engine has been asked to infer and has not done it since (health_check.h). Any thread.
  bool doubted() const { return doubted_.load(std::memory_order_relaxed); }
  void SetDoubted(bool doubted) { doubted_.store(doubted, std::memory_order_relaxed); }

  // When the process began, Unix nanoseconds.
  uint64_t instance_id() const { return instance_id_; }

 private:
  // Of one shard, touched on it only.
  struct Place {
    absl::flat_hash_set<Watcher*> watchers;
    std::unique_ptr<net::Shard::Timer> timer;
  };

  Snapshot Look() const;
  void Tick(ShardContext& shard);
  void Tell(size_t shard, const Snapshot& snapshot);

  ApiContext& api_;
  const uint64_t instance_id_;
  std::atomic<bool> doubted_{false};
  std::vector<Place> places_;
  Mutex mutex_;
  Snapshot last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico::api::rpc
