#include "base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace portico {
namespace {

// Held by the caller and by each helper. A helper that starts late finds nothing left and never touches `body`.
struct Loop {
  Loop(size_t n, absl::FunctionRef<void(size_t)> f) : count(n), body(f) {}

  void Run() {
    size_t finished = 0;
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count; ++finished) body(i);
    if (finished == 0) return;
    std::lock_guard lock(mutex);
    done += finished;
    if (done == count) all_done.notify_one();
  }

  const size_t count;
  const absl::FunctionRef<void(size_t)> body;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable all_done;
  size_t done = 0;  // guarded by mutex
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
  std::unique_lock lock(loop->mutex);
  loop->all_done.wait(lock, [&] { return loop->done == count; });
}

}  // namespace portico
