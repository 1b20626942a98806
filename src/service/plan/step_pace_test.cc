#include "service/plan/step_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "base/clock.h"
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
  pace.Learn({.items = 64, .took = microseconds(64 * 2)});
  EXPECT_EQ(pace.WorkOf(64, 100), 64u * 200);
  EXPECT_EQ(pace.WorkOf(127, 100), 127u * 200);
  // Twice as many items take twice as long each, as far as is known.
  EXPECT_EQ(pace.WorkOf(256, 100), 256u * 800);
  EXPECT_EQ(pace.WorkOf(20, 100), 20u * 100);
  pace.Learn({.items = 256, .took = microseconds(256)});
  EXPECT_EQ(pace.WorkOf(256, 10), 256u * 100);
}

TEST(StepPace, OneLongStepDoesNotDecide) {
  StepPace pace;
  pace.Learn({.items = 100, .took = microseconds(100 * 8)});
  pace.Learn({.items = 100, .took = std::chrono::seconds(10)});
  EXPECT_EQ(pace.WorkOf(100, 1), 100u * 1600);
  for (int i = 0; i < 100; ++i) pace.Learn({.items = 100, .took = microseconds(100 * 8)});
  EXPECT_NEAR(static_cast<double>(pace.WorkOf(100, 1)), 80'000, 2'000);
  // A few items tell nothing of many.
  pace.Learn({.items = 3, .took = std::chrono::seconds(1)});
  EXPECT_NEAR(static_cast<double>(pace.WorkOf(100, 1)), 80'000, 2'000);
}

// 16 messages of 100 KB made every chat of 16 messages a long one.
TEST(StepPace, WhatTheTextTakesIsNotTheMessages) {
  StepPace pace;
  pace.Learn({.items = 16, .bytes = 1'600'000, .took = std::chrono::milliseconds(10)});
  EXPECT_EQ(pace.WorkOf(16, kMessageWork), 16 * kMessageWork);
  pace.Learn({.items = 32, .bytes = 100'000, .took = microseconds(1000 + 32 * 8)});
  EXPECT_EQ(pace.WorkOf(32, kMessageWork), 32u * 800);
  // A template that is slow afterwards is known to be before long.
  pace.Learn({.items = 16, .took = microseconds(16 * 20)});
  pace.Learn({.items = 16, .took = microseconds(16 * 20)});
  EXPECT_GE(pace.WorkOf(16, kMessageWork), 16u * 1000);
}

// Each refused after its first message, a few such chats made a slow template look quick.
TEST(StepPace, AStepThatHasEndedEarlyTellsOnlyThatItemsTakeNoLess) {
  StepPace pace;
  const auto fail = [&pace](Duration took) {
    pace.Learn({.items = 100, .bytes = 0, .took = took, .is_whole = false});
  };
  fail(microseconds(1));
  EXPECT_EQ(pace.WorkOf(100, kMessageWork), 100 * kMessageWork);
  pace.Learn({.items = 100, .took = microseconds(100 * 8)});
  for (int i = 0; i < 100; ++i) fail(microseconds(1));
  EXPECT_EQ(pace.WorkOf(100, kMessageWork), 100u * 800);
  fail(microseconds(100 * 12));
  EXPECT_EQ(pace.WorkOf(100, kMessageWork), 100u * 1200);
}

// The product was cut to its lowest bits.
TEST(StepPace, MoreThanCanBeCountedIsTooLongForAShardAndPassesOnThePool) {
  StepPace pace;
  pace.Learn({.items = 16, .took = std::chrono::seconds(100)});
  const size_t work = pace.WorkOf(size_t{1} << 23, kMessageWork);
  EXPECT_EQ(work, StepPace::kMostWork);
  StepGate shard = StepGate::OnShard();
  EXPECT_FALSE(shard.Pass(work).ok());
  const auto client = std::make_shared<char>();
  StepGate pool = StepGate::OnPool(client);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pool.Pass(work).ok());
}

}  // namespace
}  // namespace portico
