// manual (sticky): a session keeps its worker. A session that is new gets one by --assignment-mode:
// random, min_load (the fewest requests in flight) or min_group (the fewest sessions). Where its worker
// cannot take the request it gets a second one; of the two the first that can is taken, so the session
// comes back when its first worker does. Both gone: a new one. A session that is not used for
// --max-idle-secs (14,400) is forgotten. Without a session a request goes where a new session would.
//
// At most 2^20 sessions are kept (about 60 MB); beyond that new ones are served without being kept
// until old ones are forgotten. The table is in 64 parts with a lock each, held for a look-up.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class Manual final : public Policy {
 public:
  static constexpr size_t kMaxSessions = size_t{1} << 20;

  explicit Manual(const PolicyOptions& options);

  std::string_view name() const override { return "manual"; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;
  void OnWorkerRemoved(Worker& worker) override;
  void OnTick(TimePoint now) override;

  size_t sessions() const { return sessions_.load(std::memory_order_relaxed); }

 private:
  enum class Mode : uint8_t { kRandom, kMinLoad, kMinGroup };
  static constexpr size_t kParts = 64;

  struct Session {
    std::array<uint64_t, 2> workers{};  // numbers; 0: none
    TimePoint used{};
  };
  struct Part {
    Mutex mutex;
    absl::flat_hash_map<uint64_t, Session> sessions ABSL_GUARDED_BY(mutex);
  };

  size_t Assign(std::span<Worker* const> candidates);
  void Count(uint64_t worker, int64_t change);

  const Mode mode_;
  const Duration max_idle_;
  Dice dice_;
  std::array<Part, kParts> parts_;
  std::atomic<size_t> sessions_{0};
  Mutex groups_mutex_;
  absl::flat_hash_map<uint64_t, int64_t> groups_ ABSL_GUARDED_BY(groups_mutex_);
};

}  // namespace portico::router
