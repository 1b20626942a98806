// Test helper: looks at what lives on a shard from the test's thread.
#pragma once

#include <functional>
#include <future>

#include "net/loop/shard.h"

namespace portico::net {

// Runs `task` on the shard, after all that was posted before, and waits for its end. Not from the shard's own thread.
inline void RunOnShard(Shard& shard, const std::function<void()>& task) {
  std::promise<void> done;
  shard.Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace portico::net
