#include "api/media.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "net/http/body_budget.h"

namespace portico::api {
namespace {

struct TextPlan {
  const ServingModel* model = nullptr;
  GenerationPlan plan;
};

TextPlan WithOneImage() {
  auto media = std::make_shared<RequestMedia>();
  media->items.emplace_back().bytes = std::make_shared<const std::string>("IMAGE");
  TextPlan planned;
  planned.plan.extras = WithMedia(nullptr, std::move(media));
  return planned;
}

// The body was counted only until it was planned, and its images waited for the engine beside any number of others.
TEST(MediaLease, MediaTakeTheShareOfTheirBodyUntilTheLastLetsGoOfThem) {
  const auto budget = std::make_shared<net::BodyBudget>(1 << 20);
  net::BodyLease lease;
  ASSERT_TRUE(lease.Hold(budget, 100000));
  TextPlan planned = WithOneImage();
  LeaseMedia(lease, planned);
  lease.Release();
  EXPECT_EQ(budget->taken(), 100000u);
  std::shared_ptr<const RequestExtras> engines = planned.plan.extras;
  planned.plan.extras = nullptr;
  EXPECT_EQ(budget->taken(), 100000u);
  engines = nullptr;
  EXPECT_EQ(budget->taken(), 0u);
}

TEST(MediaLease, APlanWithoutMediaLeavesTheLeaseWhereItIs) {
  const auto budget = std::make_shared<net::BodyBudget>(1 << 20);
  net::BodyLease lease;
  ASSERT_TRUE(lease.Hold(budget, 100000));
  TextPlan planned;
  planned.plan.extras = std::make_shared<const RequestExtras>();
  LeaseMedia(lease, planned);
  EXPECT_EQ(lease.taken(), 100000u);
}

TEST(MediaLease, OnlyPlansWithMediaOutliveTheirBodysLease) {
  StatusOr<TextPlan> planned = WithOneImage();
  EXPECT_TRUE(HoldsMedia(planned));
  planned->plan.extras = nullptr;
  EXPECT_FALSE(HoldsMedia(planned));
  planned = InvalidArgument("x", "is wrong");
  EXPECT_FALSE(HoldsMedia(planned));
  std::string other;
  EXPECT_FALSE(HoldsMedia(other));
}

}  // namespace
}  // namespace portico::api
