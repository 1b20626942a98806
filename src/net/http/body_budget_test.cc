#include "net/http/body_budget.h"

#include <gtest/gtest.h>

#include <utility>

namespace portico::net {
namespace {

constexpr size_t kMebibyte = 1 << 20;

TEST(BodyBudget, GivesBackWhatALeaseHasTaken) {
  auto budget = std::make_shared<BodyBudget>(4 * kMebibyte);
  {
    BodyLease lease;
    EXPECT_TRUE(lease.Hold(budget, kMebibyte));
    EXPECT_TRUE(lease.Hold(budget, 3 * kMebibyte));
    EXPECT_EQ(budget->taken(), 3 * kMebibyte);
    BodyLease moved = std::move(lease);
    EXPECT_EQ(budget->taken(), 3 * kMebibyte);
    EXPECT_TRUE(moved.Hold(budget, 2 * kMebibyte));
    EXPECT_EQ(budget->taken(), 2 * kMebibyte);
  }
  EXPECT_EQ(budget->taken(), 0u);
}

TEST(BodyBudget, RefusesBeyondItsBoundAndKeepsWhatWasTaken) {
  auto budget = std::make_shared<BodyBudget>(4 * kMebibyte);
  BodyLease first;
  BodyLease second;
  ASSERT_TRUE(first.Hold(budget, 3 * kMebibyte));
  EXPECT_FALSE(second.Hold(budget, 2 * kMebibyte));
  EXPECT_FALSE(first.Hold(budget, 5 * kMebibyte));
  EXPECT_EQ(budget->taken(), 3 * kMebibyte);
  EXPECT_EQ(budget->refused(), 2u);
  first.Release();
  EXPECT_TRUE(second.Hold(budget, 2 * kMebibyte));
}

TEST(BodyBudget, SmallBodiesAreNeverRefused) {
  auto budget = std::make_shared<BodyBudget>(kMebibyte);
  BodyLease large;
  ASSERT_TRUE(large.Hold(budget, kMebibyte));
  BodyLease small;
  EXPECT_TRUE(small.Hold(budget, BodyBudget::kSmallBody));
  EXPECT_TRUE(budget->HasRoomFor(BodyBudget::kSmallBody));
  EXPECT_FALSE(budget->HasRoomFor(BodyBudget::kSmallBody + 1));
  EXPECT_EQ(budget->taken(), kMebibyte);
}

}  // namespace
}  // namespace portico::net
