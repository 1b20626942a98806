// A few threads for work that is too long for a shard: long prompts, big templates, grammars,
// media.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace portico {

// Thread safe.
class CpuPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  // `threads` >= 1; at most `max_queued` tasks wait. `name` (15 bytes at most count) is what a
  // debugger shows.
  CpuPool(size_t threads, size_t max_queued, const std::string& name = "cpu");

  // Runs what is queued, then joins. Nobody submits any more.
  ~CpuPool();

  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;

  // Queues the task, which must not throw; tasks start in this order. False: the queue is full, and
  // `task` is unchanged: run it here, or refuse it.
  bool Submit(Task&& task);

  size_t threads() const { return threads_.size(); }
  // Tasks that wait.
  size_t queued() const;

 private:
  void Run();

  const size_t max_queued_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;  // guarded by mutex_
  bool stopping_ = false;   // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace portico
