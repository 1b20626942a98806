// What workers write, in the launcher's log: a line at a time, so that lines of two workers do not mix, with the worker's name in front.
#pragma once

#include <list>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace portico {

// Thread safe. A thread of its own copies to standard error.
class WorkerLogs {
 public:
  WorkerLogs() = default;
  // Copies what has been written, and waits up to a second for writers that are left.
  ~WorkerLogs();
  WorkerLogs(const WorkerLogs&) = delete;
  WorkerLogs& operator=(const WorkerLogs&) = delete;

  // The writing end of a pipe (close-on-exec), which the caller closes when the worker has it: what comes is marked "[name] ".
  // RESOURCE_EXHAUSTED: there is no descriptor left.
  StatusOr<int> Open(std::string name);
  // Until all that writers of this name wrote is copied, if they close their ends in time.
  void WaitForEnd(const std::string& name, Duration patience);

 private:
  struct Source {
    int fd = -1;
    std::string name;
    std::string line;  // not ended yet
  };

  void Run();
  bool Read(Source& source);

  Mutex mutex_;
  CondVar ended_;
  std::list<Source> sources_ ABSL_GUARDED_BY(mutex_);  // only the thread removes one
  int wake_[2] ABSL_GUARDED_BY(mutex_) = {-1, -1};  // a pipe: there is another source, or the end
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // since the first source
};

}  // namespace portico
