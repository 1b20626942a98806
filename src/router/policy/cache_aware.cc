#include "router/policy/cache_aware.h"

#include <algorithm>

#include "router/policy/worker_load.h"

namespace portico::router {

CacheAware::CacheAware(const PolicyOptions& options)
    : cache_threshold_(options.cache_threshold),
      balance_abs_threshold_(options.balance_abs_threshold),
      balance_rel_threshold_(options.balance_rel_threshold),
      eviction_interval_(options.eviction_interval),
      max_tree_size_(static_cast<size_t>(std::max<int64_t>(0, options.max_tree_size))),
      miss_smallest_tree_(options.cache_aware_miss == "smallest-tree"),
      dice_(options.seed),
      // One of the two stays empty: a gateway has prompts as text, a routed engine as tokens.
      texts_(static_cast<size_t>(options.index_bytes)),
      tokens_(static_cast<size_t>(options.index_bytes), TextUnit::kTokens) {}

std::string_view CacheAware::PromptOf(const RoutingKey& key) {
  if (key.tokens.empty()) return key.text;
  return {reinterpret_cast<const char*>(key.tokens.data()), key.tokens.size_bytes()};
}

Choice CacheAware::Choose(std::span<Worker* const> candidates, const RoutingKey& key) {
  const auto [least, most] = std::minmax_element(
      candidates.begin(), candidates.end(),
      [](const Worker* a, const Worker* b) { return a->requests() < b->requests(); });
  const int64_t min = (*least)->requests();
  const int64_t max = (*most)->requests();
  if (max - min > balance_abs_threshold_ &&
      static_cast<double>(max) > balance_rel_threshold_ * static_cast<double>(min)) {
    return {.index = LeastLoaded(candidates, dice_), .reason = "imbalance"};
  }
  const std::string_view prompt = PromptOf(key);
  if (prompt.empty()) return {.index = LeastLoaded(candidates, dice_), .reason = "least loaded"};
  const MutexLock lock(&mutex_);
  const TextTree& tree = TreeFor(key);
  const TextTree::Match match = tree.Find(prompt);
  if (match.found && match.ratio() > cache_threshold_) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i]->number() == match.worker) {
        return {.index = i, .reason = "hit", .matched = match.ratio()};
      }
    }
  }
  if (!miss_smallest_tree_) return {.index = LeastLoaded(candidates, dice_), .reason = "miss"};
  const auto smallest =
      std::min_element(candidates.begin(), candidates.end(), [&](const Worker* a, const Worker* b) {
        return tree.chars_of(a->number()) < tree.chars_of(b->number());
      });
  return {.index = static_cast<size_t>(smallest - candidates.begin()), .reason = "miss"};
}

int64_t CacheAware::OnStart(Worker& worker, const RoutingKey& key) {
  const std::string_view prompt = PromptOf(key);
  if (prompt.empty()) return key.prompt_tokens;
  const MutexLock lock(&mutex_);
  TreeFor(key).Insert(prompt, worker.number());
  return key.prompt_tokens;
}

void CacheAware::OnWorkerRemoved(Worker& worker) {
  const MutexLock lock(&mutex_);
  texts_.RemoveWorker(worker.number());
  tokens_.RemoveWorker(worker.number());
}

void CacheAware::OnTick(TimePoint now) {
  const MutexLock lock(&mutex_);
  if (now - evicted_ < eviction_interval_) return;
  evicted_ = now;
  texts_.Trim(max_tree_size_);
  tokens_.Trim(max_tree_size_);
}

size_t CacheAware::bytes() const {
  const MutexLock lock(&mutex_);
  return texts_.bytes() + tokens_.bytes();
}

}  // namespace portico::router
