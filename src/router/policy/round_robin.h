// round_robin: each request goes to the worker after the last one, in the order of their numbers.
// A worker that cannot take requests is passed over without shifting the turns of the others: the
// turn is counted over numbers, not over places in the list.
#pragma once

#include <atomic>

#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class RoundRobin final : public Policy {
 public:
  explicit RoundRobin(const PolicyOptions&) {}

  std::string_view name() const override { return "round_robin"; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;

 private:
  std::atomic<uint64_t> last_{0};  // the number of the worker that had the last turn
};

}  // namespace portico::router
