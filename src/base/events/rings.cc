#include "base/events/rings.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "base/mutex.h"

namespace portico::events::internal {
namespace {

thread_local bool thread_ends = false;

// Tells that the thread has ended. What its other destructors record later has no ring.
struct Holder {
  Ring* ring = nullptr;
  ~Holder() {
    thread_ends = true;
    mine = nullptr;
    if (ring != nullptr) ring->left.store(true, std::memory_order_release);
  }
};

long Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

void PrepareOrder() {
  const bool can = Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  needs_fence.store(!can, std::memory_order_relaxed);
}

void AwaitOrder() {
  if (needs_fence.load(std::memory_order_relaxed)) return;
  Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

Rings& AllRings() {
  static Rings* const rings = new Rings();  // threads may outlive main()
  return *rings;
}

Ring* Rings::Mine() {
  if (thread_ends) return nullptr;
  static thread_local Holder holder;
  if (holder.ring == nullptr) holder.ring = Take();
  mine = holder.ring;
  return mine;
}

Ring* Rings::Take() {
  const MutexLock lock(&mutex_);
  if (!free_.empty()) {
    Ring* ring = free_.back();
    free_.pop_back();
    return ring;
  }
  if (rings_.size() >= kMost) return nullptr;
  rings_.push_back(std::make_unique_for_overwrite<Ring>());
  return rings_.back().get();
}

std::vector<Ring*> Rings::All() {
  const MutexLock lock(&mutex_);
  std::vector<Ring*> all;
  all.reserve(rings_.size());
  for (const auto& ring : rings_) all.push_back(ring.get());
  return all;
}

void Rings::Recycle(Ring* ring) {
  if (!ring->left.load(std::memory_order_acquire)) return;
  if (ring->head.load(std::memory_order_acquire) != ring->tail.load(std::memory_order_relaxed)) {
    return;
  }
  ring->left.store(false, std::memory_order_relaxed);
  const MutexLock lock(&mutex_);
  free_.push_back(ring);
}

}  // namespace portico::events::internal
