// Between a generation and its work on the CPU pool. Used by generation*.cc only.
#pragma once

#include <atomic>

#include "service/generation.h"

namespace portico {

struct Generation::PoolLink {
  explicit PoolLink(Generation* of) : generation(of) {}

  // On the shard, where the generation goes away.
  void Sever() {
    generation = nullptr;
    severed.store(true, std::memory_order_relaxed);
  }

  Generation* generation;            // null once it is gone; the shard's own
  std::atomic<bool> severed{false};  // the work is not worth beginning
};

}  // namespace portico
