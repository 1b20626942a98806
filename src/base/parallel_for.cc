#include "base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace portico {
namespace {

// Held by the caller and by each helper. A helper that starts late finds nothing left and never touches `body`.
struct Loop {
  Loop(size_t n, absl::FunctionRef<void(size_t)> f) : count(n), body(f) {}

  void Run() {
    size_t finished = 0;
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count; ++finished) body(i);
    if (finished == 0) return;
    const MutexLock lock(&mutex);
    done += finished;
    if (done == count) all_done.NotifyOne();
  }

  const size_t count;
  const absl::FunctionRef<void(size_t)> body;
  std::atomic<size_t> next{0};
  Mutex mutex;
  CondVar all_done;
  size_t done ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace

void ParallelFor(CpuPool* pool, size_t count, absl::FunctionRef<void(size_t)> body) {
  if (pool == nullptr || count < 2) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  auto loop = std::make_shared<Loop>(count, body);
  for (size_t helpers = std::min(pool->threads(), count - 1); helpers > 0; --helpers) {
    if (!pool->Submit([loop] { loop->Run(); })) break;
  }
  loop->Run();
  const MutexLock lock(&loop->mutex);
  while (loop->done != count) loop->all_done.Wait(&loop->mutex);
}

}  // namespace portico
