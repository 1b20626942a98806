// Fills the masks of a step's constrained streams while the model computes the step.
#pragma once

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/llama/generation/scheduler.h"
#include "engine/llama/generation/stream.h"

namespace portico::llama {

// Used by one thread. Its own thread starts with the first constrained stream.
class MaskThread {
 public:
  MaskThread() = default;
  ~MaskThread();
  MaskThread(const MaskThread&) = delete;
  MaskThread& operator=(const MaskThread&) = delete;

  // Of every chunk that ends its stream's tokens; nobody touches those streams until Wait().
  void Start(const Step& step);
  void Wait();

 private:
  void Run();

  std::vector<Stream*> streams_;  // the other thread's between Start() and Wait()
  Mutex mutex_;
  CondVar wake_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace portico::llama
