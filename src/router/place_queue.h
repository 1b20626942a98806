// Requests whose workers all have as many requests as they may. One of them is let in when one of its
// workers has a request less: by priority, then first come, first served. Their number is bounded
// here, their time by who waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "net/loop/shard.h"
#include "router/admission_queue.h"
#include "router/fleet/worker_set.h"

namespace portico::router {

// Thread safe.
class PlaceQueue {
 public:
  class Ticket {
    friend class PlaceQueue;
    net::Shard* shard = nullptr;
    absl::AnyInvocable<void()> on_place;  // touched on the shard only
    WorkerSetPtr set;                     // keeps the group
    const WorkerGroup* group = nullptr;
    uint64_t only = 0;                      // of the group, the number of the one; 0: any
    std::pair<Priority, uint64_t> place{};  // in waiting_
  };
  using TicketPtr = std::shared_ptr<Ticket>;

  // `limit`: of requests that wait.
  explicit PlaceQueue(int64_t limit) : limit_(limit) {}
  // Those that wait stay. True if that changed anything.
  bool Configure(int64_t limit) { return limit_.exchange(limit) != limit; }

  // Waits for a worker of `group`, which is of `set`, or for the one of number `only`. Null if the queue is full. `on_place` is called
  // once on `shard`: a worker may have a place, which it does not keep for the request. Who finds
  // none waits again with the same *turn, which is 0 at first, and has its former place in the queue.
  TicketPtr Wait(net::Shard& shard, Priority priority, WorkerSetPtr set, const WorkerGroup& group,
                 uint64_t* turn, absl::AnyInvocable<void()> on_place, uint64_t only = 0);
  // On the ticket's shard; `on_place` is not called any more.
  void GiveUp(const TicketPtr& ticket);
  // The worker has a request less.
  void NoteFree(const Worker& worker);
  // Lets all go for whose group `look` is true. About ten times a second: limits, health and the
  // workers themselves change, and who was let in may have left.
  void Tick(absl::FunctionRef<bool(const WorkerSet&, const WorkerGroup&)> look);

  int64_t waiting() const { return waiting_count_.load(std::memory_order_relaxed); }

 private:
  using Waiting = std::map<std::pair<Priority, uint64_t>, TicketPtr>;

  Waiting::iterator LetGo(Waiting::iterator ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<int64_t> limit_;
  std::atomic<int64_t> waiting_count_{0};
  Mutex mutex_;
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t turns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace portico::router
