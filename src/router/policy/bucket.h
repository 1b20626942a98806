// bucket: prompts of like length go to one worker, so that short ones do not wait behind long ones
// (meant for prefill workers). Lengths are divided among the workers in the order of their numbers:
// at first 0 to 4,096 in equal parts; every --bucket-adjust-interval-secs (5) the boundaries are set
// anew so that each part had the same sum of lengths since the last time (of the last 2,048 prompts at
// most). The unit is estimated prompt tokens, over HTTP a quarter of the text's bytes.
//
// While prompt tokens in flight are out of balance (max - min > --balance-abs-threshold x 256 and
// max > --balance-rel-threshold x min), the worker with the fewest gets the request.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class Bucket final : public Policy {
 public:
  explicit Bucket(const PolicyOptions& options);

  std::string_view name() const override { return "bucket"; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;
  void OnTick(TimePoint now) override;

 private:
  static constexpr size_t kMaxLengths = 2048;

  // Upper ends of all parts but the last, for so many workers.
  std::vector<int64_t> Boundaries(size_t parts) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t abs_threshold_;  // tokens
  const double rel_threshold_;
  const Duration interval_;

  Mutex mutex_;
  std::vector<int64_t> lengths_ ABSL_GUARDED_BY(mutex_);  // since the last adjustment
  size_t next_length_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int64_t> fitted_ ABSL_GUARDED_BY(mutex_);  // sorted lengths of the last interval
  std::vector<int64_t> boundaries_ ABSL_GUARDED_BY(mutex_);
  size_t parts_ ABSL_GUARDED_BY(mutex_) = 0;  // that boundaries_ are for
  TimePoint adjusted_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace portico::router
