// The time of events: the processor's counter where the system's own clock is read from it, which
// costs half as much as the clock; else the clock.
#pragma once

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace portico::events::internal {

// Set once, before the first run.
inline std::atomic<bool> counts_cycles{false};
void ChooseTicks();

// Never goes back on a thread; the same on all processors.
inline int64_t Ticks() {
#if defined(__x86_64__)
  if (counts_cycles.load(std::memory_order_relaxed)) return static_cast<int64_t>(__rdtsc());
#endif
  return Clock::now().time_since_epoch().count();
}

// The same moment on both clocks.
struct Moment {
  int64_t ticks = 0;
  int64_t nanoseconds = 0;  // CLOCK_MONOTONIC
};
Moment Now();

// Turns ticks into nanoseconds by the moments around them.
class TickScale {
 public:
  // In their order.
  void Add(const Moment& moment);
  int64_t Nanoseconds(int64_t ticks) const;

 private:
  static constexpr size_t kKept = 64;

  std::array<Moment, kKept> moments_{};
  size_t count_ = 0;  // that were added
};

}  // namespace portico::events::internal
