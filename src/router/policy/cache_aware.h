// cache_aware: sglang-router's rule. A radix tree over the prompts' characters (over tokens, where they
// are known) keeps which worker has seen which beginning (index/text_tree.h).
//
//  1. Imbalance: with loads = requests in flight, max - min > --balance-abs-threshold (64) and
//     max > --balance-rel-threshold (1.5) x min: the worker with the fewest requests.
//  2. Otherwise the longest prefix of the prompt that a worker has; matched / length of the prompt
//     > --cache-threshold (0.3): the worker that used it last.
//  3. Otherwise (--cache-aware-miss least-load, as sglang-router since 0.2 and smg have it) the worker
//     with the fewest requests, or (smallest-tree, as older releases and the router's page have it) the
//     one whose tree has the fewest characters.
//  A request without a prompt goes to the worker with the fewest requests.
//
// The prompt is then added under the worker that has got it. Every --eviction-interval seconds (60) a
// worker's tree is cut to --max-tree-size characters (2^26), what was used longest ago first. Unlike
// there, the tree as a whole stays within a number of bytes at every moment (--index-bytes, 256 MiB), a
// removed worker is out of it at once, and a match that is down or has been tried costs no more than a
// miss. Older releases' numbers: 0.5, 32, 1.0001, 60 s, 2^24.
//
// One lock, held for the walk: about 2 us for a prompt of 2.4 KB (index/prefix_index_bench.cc).
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "router/index/text_tree.h"
#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class CacheAware final : public Policy {
 public:
  explicit CacheAware(const PolicyOptions& options);

  std::string_view name() const override { return "cache_aware"; }
  bool wants_prompt() const override { return true; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;
  int64_t OnStart(Worker& worker, const RoutingKey& key) override;
  void OnWorkerRemoved(Worker& worker) override;
  void OnWorkerLost(Worker& worker) override { OnWorkerRemoved(worker); }
  void OnTick(TimePoint now) override;

  size_t bytes() const;

 private:
  static std::string_view PromptOf(const RoutingKey& key);
  TextTree& TreeFor(const RoutingKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return key.tokens.empty() ? texts_ : tokens_;
  }

  const double cache_threshold_;
  const int64_t balance_abs_threshold_;
  const double balance_rel_threshold_;
  const Duration eviction_interval_;
  const size_t max_tree_size_;
  const bool miss_smallest_tree_;
  Dice dice_;

  mutable Mutex mutex_;
  TextTree texts_ ABSL_GUARDED_BY(mutex_);
  TextTree tokens_ ABSL_GUARDED_BY(mutex_);
  TimePoint evicted_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace portico::router
