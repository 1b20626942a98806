#include "router/retry.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

int TakeAll(RetryBudget& budget) {
  int taken = 0;
  while (budget.Take()) ++taken;
  return taken;
}

TEST(RetryBudgetTest, HasAReserveAndThenOneRetryForFiveRequests) {
  RetryBudget budget;
  EXPECT_EQ(TakeAll(budget), 100);
  for (int i = 0; i < 4; ++i) budget.NoteRequest();
  EXPECT_FALSE(budget.Take());
  budget.NoteRequest();
  EXPECT_TRUE(budget.Take());
  EXPECT_FALSE(budget.Take());
  for (int i = 0; i < 500; ++i) budget.NoteRequest();
  EXPECT_EQ(TakeAll(budget), 100);
}

TEST(RetryBudgetTest, LongCalmSavesNoMoreThanAThousandRetries) {
  RetryBudget budget;
  for (int i = 0; i < 100'000; ++i) budget.NoteRequest();
  EXPECT_EQ(TakeAll(budget), 1000);
}

TEST(RetryPauseTest, GrowsToItsBoundWithItsJitter) {
  const RetryOptions options{.initial_backoff = std::chrono::milliseconds(100),
                             .max_backoff = std::chrono::milliseconds(350),
                             .multiplier = 2,
                             .jitter = 0};
  EXPECT_NEAR(Seconds(RetryPause(options, 2, 0.5)), 0.1, 1e-6);
  EXPECT_NEAR(Seconds(RetryPause(options, 3, 0.5)), 0.2, 1e-6);
  EXPECT_NEAR(Seconds(RetryPause(options, 9, 0.5)), 0.35, 1e-6);
}

}  // namespace
}  // namespace portico::router
