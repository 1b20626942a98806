// consistent_hashing: requests of one session go to one worker: the one with the greatest hash of
// (session, worker's URL), which is rendezvous hashing (Thaler, Ravishankar, 1998). When a worker goes,
// its sessions spread over all others and no other session moves; when it comes back they return. A
// ring with 150 points a worker, as smg has it, does the same with a spread of about 8 %. Gateways with
// the same workers agree without talking. 64 workers take about 0.5 us. Without a session: at random.
#pragma once

#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class ConsistentHashing final : public Policy {
 public:
  explicit ConsistentHashing(const PolicyOptions& options);

  std::string_view name() const override { return "consistent_hashing"; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;

 private:
  Dice dice_;
};

}  // namespace portico::router
