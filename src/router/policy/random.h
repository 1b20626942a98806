// random: each request goes to one of the workers, all equally likely.
#pragma once

#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(const PolicyOptions& options);

  std::string_view name() const override { return "random"; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;

 private:
  Dice dice_;
};

}  // namespace portico::router
