#include "base/cpu_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

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
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool CpuPool::Submit(Task&& task) {
  {
    std::lock_guard lock(mutex_);
    if (tasks_.size() >= max_queued_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

size_t CpuPool::queued() const {
  std::lock_guard lock(mutex_);
  return tasks_.size();
}

void CpuPool::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds is released outside the lock
    lock.lock();
  }
}

}  // namespace portico
