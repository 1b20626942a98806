#include "router/fleet/health_monitor.h"

#include <gtest/gtest.h>

#include <utility>

#include "router/proxy/gateway_for_test.h"

namespace portico::router {
namespace {

// Without probes it counted as healthy again a moment later, and every request in its turn found it gone.
TEST(HealthMonitorTest, AWorkerWhoseProcessHasEndedIsDownUntilThatRunsAgainThoughNothingIsProbed) {
  GatewayOptions options;
  options.health.enabled = false;
  options.load_interval = Duration::zero();
  GatewayOnShard on_shard(std::move(options));
  Gateway& gateway = on_shard.gateway();
  gateway.StartWatching();
  const WorkerPtr ended = on_shard.Add("http://127.0.0.1:9");
  const WorkerPtr other = on_shard.Add("http://127.0.0.1:10");
  const auto wait_for = [&](const WorkerPtr& worker) {
    on_shard.WaitUntil([&] { return worker->health() == Health::kHealthy; });
  };
  wait_for(ended);
  wait_for(other);
  gateway.NoteProcess(*ended, false);
  EXPECT_EQ(ended->health(), Health::kUnhealthy);
  // Between two looks at one, the monitor looks at the other.
  for (int look = 0; look < 2; ++look) {
    gateway.NoteLost(*other, false);
    wait_for(other);
  }
  EXPECT_EQ(ended->health(), Health::kUnhealthy);
  gateway.NoteProcess(*ended, true);
  wait_for(ended);
}

}  // namespace
}  // namespace portico::router
