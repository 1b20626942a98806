#include "router/policy/power_of_two.h"

namespace portico::router {

PowerOfTwo::PowerOfTwo(const PolicyOptions& options)
    : by_wait_(options.power_of_two_load_metric == "expected_wait"),
      model_{.kv_pressure_weight = options.least_load_kv_pressure_weight,
             .default_throughput = options.least_load_default_throughput,
             .mean_prefill_tokens = static_cast<double>(options.least_load_mean_prefill_tokens)},
      dice_(options.seed) {}

Choice PowerOfTwo::Choose(std::span<Worker* const> candidates, const RoutingKey&) {
  if (candidates.size() == 1) return {.index = 0, .reason = "only one"};
  const size_t a = dice_.Below(candidates.size());
  size_t b = dice_.Below(candidates.size() - 1);
  if (b >= a) ++b;
  if (by_wait_) {
    bool knows_a = false;
    bool knows_b = false;
    const double wait_a = ExpectedWait(*candidates[a], model_, &knows_a);
    const double wait_b = ExpectedWait(*candidates[b], model_, &knows_b);
    if (knows_a && knows_b) return {.index = wait_a <= wait_b ? a : b, .reason = "shorter wait"};
  }
  const bool first = RequestsOn(*candidates[a]) <= RequestsOn(*candidates[b]);
  return {.index = first ? a : b, .reason = "less loaded"};
}

}  // namespace portico::router
