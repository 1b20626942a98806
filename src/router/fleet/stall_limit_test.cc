#include "router/fleet/stall_limit.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StallLimitTest, AWorkerHasTheTimeToAnswerWhatItIsAskedInSilence) {
  // With a limit of a second each answer that took longer was one of a stalled worker: it had not been asked before.
  EXPECT_EQ(StallLimit(seconds(0)), seconds(0));
  EXPECT_EQ(StallLimit(milliseconds(10)), seconds(2));
  EXPECT_EQ(StallLimit(seconds(1)), seconds(2));
  EXPECT_EQ(StallLimit(seconds(10)), seconds(10));
}

TEST(StallLimitTest, AnEngineHasTwiceTheLimit) {
  EXPECT_EQ(HangLimit(seconds(2), false), seconds(4));
  EXPECT_EQ(HangLimit(seconds(10), false), seconds(20));
  EXPECT_EQ(HangLimit(seconds(10), true), seconds(20));
}

TEST(StallLimitTest, AWorkerWhoseNextPageIsLateIsJudgedByItsProbesInTime) {
  // The first page was good until just that time at which the worker was stalled.
  for (int limit = 2; limit <= 100; ++limit) {
    const Duration probe_tells = kSilence + StepsLast(seconds(limit)) + kSilence;
    EXPECT_GE(HangLimit(seconds(limit), true), probe_tells + 2 * kSilence) << limit;
    EXPECT_GE(HangLimit(seconds(limit), true), HangLimit(seconds(limit), false)) << limit;
  }
}

}  // namespace
}  // namespace portico::router
