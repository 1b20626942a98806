#include "base/gate.h"

namespace portico {

Gate::Pass Gate::Enter() {
  uint64_t state = state_.load(std::memory_order_relaxed);
  do {
    if ((state & kClosed) != 0) return Pass();
  } while (!state_.compare_exchange_weak(state, state + kOne, std::memory_order_acquire));
  return Pass(this);
}

void Gate::Leave() {
  uint64_t state = state_.load(std::memory_order_relaxed);
  while ((state & kClosed) == 0) {
    if (state_.compare_exchange_weak(state, state - kOne, std::memory_order_release)) return;
  }
  // Under the lock, because the one who waits may destroy the gate as soon as it sees the last one
  // leave.
  std::lock_guard lock(mutex_);
  if (state_.fetch_sub(kOne, std::memory_order_acq_rel) == kOne + kClosed) empty_.notify_all();
}

void Gate::Close() {
  std::lock_guard lock(mutex_);
  state_.fetch_or(kClosed, std::memory_order_acq_rel);
  empty_.notify_all();
}

bool Gate::Wait(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  return empty_.wait_until(lock, deadline,
                           [this] { return state_.load(std::memory_order_acquire) == kClosed; });
}

}  // namespace portico
