#include "base/gate.h"

#include "base/mutex.h"

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
  const MutexLock lock(&mutex_);
  if (state_.fetch_sub(kOne, std::memory_order_acq_rel) == kOne + kClosed) empty_.NotifyAll();
}

void Gate::Close() {
  const MutexLock lock(&mutex_);
  state_.fetch_or(kClosed, std::memory_order_acq_rel);
  empty_.NotifyAll();
}

bool Gate::Wait(TimePoint deadline) {
  const MutexLock lock(&mutex_);
  while (state_.load(std::memory_order_acquire) != kClosed) {
    if (!empty_.WaitUntil(&mutex_, deadline)) {
      return state_.load(std::memory_order_acquire) == kClosed;
    }
  }
  return true;
}

}  // namespace portico
