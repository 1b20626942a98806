// A mutex that Clang's thread-safety analysis knows, over std::mutex: libstdc++'s own has no annotations, and Abseil's is
// invisible to the thread sanitizer where the distribution's library is built without it.
//
//   Mutex mutex_;
//   int count_ ABSL_GUARDED_BY(mutex_) = 0;
//   ...
//   const MutexLock lock(&mutex_);
//   while (count_ == 0) changed_.Wait(&mutex_);
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace portico {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // False: somebody else has it.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  // Of a mutex that is held already, as after TryLock().
  MutexLock(Mutex* mutex, std::adopt_lock_t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) : mutex_(mutex) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Waits may end without a notification: the caller checks its condition in a loop.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False: the deadline has passed.
  template <typename Clock, typename Duration>
  bool WaitUntil(Mutex* mutex, std::chrono::time_point<Clock, Duration> deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex->mutex_, std::adopt_lock);
    const bool notified = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace portico
