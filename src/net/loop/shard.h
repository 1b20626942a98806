// A shard: one I/O thread, its event loop and all it owns (connections, requests, timers).
// Everything that lives on a shard is touched by that thread only; other threads reach it through
// Post().
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"

namespace boost::asio {
class io_context;
}

namespace portico {
class Registry;
}

namespace portico::net {

class Shard {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Cancels when destroyed. Must be destroyed on its shard, or after the shard has stopped.
  class Timer {
   public:
    virtual ~Timer() = default;
  };

  // One turn of the loop: a batch of posted tasks, the timers that are due, or what one ready
  // socket brought. Whatever calls into Portico from a handler of io() opens a Turn first; nested
  // ones join the outermost, which runs the tasks given to AtEndOfTurn() when it ends.
  class Turn {
   public:
    explicit Turn(Shard& shard);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Shard& shard_;
  };

  explicit Shard(int index);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  int index() const { return index_; }
  // Measures the turns in histograms (turn_times.h), from the start; before Start(). The registry outlives this.
  void CountTurns(Registry& registry);
  // Starts the thread. Run tasks until Stop(); what is posted before Start() runs after it.
  void Start();
  // Ends the loop after the task that runs now and joins. Not from the shard's own thread. Tasks
  // still queued are destroyed with the shard, without having run.
  void Stop();

  // Runs `task` on the shard's thread, later and in order. Thread safe. A burst of posts costs one
  // wake-up.
  void Post(Task task);
  // Runs `task` once after `delay`, unless the timer is destroyed before. On the shard only.
  std::unique_ptr<Timer> After(Duration delay, Task task);
  // Runs `task` at the end of the current turn, for flushing what several calls wrote. On the shard
  // only.
  void AtEndOfTurn(Task task);
  bool OnShard() const;

  boost::asio::io_context& io();

 private:
  struct Impl;
  int index_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portico::net
