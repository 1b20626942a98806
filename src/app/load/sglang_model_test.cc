#include "app/load/sglang_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace portico {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SglangReplicas, HaveGpusOfTheirOwn) {
  EXPECT_THAT(ReplicaFlags({"--tp", "2", "--dp=2", "--base-gpu-id", "1"}, 3),
              ElementsAre("--base-gpu-id", "13"));
  EXPECT_THAT(ReplicaFlags({"--device", "cpu"}, 3), IsEmpty());
}

// All of them published at the address of the first one, and all but that one failed to start.
TEST(SglangReplicas, PublishCacheEventsAtAddressesOfTheirOwn) {
  const auto events_of = [](const std::string& config, int index) {
    const auto flags =
        ReplicaFlags({"--device=cpu", "--dp-size", "2", "--kv-events-config", config}, index);
    return flags.size() == 2 && flags[0] == "--kv-events-config" ? flags[1] : "none";
  };
  EXPECT_EQ(events_of(R"({"publisher":"zmq","endpoint":"tcp://*:5600","hwm":9,)"
                      R"("replay_endpoint":"tcp://[::]:5800"})",
                      3),
            R"({"publisher":"zmq","endpoint":"tcp://*:5606","hwm":9,)"
            R"("replay_endpoint":"tcp://[::]:5806"})");
  // The second one published where the first one answers what subscribers have missed.
  EXPECT_EQ(events_of(R"({"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5559"})", 1),
            R"({"endpoint":"tcp://*:5561","replay_endpoint":"tcp://*:5563"})");
  EXPECT_EQ(events_of(R"({"endpoint":"tcp://*:5559","replay_endpoint":"tcp://*:5557"})", 2),
            R"({"endpoint":"tcp://*:5567","replay_endpoint":"tcp://*:5565"})");
  EXPECT_EQ(events_of(R"({"publisher":"zmq","endpoint":"ipc:///run/kv"})", 1),
            R"({"publisher":"zmq","endpoint":"ipc:///run/kv-1"})");
  EXPECT_EQ(events_of(R"({"publisher":"zmq"})", 1),
            R"({"publisher":"zmq","endpoint":"tcp://*:5559"})");
  EXPECT_EQ(events_of(R"({"publisher":"zmq","endpoint":"inproc://kv"})", 1),
            R"({"publisher":"zmq","endpoint":"inproc://kv"})");
  EXPECT_EQ(events_of("no JSON", 1), "none");
}

}  // namespace
}  // namespace portico
