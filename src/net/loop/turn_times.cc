#include "net/loop/turn_times.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/thread_time.h"

namespace portico::net {

void TurnTimes::CountIn(Registry& registry, int shard) {
  const std::vector<double> bounds = {0.0001, 0.001, 0.002, 0.005, 0.01, 0.02,
                                      0.05,   0.1,   0.2,   0.5,   1};
  const MetricLabels labels = {{"shard", std::to_string(shard)}};
  wall_ = &registry.AddHistogram(
      "portico_shard_turn_seconds",
      "Turns of a shard's event loop; all other connections of the shard wait meanwhile.", bounds,
      labels);
  cpu_ = &registry.AddHistogram(
      "portico_shard_long_turn_cpu_seconds",
      "CPU time of those of a millisecond and more, without waiting for a processor.", bounds,
      labels);
}

void TurnTimes::Count(Duration took) {
  wall_->Observe(Seconds(took));
  since_read_ += took;
  if (since_read_ < kLong) return;
  const Duration now = ThreadTime();
  if (took >= kLong) cpu_->Observe(Seconds(std::min(took, now - cpu_read_)));
  cpu_read_ = now;
  since_read_ = Duration::zero();
}

}  // namespace portico::net
