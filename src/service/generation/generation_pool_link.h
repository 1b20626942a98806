// Between a generation and its work on the CPU pool. Used by generation*.cc only.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "service/generation/generation.h"

namespace portico {

// Of one prompt.
struct Generation::PoolLink {
  explicit PoolLink(Generation* of) : generation(of) {}

  Generation* generation;             // null once it is gone; the shard's own
  std::atomic<bool> unwanted{false};  // the prompt: its encoding is not worth beginning
};

struct Generation::PoolWork {
  struct HeldDelta {
    Choice* choice;
    TokenDelta delta;
  };

  explicit PoolWork(Generation* of) : link(std::make_shared<PoolLink>(of)) {}

  std::deque<HeldDelta> held;  // in the order in which they came
  // Each choice brings its prompt's values, and those of one are enough.
  std::vector<std::vector<PositionLogprobs>> unused;
  bool frees = false;  // the pool frees some of them
  std::shared_ptr<PoolLink> link;
};

}  // namespace portico
