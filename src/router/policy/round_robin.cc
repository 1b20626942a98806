#include "router/policy/round_robin.h"

#include <algorithm>

namespace portico::router {

Choice RoundRobin::Choose(std::span<Worker* const> candidates, const RoutingKey&) {
  uint64_t last = last_.load(std::memory_order_relaxed);
  while (true) {
    const auto after = std::upper_bound(
        candidates.begin(), candidates.end(), last,
        [](uint64_t number, const Worker* worker) { return number < worker->number(); });
    const size_t index =
        after == candidates.end() ? 0 : static_cast<size_t>(after - candidates.begin());
    if (last_.compare_exchange_weak(last, candidates[index]->number(), std::memory_order_relaxed)) {
      return {.index = index, .reason = "turn"};
    }
  }
}

}  // namespace portico::router
