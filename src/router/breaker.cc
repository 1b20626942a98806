#include "router/breaker.h"

namespace portico::router {

void Breaker::Configure(const BreakerOptions& options) {
  const MutexLock lock(&mutex_);
  options_ = options;
  if (!options.enabled) state_.store(State::kClosed, std::memory_order_release);
}

bool Breaker::Allows(TimePoint now) {
  if (state() == State::kClosed) return true;
  const MutexLock lock(&mutex_);
  if (state() == State::kOpen && now - opened_at_ >= options_.open_time) {
    state_.store(State::kHalfOpen, std::memory_order_release);
    successes_ = 0;
    trial_ = false;
  }
  return state() == State::kClosed || (state() == State::kHalfOpen && !trial_);
}

bool Breaker::Begin(TimePoint now) {
  if (state() == State::kClosed) return true;
  if (!Allows(now)) return false;
  const MutexLock lock(&mutex_);
  if (state() == State::kClosed) return true;
  if (state() == State::kOpen || trial_) return false;
  trial_ = true;
  return true;
}

void Breaker::OnSuccess() {
  if (state() == State::kClosed && !failed_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(&mutex_);
  trial_ = false;
  if (state() == State::kHalfOpen && ++successes_ >= options_.success_threshold) Reset();
}

void Breaker::OnFailure(TimePoint now) {
  const MutexLock lock(&mutex_);
  if (!options_.enabled) return;
  trial_ = false;
  Forget(now);
  failures_.push_back(now);
  failed_.store(true, std::memory_order_relaxed);
  if (state() == State::kHalfOpen) {
    Open(now);
  } else if (state() == State::kClosed &&
             failures_.size() >= static_cast<size_t>(options_.failure_threshold)) {
    Open(now);
  }
}

void Breaker::OnNothing() {
  if (state() == State::kClosed) return;
  const MutexLock lock(&mutex_);
  trial_ = false;
}

void Breaker::Close() {
  const MutexLock lock(&mutex_);
  Reset();
}

void Breaker::Reset() {
  state_.store(State::kClosed, std::memory_order_release);
  failures_.clear();
  failed_.store(false, std::memory_order_relaxed);
  successes_ = 0;
  trial_ = false;
}

void Breaker::Forget(TimePoint now) {
  while (!failures_.empty() && now - failures_.front() > options_.window) failures_.pop_front();
}

void Breaker::Open(TimePoint now) {
  state_.store(State::kOpen, std::memory_order_release);
  opened_at_ = now;
  successes_ = 0;
  failures_.clear();
  failed_.store(false, std::memory_order_relaxed);
  opened_.fetch_add(1, std::memory_order_relaxed);
}

std::string_view BreakerStateName(Breaker::State state) {
  switch (state) {
    case Breaker::State::kClosed:
      return "closed";
    case Breaker::State::kHalfOpen:
      return "half_open";
    case Breaker::State::kOpen:
      return "open";
  }
  return "closed";
}

}  // namespace portico::router
