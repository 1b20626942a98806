// A few threads for work that is too long for a shard: long prompts, big templates, grammars,
// media.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "base/mutex.h"

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
  // Submit() calls that found room.
  uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // Submit() calls that found the queue full.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  void Run();

  const size_t max_queued_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace portico
