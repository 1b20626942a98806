#include "router/policy/bucket.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace portico::router {
namespace {

constexpr int64_t kFirstMax = 4096;
// Prompt tokens that stand for one request of the thresholds.
constexpr int64_t kTokensPerRequest = 256;

}  // namespace

Bucket::Bucket(const PolicyOptions& options)
    : abs_threshold_(options.balance_abs_threshold * kTokensPerRequest),
      rel_threshold_(options.balance_rel_threshold),
      interval_(options.bucket_adjust_interval) {}

std::vector<int64_t> Bucket::Boundaries(size_t parts) const {
  std::vector<int64_t> ends;
  if (fitted_.empty()) {
    for (size_t i = 1; i < parts; ++i) {
      ends.push_back(kFirstMax * static_cast<int64_t>(i) / static_cast<int64_t>(parts));
    }
    return ends;
  }
  const int64_t total = std::accumulate(fitted_.begin(), fitted_.end(), int64_t{0});
  int64_t sum = 0;
  for (const int64_t length : fitted_) {
    sum += length;
    while (ends.size() + 1 < parts &&
           sum * static_cast<int64_t>(parts) >= total * static_cast<int64_t>(ends.size() + 1)) {
      ends.push_back(length);
    }
  }
  return ends;
}

Choice Bucket::Choose(std::span<Worker* const> candidates, const RoutingKey& key) {
  const auto [least, most] = std::minmax_element(
      candidates.begin(), candidates.end(),
      [](const Worker* a, const Worker* b) { return a->tokens() < b->tokens(); });
  const int64_t min = (*least)->tokens();
  const int64_t max = (*most)->tokens();
  const MutexLock lock(&mutex_);
  if (lengths_.size() < kMaxLengths) {
    lengths_.push_back(key.prompt_tokens);
  } else {
    lengths_[next_length_++ % kMaxLengths] = key.prompt_tokens;
  }
  if (max - min > abs_threshold_ &&
      static_cast<double>(max) > rel_threshold_ * static_cast<double>(min)) {
    return {.index = static_cast<size_t>(least - candidates.begin()), .reason = "imbalance"};
  }
  if (parts_ != candidates.size()) {
    parts_ = candidates.size();
    boundaries_ = Boundaries(parts_);
  }
  const auto end = std::lower_bound(boundaries_.begin(), boundaries_.end(), key.prompt_tokens);
  return {.index = static_cast<size_t>(end - boundaries_.begin()), .reason = "length"};
}

void Bucket::OnTick(TimePoint now) {
  const MutexLock lock(&mutex_);
  if (now - adjusted_ < interval_) return;
  adjusted_ = now;
  if (lengths_.empty()) return;
  fitted_ = std::exchange(lengths_, {});
  next_length_ = 0;
  std::sort(fitted_.begin(), fitted_.end());
  parts_ = 0;
}

}  // namespace portico::router
