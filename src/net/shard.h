// A shard: one I/O thread, its event loop and all it owns (connections, requests, timers). Everything that
// lives on a shard is touched by that thread only; other threads reach it through Post().
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"

namespace boost::asio {
class io_context;
}

namespace portico::net {

class Shard {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Cancels when destroyed. Must be destroyed on its shard.
  class Timer {
   public:
    virtual ~Timer() = default;
  };

  explicit Shard(int index);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  int index() const { return index_; }
  // Starts the thread. Run tasks until Stop(); what is posted before Start() runs after it.
  void Start();
  // Ends the loop after the task that runs now and joins. Not from the shard's own thread.
  void Stop();

  // Runs `task` on the shard's thread, later. Thread safe; one wake-up each, so post batches.
  void Post(Task task);
  // Runs `task` once after `delay`, unless the timer is destroyed before. On the shard only.
  std::unique_ptr<Timer> After(Duration delay, Task task);
  // Runs `task` at the end of the current turn of the loop (after the handlers that are ready now), for
  // flushing what several of them wrote. On the shard only.
  void AtEndOfTurn(Task task);
  bool OnShard() const;

  boost::asio::io_context& io();

 private:
  struct Impl;
  int index_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portico::net
