#include "router/policy/consistent_hashing.h"

#include "router/index/block_hash.h"
#include "router/policy/worker_load.h"

namespace portico::router {

ConsistentHashing::ConsistentHashing(const PolicyOptions& options) : dice_(options.seed) {}

Choice ConsistentHashing::Choose(std::span<Worker* const> candidates, const RoutingKey& key) {
  if (key.session.empty()) return {.index = dice_.Below(candidates.size()), .reason = "random"};
  return {.index = RendezvousChoice(candidates, HashText(key.session)), .reason = "session"};
}

}  // namespace portico::router
