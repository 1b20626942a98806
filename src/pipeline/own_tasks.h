// Tasks that a thread does itself, where waking another one would cost more than they do.
#pragma once

#include <deque>
#include <utility>

#include "base/cpu_pool.h"
#include "base/events/recorder.h"

namespace portico::pipeline {

// While one is there, its thread keeps the tasks that are given to Keep(); its end does them, and those that are kept meanwhile, one
// after the other. One at a time on a thread, which holds no lock at the end.
class OwnTasks {
 public:
  OwnTasks() { current_ = this; }
  ~OwnTasks() {
    while (!tasks_.empty()) {
      CpuPool::Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
    current_ = nullptr;
  }
  OwnTasks(const OwnTasks&) = delete;
  OwnTasks& operator=(const OwnTasks&) = delete;

  // False: this thread does none, and the task is unchanged.
  static bool Keep(CpuPool::Task&& task) {
    if (current_ == nullptr) return false;
    current_->tasks_.push_back(events::Carrying(std::move(task)));
    return true;
  }

 private:
  static inline thread_local OwnTasks* current_ = nullptr;
  std::deque<CpuPool::Task> tasks_;
};

}  // namespace portico::pipeline
