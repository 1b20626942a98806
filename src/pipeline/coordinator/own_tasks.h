// Tasks that a thread does itself, where waking another one would cost more than they do.
#pragma once

#include <chrono>
#include <deque>
#include <utility>

#include "base/clock.h"
#include "base/cpu_pool.h"
#include "base/events/recorder.h"

namespace portico::pipeline {

// While one is there, its thread keeps the tasks that are given to Keep(); its end does them, and those that are kept meanwhile, one
// after the other. What has not begun in time goes to the pools: the thread has work of its own, and tasks that others feed
// might never end. One at a time on a thread, which holds no lock at the end.
class OwnTasks {
 public:
  // How long a thread may put off what else it does.
  static constexpr Duration kTurn = std::chrono::milliseconds(1);

  explicit OwnTasks(TimePoint until) : until_(until) { current_ = this; }
  ~OwnTasks() {
    if (!tasks_.empty()) DoAll();
    current_ = nullptr;
  }
  OwnTasks(const OwnTasks&) = delete;
  OwnTasks& operator=(const OwnTasks&) = delete;

  // This thread does some.
  static bool Kept() { return current_ != nullptr; }
  // False: this thread does none, and the task is unchanged. The pool outlives the thread's work.
  static bool Keep(CpuPool* pool, CpuPool::Task&& task) {
    if (current_ == nullptr) return false;
    current_->tasks_.emplace_back(pool, events::Carrying(std::move(task)));
    return true;
  }

 private:
  void DoAll() {
    while (!tasks_.empty()) {
      auto [pool, task] = std::move(tasks_.front());
      tasks_.pop_front();
      if (Clock::now() < until_ || !pool->Submit(std::move(task))) task();
    }
  }

  static inline thread_local OwnTasks* current_ = nullptr;
  const TimePoint until_;
  std::deque<std::pair<CpuPool*, CpuPool::Task>> tasks_;
};

}  // namespace portico::pipeline
