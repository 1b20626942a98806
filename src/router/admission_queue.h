// The gateway's limits of requests, over all shards, exact: how many at a time, and how many begin in
// a second. Those that wait for a place are let in by priority, then first come, first served; their
// number and time are bounded.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "net/loop/shard.h"

namespace portico::router {

struct AdmissionLimits {
  int64_t requests = -1;  // at a time; < 0: no limit
  int64_t queue = 100;    // requests that wait
  // Requests that begin in a second, after as many at once (a token bucket); 0: no limit.
  int64_t per_second = 0;
  bool operator==(const AdmissionLimits&) const = default;
};

// smg's classes.
enum class Priority : uint8_t { kSystem, kInteractive, kDefault, kBulk };
// By the name in x-smg-priority; kDefault for all others.
Priority PriorityOf(std::string_view name);

// Thread safe.
class AdmissionQueue {
 public:
  // A request that waits.
  class Ticket {
    friend class AdmissionQueue;
    net::Shard* shard = nullptr;
    absl::AnyInvocable<void()> on_place;  // touched on the shard only
    Priority priority = Priority::kDefault;
    // Guarded by the queue's mutex_.
    bool called = false;
    std::list<std::shared_ptr<Ticket>>::iterator place;  // until it is called
  };

  enum class Result { kPlace, kWaits, kFull };

  explicit AdmissionQueue(const AdmissionLimits& limits);

  // What is inside or waits stays. True if that changed anything.
  bool Configure(const AdmissionLimits& limits);
  // kPlace: Leave() must follow. kWaits: *ticket is set, and `on_place` will be called on `shard`
  // once there is a place, which is then taken. kFull: neither.
  Result Enter(net::Shard& shard, Priority priority, absl::AnyInvocable<void()> on_place,
               std::shared_ptr<Ticket>* ticket);
  void Leave();
  // Gives up waiting. False if the place has been taken for it already: Leave() must follow.
  bool GiveUp(const std::shared_ptr<Ticket>& ticket);
  // Lets those in whose time has come under a rate. About ten times a second, from one thread.
  void Tick();

  int64_t inside() const { return inside_.load(std::memory_order_relaxed); }
  int64_t waiting() const;

 private:
  using TicketPtr = std::shared_ptr<Ticket>;

  int64_t Waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether one more may begin now; takes its place.
  bool Take(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetIn(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::atomic<bool> unlimited_;  // then no lock is taken
  std::atomic<int64_t> inside_{0};
  AdmissionLimits limits_ ABSL_GUARDED_BY(mutex_);
  std::array<std::list<TicketPtr>, 4> waiting_ ABSL_GUARDED_BY(mutex_);  // by priority
  double tokens_ ABSL_GUARDED_BY(mutex_) = 0;                            // of the rate, at filled_
  TimePoint filled_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace portico::router
