#include "engine/llama/generation/mask_thread.h"

#include <pthread.h>

#include "base/mutex.h"

namespace portico::llama {

MaskThread::~MaskThread() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void MaskThread::Start(const Step& step) {
  streams_.clear();
  for (const Chunk& chunk : step.chunks) {
    auto* const stream = static_cast<Stream*>(chunk.request);
    if (chunk.last && stream->is_constrained()) streams_.push_back(stream);
  }
  if (streams_.empty()) return;
  {
    const MutexLock lock(&mutex_);
    busy_ = true;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.NotifyAll();
}

void MaskThread::Wait() {
  if (streams_.empty()) return;
  const MutexLock lock(&mutex_);
  while (busy_) wake_.Wait(&mutex_);
}

void MaskThread::Run() {
  pthread_setname_np(pthread_self(), "masks");
  for (;;) {
    {
      const MutexLock lock(&mutex_);
      while (!busy_ && !stopping_) wake_.Wait(&mutex_);
      if (stopping_) return;
    }
    for (Stream* const stream : streams_) stream->PrepareMask();
    const MutexLock lock(&mutex_);
    busy_ = false;
    wake_.NotifyAll();
  }
}

}  // namespace portico::llama
