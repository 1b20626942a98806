// Stop new work, and know when the old work is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace portico {

// Thread safe. Everyone who does a piece of work holds a Pass meanwhile. Entering and leaving an
// open gate is one atomic operation each and takes no lock. The gate outlives its passes.
class Gate {
 public:
  // Says that a piece of work is under way, until it is destroyed. An empty Pass is a refusal.
  class [[nodiscard]] Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave();
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class Gate;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Gate* gate_ = nullptr;
  };

  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Empty once the gate is closed.
  Pass Enter();

  // Refuses new work from now on. Idempotent; a gate does not open again.
  void Close();
  bool closed() const { return (state_.load(std::memory_order_acquire) & kClosed) != 0; }

  // Pieces of work under way.
  int64_t inside() const {
    return static_cast<int64_t>(state_.load(std::memory_order_acquire) / kOne);
  }

  // Blocks until the gate is closed and nobody is inside (true), or the deadline has passed
  // (false).
  bool Wait(TimePoint deadline);

 private:
  // The lowest bit: closed. The others: how many are inside.
  static constexpr uint64_t kClosed = 1;
  static constexpr uint64_t kOne = 2;

  void Leave();

  std::atomic<uint64_t> state_{0};
  Mutex mutex_;
  CondVar empty_;
};

}  // namespace portico
