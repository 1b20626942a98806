// power_of_two: of two workers drawn at random the one with less load; the first drawn where they are
// equal. The expected greatest load of n workers is then O(log log n) above the mean, against
// O(log n / log log n) of one drawn at random (Mitzenmacher, "The Power of Two Choices in Randomized
// Load Balancing", 2001).
//
// Load is the requests in flight through this gateway, or with --power-of-two-load-metric
// expected_wait the seconds that least_load computes; where either worker has not reported, requests.
#pragma once

#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"
#include "router/policy/worker_load.h"

namespace portico::router {

class PowerOfTwo final : public Policy {
 public:
  explicit PowerOfTwo(const PolicyOptions& options);

  std::string_view name() const override { return "power_of_two"; }
  bool wants_reports() const override { return by_wait_; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;

 private:
  const bool by_wait_;
  const WaitModel model_;
  Dice dice_;
};

}  // namespace portico::router
