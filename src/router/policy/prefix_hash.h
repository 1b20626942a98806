// prefix_hash: requests whose prompts begin alike go to one worker, within a bound on its load. Of the
// prompt the first --prefix-token-count tokens (256), or over HTTP four times as many bytes, are
// hashed; workers are asked in the order of their rendezvous weights for that hash. One is passed over
// while its requests in flight exceed both --prefix-hash-load-factor (1.25) times the mean, with this
// request in it, and the mean by --prefix-hash-balance-abs-threshold (10); this is consistent hashing
// with bounded loads (Mirrokni, Thorup, Zadimoghaddam, 2018). All passed over, or no prompt: the least
// loaded.
#pragma once

#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class PrefixHash final : public Policy {
 public:
  explicit PrefixHash(const PolicyOptions& options);

  std::string_view name() const override { return "prefix_hash"; }
  bool wants_prompt() const override { return true; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;

 private:
  const size_t tokens_;
  const double factor_;
  const double abs_threshold_;
  Dice dice_;
};

}  // namespace portico::router
