// The circuit breaker of one worker: after a number of failures within a window it opens and the
// worker gets no requests; after a time, or when a probe has been answered, one request is let
// through, and its end decides (Nygard, "Release It!", 5.2).
//
// What counts: a connection that failed or was lost, an answer that cannot be read, 500, 502, 504
// and answers that come too late. 4xx says nothing of a worker; 429 and 503 mean busy, not dead.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace portico::router {

struct BreakerOptions {
  bool enabled = true;
  int failure_threshold = 10;  // failures within the window that open it
  int success_threshold = 1;   // successes in a row that close it from half-open
  Duration window = std::chrono::seconds(120);
  Duration open_time = std::chrono::seconds(60);  // until it is half-open by itself
};

// Thread safe. Reading the state of a closed one takes no lock.
class Breaker {
 public:
  enum class State : uint8_t { kClosed, kHalfOpen, kOpen };

  explicit Breaker(BreakerOptions options = {}) : options_(options) {}

  void Configure(const BreakerOptions& options);

  // Whether a request may be sent now: closed, or half-open with no trial on its way.
  bool Allows(TimePoint now);
  // A request is sent. In half-open it is the trial: false if another has become it meanwhile.
  bool Begin(TimePoint now);
  void OnSuccess();
  void OnFailure(TimePoint now);
  // The request says nothing of the worker (the client left, 4xx, 429, 503): a trial is free again.
  void OnNothing();
  // A probe was answered by a worker that was down: what it did before says nothing of it now.
  void Close();

  State state() const { return state_.load(std::memory_order_acquire); }
  uint64_t opened() const { return opened_.load(std::memory_order_relaxed); }

 private:
  void Forget(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Open(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reset() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  BreakerOptions options_ ABSL_GUARDED_BY(mutex_);
  // Within the window; at most failure_threshold.
  std::deque<TimePoint> failures_ ABSL_GUARDED_BY(mutex_);
  TimePoint opened_at_ ABSL_GUARDED_BY(mutex_){};
  int successes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool trial_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> failed_{false};  // failures_ is not empty
  std::atomic<State> state_{State::kClosed};
  std::atomic<uint64_t> opened_{0};
};

std::string_view BreakerStateName(Breaker::State state);

}  // namespace portico::router
