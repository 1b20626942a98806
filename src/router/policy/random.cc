#include "router/policy/random.h"

namespace portico::router {

RandomPolicy::RandomPolicy(const PolicyOptions& options) : dice_(options.seed) {}

Choice RandomPolicy::Choose(std::span<Worker* const> candidates, const RoutingKey&) {
  return {.index = dice_.Below(candidates.size()), .reason = "random"};
}

}  // namespace portico::router
