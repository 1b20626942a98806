#include "base/cpu_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/events/recorder.h"
#include "base/mutex.h"

namespace portico {

CpuPool::CpuPool(size_t threads, size_t max_queued, const std::string& name)
    : max_queued_(max_queued) {
  for (size_t i = 0; i < std::max<size_t>(threads, 1); ++i) {
    threads_.emplace_back([this] { Run(); });
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

CpuPool::~CpuPool() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool CpuPool::Submit(Task&& task) {
  {
    const MutexLock lock(&mutex_);
    if (tasks_.size() >= max_queued_) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    tasks_.push_back(events::Carrying(std::move(task)));
  }
  taken_.fetch_add(1, std::memory_order_relaxed);
  wake_.NotifyOne();
  return true;
}

size_t CpuPool::queued() const {
  const MutexLock lock(&mutex_);
  return tasks_.size();
}

void CpuPool::Run() {
  for (;;) {
    Task task;  // what it holds is released outside the lock
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && tasks_.empty()) wake_.Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace portico
