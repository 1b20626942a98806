#include "router/policy/prefix_hash.h"

#include <algorithm>

#include "router/index/block_hash.h"
#include "router/policy/worker_load.h"

namespace portico::router {

PrefixHash::PrefixHash(const PolicyOptions& options)
    : tokens_(static_cast<size_t>(std::max<int64_t>(1, options.prefix_token_count))),
      factor_(options.prefix_hash_load_factor),
      abs_threshold_(static_cast<double>(options.prefix_hash_balance_abs_threshold)),
      dice_(options.seed) {}

Choice PrefixHash::Choose(std::span<Worker* const> candidates, const RoutingKey& key) {
  uint64_t hash = 0;
  if (!key.tokens.empty()) {
    const auto prefix = key.tokens.first(std::min(tokens_, key.tokens.size()));
    hash = HashText({reinterpret_cast<const char*>(prefix.data()), prefix.size_bytes()});
  } else if (!key.text.empty()) {
    hash = HashText(key.text.substr(0, tokens_ * 4));
  } else {
    return {.index = LeastLoaded(candidates, dice_), .reason = "least loaded"};
  }
  int64_t total = 1;
  for (const Worker* worker : candidates) total += RequestsOn(*worker);
  const double mean = static_cast<double>(total) / static_cast<double>(candidates.size());
  const double bound = std::max(mean * factor_, mean + abs_threshold_);
  // The first of those within the bound is the greatest of them.
  size_t best = candidates.size();
  uint64_t greatest = 0;
  bool passed_over = false;
  uint64_t greatest_of_all = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const uint64_t weight = RendezvousWeight(hash, WorkerKey(*candidates[i]));
    const bool fits = static_cast<double>(RequestsOn(*candidates[i])) <= bound;
    if (weight > greatest_of_all) {
      greatest_of_all = weight;
      passed_over = !fits;
    }
    if (fits && (best == candidates.size() || weight > greatest)) {
      best = i;
      greatest = weight;
    }
  }
  if (best == candidates.size()) {
    return {.index = LeastLoaded(candidates, dice_), .reason = "least loaded"};
  }
  return {.index = best, .reason = passed_over ? "next by prefix" : "prefix"};
}

}  // namespace portico::router
