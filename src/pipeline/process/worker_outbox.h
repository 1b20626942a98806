// A stage process's way to its server. Messages keep their order; those of a burst travel together.
#pragma once

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "pipeline/process/message.h"

namespace portico::pipeline {

// Thread safe. Waits where the server takes nothing. Never destroyed: a thread of its own uses it until the process ends.
class WorkerOutbox {
 public:
  // What is sent sooner than this after the last datagram waits for more, at most for as long.
  static constexpr Duration kGap = std::chrono::microseconds(100);
  static constexpr size_t kMaxPacked = 32 << 10;

  explicit WorkerOutbox(int socket) : socket_(socket) {}
  WorkerOutbox(const WorkerOutbox&) = delete;
  WorkerOutbox& operator=(const WorkerOutbox&) = delete;

  // Now, behind what waits.
  void Send(const Datagram& message);
  // Now, or within kGap where others were sent just before.
  void SendSoon(const Datagram& message);
  // Something will be sent very soon: waits for that.
  void SendWithNext(const Datagram& message);
  // Likewise; nobody needs it before that, or before SendNow().
  void Keep(const Datagram& message);
  void SendNow();

 private:
  // False: it is sent already, alone.
  bool Add(const Datagram& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Flush(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushInTime() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[noreturn]] void Run();

  const int socket_;
  Mutex mutex_;
  CondVar changed_;
  Datagram packed_ ABSL_GUARDED_BY(mutex_);
  TimePoint sent_ ABSL_GUARDED_BY(mutex_){};  // the last datagram
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // the thread waits for something to send
};

}  // namespace portico::pipeline
