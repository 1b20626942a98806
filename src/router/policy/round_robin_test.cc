#include "router/policy/round_robin.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "router/policy/make_policy.h"

namespace portico::router {
namespace {

class RoundRobinTest : public ::testing::Test {
 protected:
  RoundRobinTest() {
    for (int i = 0; i < 3; ++i) {
      workers_.push_back(std::make_unique<Worker>(*ParseWorkerUrl("http://127.0.0.1:1")));
      candidates_.push_back(workers_.back().get());
    }
  }

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> candidates_;
  RoundRobin policy_{PolicyOptions{}};
};

TEST_F(RoundRobinTest, TakesTurns) {
  const size_t first = policy_.Choose(candidates_, {}).index;
  EXPECT_EQ(policy_.Choose(candidates_, {}).index, (first + 1) % 3);
  EXPECT_EQ(policy_.Choose(candidates_, {}).index, (first + 2) % 3);
  EXPECT_EQ(policy_.Choose(candidates_, {}).index, first);
}

TEST_F(RoundRobinTest, PassesOverAMissingWorkerWithoutShiftingTheTurns) {
  while (policy_.Choose(candidates_, {}).index != 0) {
  }
  std::vector<Worker*> two = {candidates_[0], candidates_[2]};
  EXPECT_EQ(policy_.Choose(two, {}).index, 1u);
  EXPECT_EQ(policy_.Choose(candidates_, {}).index, 0u);
}

TEST(MakePolicyTest, NamesWhatThereIsWhenANameIsUnknown) {
  const auto made = MakePolicy("fastest", PolicyOptions{});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(MessageOf(made.status()).find("round_robin"), std::string::npos);
}

TEST(MakePolicyTest, MakesEveryPolicyThatItNames) {
  for (const std::string_view name : PolicyNames()) {
    const auto made = MakePolicy(name, PolicyOptions{});
    ASSERT_TRUE(made.ok()) << name;
    EXPECT_EQ((*made)->name(), name);
  }
}

}  // namespace
}  // namespace portico::router
