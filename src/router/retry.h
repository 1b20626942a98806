// Pauses between attempts, and the budget that keeps retries from multiplying the load of a fleet
// that is failing.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "router/gateway_options.h"

namespace portico::router {

// The pause before attempt `attempt` (2 is the first retry); `random` is in [0, 1).
Duration RetryPause(const RetryOptions& options, int attempt, double random);

// The seconds that Retry-After names, at most a minute; zero if it names none or a date.
Duration RetryAfter(std::string_view value);

// One retry of an answered request for every five requests, and kReserve beyond (Finagle's rule).
// Retries after lost connections are free: the worker is out at once, so they do not multiply.
// Thread safe.
class RetryBudget {
 public:
  void NoteRequest() {
    if (tenths_.load(std::memory_order_relaxed) < kMax) {
      tenths_.fetch_add(2, std::memory_order_relaxed);
    }
  }
  bool Take() {
    int64_t now = tenths_.load(std::memory_order_relaxed);
    while (now >= 10) {
      if (tenths_.compare_exchange_weak(now, now - 10, std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  static constexpr int64_t kReserve = 1000;  // tenths of a retry
  static constexpr int64_t kMax = 10000;
  std::atomic<int64_t> tenths_{kReserve};
};

}  // namespace portico::router
