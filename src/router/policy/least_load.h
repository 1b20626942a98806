// least_load: the worker with the least expected wait, which is
//
//   max(waiting requests x mean prefill, tokens sent and not begun) / throughput + lambda k / (1 - k)
//
// in seconds. Waiting requests, throughput and k (the share of KV cells in use) are what the worker
// has reported within 30 s; the tokens sent are this gateway's own count, which makes up for the
// report's age. lambda = 0.15 s (--least-load-kv-pressure-weight), mean prefill = 1,024 tokens,
// throughput 2,000 tokens/s for a worker that reports none. Where no candidate has reported: the one
// with the fewest requests. With --least-load-max-waiting-requests, workers with as many waiting are
// left out while there is another. One of equals at random.
#pragma once

#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"
#include "router/policy/worker_load.h"

namespace portico::router {

class LeastLoad final : public Policy {
 public:
  explicit LeastLoad(const PolicyOptions& options);

  std::string_view name() const override { return "least_load"; }
  bool wants_reports() const override { return true; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;

 private:
  const WaitModel model_;
  const int64_t max_waiting_;
  Dice dice_;
};

}  // namespace portico::router
