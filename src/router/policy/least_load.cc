#include "router/policy/least_load.h"

#include <limits>

namespace portico::router {

LeastLoad::LeastLoad(const PolicyOptions& options)
    : model_{.kv_pressure_weight = options.least_load_kv_pressure_weight,
             .default_throughput = options.least_load_default_throughput,
             .mean_prefill_tokens = static_cast<double>(options.least_load_mean_prefill_tokens)},
      max_waiting_(options.least_load_max_waiting_requests),
      dice_(options.seed) {}

Choice LeastLoad::Choose(std::span<Worker* const> candidates, const RoutingKey&) {
  bool any_known = false;
  size_t best = candidates.size();
  double least = std::numeric_limits<double>::infinity();
  size_t ties = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    bool known = false;
    const double wait = ExpectedWait(*candidates[i], model_, &known);
    any_known |= known;
    if (known && max_waiting_ > 0 &&
        candidates[i]->report().waiting_requests >= static_cast<double>(max_waiting_)) {
      continue;
    }
    if (wait < least) {
      best = i;
      least = wait;
      ties = 1;
    } else if (wait == least && dice_.Below(++ties) == 0) {
      best = i;
    }
  }
  if (any_known && best < candidates.size()) return {.index = best, .reason = "shortest wait"};
  return {.index = LeastLoaded(candidates, dice_), .reason = "least loaded"};
}

}  // namespace portico::router
