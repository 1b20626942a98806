// The memory that the bodies of requests take while they are in flight, over all connections of a
// server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace portico::net {

// Any thread.
class BodyBudget {
 public:
  // A body of at most this many bytes is not counted: the usual request does not wait for large ones.
  static constexpr size_t kSmallBody = 64 << 10;

  explicit BodyBudget(size_t bytes) : bytes_(bytes) {}

  size_t bytes() const { return bytes_; }
  size_t taken() const { return taken_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Whether a body of this size would fit now. False counts as a refusal.
  bool HasRoomFor(size_t body_bytes);

 private:
  friend class BodyLease;
  bool Take(size_t bytes);
  void GiveBack(size_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

  const size_t bytes_;
  std::atomic<size_t> taken_{0};
  std::atomic<uint64_t> refused_{0};
};

// What one body has taken of a budget; gives it back when destroyed. On one thread at a time.
class BodyLease {
 public:
  BodyLease() = default;
  ~BodyLease() { Release(); }
  BodyLease(BodyLease&& other) noexcept;
  BodyLease& operator=(BodyLease&& other) noexcept;

  // The body now takes so many bytes, fewer or more than before. False if the budget has not got
  // them: what was taken before stays taken.
  bool Hold(const std::shared_ptr<BodyBudget>& budget, size_t body_bytes);
  // The same with the budget of which something is taken; without one nothing is counted.
  bool HoldAgain(size_t body_bytes) {
    return budget_ == nullptr || Hold(std::shared_ptr<BodyBudget>(budget_), body_bytes);
  }
  void Release();
  size_t taken() const { return taken_; }

 private:
  std::shared_ptr<BodyBudget> budget_;  // null: nothing is taken
  size_t taken_ = 0;
};

}  // namespace portico::net
