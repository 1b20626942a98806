#include "service/plan/step_pace.h"

#include <gtest/gtest.h>

#include <chrono>

#include "service/plan/step_gate.h"

namespace portico {
namespace {

using std::chrono::microseconds;

TEST(StepPace, BeforeAnythingIsKnownAnItemTakesTheLeast) {
  const StepPace pace;
  EXPECT_EQ(pace.WorkOf(0, 256), 0u);
  EXPECT_EQ(pace.WorkOf(10, 256), 2560u);
  EXPECT_EQ(pace.WorkOf(1000, 256), 256'000u);
}

// A template that looks back at all messages took 13 ms of a shard for 512 messages: as many were let pass as for any other.
TEST(StepPace, ATemplateThatLooksBackIsTooLongForAShardSooner) {
  StepPace pace;
  pace.Learn(64, microseconds(64 * 2));
  EXPECT_EQ(pace.WorkOf(64, 100), 64u * 200);
  EXPECT_EQ(pace.WorkOf(127, 100), 127u * 200);
  // Twice as many items take twice as long each, as far as is known.
  EXPECT_EQ(pace.WorkOf(256, 100), 256u * 800);
  EXPECT_EQ(pace.WorkOf(20, 100), 20u * 100);
  pace.Learn(256, microseconds(256));
  EXPECT_EQ(pace.WorkOf(256, 10), 256u * 100);
}

TEST(StepPace, OneStepThatHasWaitedForAProcessorDoesNotDecide) {
  StepPace pace;
  pace.Learn(100, microseconds(100 * 8));
  pace.Learn(100, std::chrono::seconds(10));
  EXPECT_EQ(pace.WorkOf(100, 1), 100u * 1600);
  for (int i = 0; i < 100; ++i) pace.Learn(100, microseconds(100 * 8));
  EXPECT_NEAR(static_cast<double>(pace.WorkOf(100, 1)), 80'000, 2'000);
  // A few items tell nothing of many.
  pace.Learn(3, std::chrono::seconds(1));
  EXPECT_NEAR(static_cast<double>(pace.WorkOf(100, 1)), 80'000, 2'000);
}

}  // namespace
}  // namespace portico
