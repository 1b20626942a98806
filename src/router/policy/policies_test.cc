// The rules of the policies that need no more than counts and a session.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "router/policy/bucket.h"
#include "router/policy/consistent_hashing.h"
#include "router/policy/fleet_for_test.h"
#include "router/policy/least_load.h"
#include "router/policy/make_policy.h"
#include "router/policy/manual.h"
#include "router/policy/power_of_two.h"
#include "router/policy/prefix_hash.h"
#include "router/policy/random.h"

namespace portico::router {
namespace {

PolicyOptions Seeded() { return {.seed = 7}; }

TEST(MakePolicyTest, EveryNameMakesThePolicyOfThatName) {
  for (const std::string_view name : PolicyNames()) {
    auto policy = MakePolicy(name, {});
    ASSERT_TRUE(policy.ok());
    EXPECT_EQ((*policy)->name(), name);
  }
  EXPECT_FALSE(MakePolicy("best", {}).ok());
}

TEST(MakePolicyTest, EveryPolicyTakesARequestOfWhichNothingIsKnown) {
  TestFleet fleet(3);
  for (const std::string_view name : PolicyNames()) {
    auto policy = *MakePolicy(name, {});
    for (int i = 0; i < 10; ++i) {
      const size_t index = fleet.Send(*policy, {});
      ASSERT_LT(index, 3u) << name;
      fleet.End(*policy, index);
    }
    EXPECT_EQ(policy->Choose(fleet.all().first(1), {}).index, 0u) << name;
  }
}

TEST(RandomPolicyTest, TakesAllAboutEquallyOften) {
  TestFleet fleet(4);
  RandomPolicy policy(Seeded());
  std::map<size_t, int> count;
  for (int i = 0; i < 4000; ++i) ++count[policy.Choose(fleet.all(), {}).index];
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(count[i], 1000, 120);
}

TEST(PowerOfTwoTest, NeverTakesTheMostLoadedAndOftenNotTheLeast) {
  TestFleet fleet(4);
  fleet.Load(0, 5);
  fleet.Load(1, 3);
  fleet.Load(2, 2);
  PowerOfTwo policy(Seeded());
  std::map<size_t, int> count;
  for (int i = 0; i < 1200; ++i) ++count[policy.Choose(fleet.all(), {}).index];
  EXPECT_EQ(count[0], 0);
  EXPECT_NEAR(count[3], 600, 80) << "half of the pairs have the least";
  EXPECT_NEAR(count[1], 200, 60);
}

TEST(LeastLoadTest, TakesTheFewestRequestsUntilWorkersReport) {
  TestFleet fleet(3);
  fleet.Load(0, 2);
  fleet.Load(2, 1);
  LeastLoad policy(Seeded());
  EXPECT_EQ(policy.Choose(fleet.all(), {}).index, 1u);
  const TimePoint now = Clock::now();
  fleet[0].SetReport({.waiting_requests = 0, .token_usage = 0.1, .throughput = 1000, .at = now});
  fleet[1].SetReport({.waiting_requests = 9, .token_usage = 0.1, .throughput = 1000, .at = now});
  fleet[2].SetReport({.waiting_requests = 0, .token_usage = 0.95, .throughput = 1000, .at = now});
  EXPECT_EQ(policy.Choose(fleet.all(), {}).index, 0u);
  fleet.Load(0, 0, 20000);
  EXPECT_EQ(policy.Choose(fleet.all(), {}).index, 2u) << "KV pressure costs 2.85 s, the queue 20 s";
}

TEST(ConsistentHashingTest, ALostWorkerMovesItsOwnSessionsOnly) {
  TestFleet fleet(8);
  ConsistentHashing policy(Seeded());
  const std::vector<Worker*> rest = fleet.Without(3);
  std::map<size_t, int> count;
  std::set<Worker*> heirs;
  for (int i = 0; i < 4000; ++i) {
    const std::string session = "session " + std::to_string(i);
    Worker* before = fleet.all()[policy.Choose(fleet.all(), {.session = session}).index];
    Worker* after = rest[policy.Choose(rest, {.session = session}).index];
    ++count[before->number()];
    if (before == &fleet[3]) {
      heirs.insert(after);
    } else {
      ASSERT_EQ(before, after);
    }
  }
  EXPECT_EQ(heirs.size(), 7u);
  for (const auto& [worker, sessions] : count) EXPECT_NEAR(sessions, 500, 120);
}

TEST(PrefixHashTest, PromptsThatBeginAlikeMeetUntilTheirWorkerIsFull) {
  TestFleet fleet(4);
  PrefixHash policy(Seeded());
  const std::string prefix(1024, 'p');
  const std::string a = prefix + "one";
  const std::string b = prefix + "two";
  const size_t home = policy.Choose(fleet.all(), TextKey(a)).index;
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(b)).index, home);
  fleet.Load(home, 14);
  // The mean is 15 / 4; home is 14 > 3.75 x 1.25 and > 3.75 + 10.
  const Choice next = policy.Choose(fleet.all(), TextKey(b));
  EXPECT_NE(next.index, home);
  EXPECT_EQ(next.reason, "next by prefix");
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(a)).index, next.index);
}

TEST(ManualTest, ASessionKeepsItsWorkerAndComesBackToIt) {
  TestFleet fleet(4);
  Manual policy(Seeded());
  const RoutingKey key{.session = "me"};
  const size_t home = policy.Choose(fleet.all(), key).index;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(policy.Choose(fleet.all(), key).index, home);
  const std::vector<Worker*> rest = fleet.Without(home);
  Worker* second = rest[policy.Choose(rest, key).index];
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rest[policy.Choose(rest, key).index], second);
  EXPECT_EQ(policy.Choose(fleet.all(), key).index, home);
  policy.OnWorkerRemoved(fleet[home]);
  EXPECT_EQ(fleet.all()[policy.Choose(fleet.all(), key).index], second);
}

TEST(ManualTest, MinGroupSpreadsSessionsAndIdleOnesAreForgotten) {
  TestFleet fleet(4);
  PolicyOptions options = Seeded();
  options.assignment_mode = "min_group";
  options.max_idle = std::chrono::seconds(100);
  Manual policy(options);
  std::map<size_t, int> count;
  for (int i = 0; i < 40; ++i) {
    const std::string session = std::to_string(i);
    ++count[policy.Choose(fleet.all(), {.session = session}).index];
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(count[i], 10);
  EXPECT_EQ(policy.sessions(), 40u);
  policy.OnTick(Clock::now() + std::chrono::seconds(50));
  EXPECT_EQ(policy.sessions(), 40u);
  policy.OnTick(Clock::now() + std::chrono::seconds(101));
  EXPECT_EQ(policy.sessions(), 0u);
}

TEST(BucketTest, LengthsAreDividedByTheSumOfThem) {
  TestFleet fleet(2);
  Bucket policy(Seeded());
  EXPECT_EQ(policy.Choose(fleet.all(), {.prompt_tokens = 100}).index, 0u);
  EXPECT_EQ(policy.Choose(fleet.all(), {.prompt_tokens = 3000}).index, 1u);
  // From now on nine in ten have 100 tokens, one has 10,000: the long one is its own half.
  for (int i = 0; i < 100; ++i) {
    policy.Choose(fleet.all(), {.prompt_tokens = i % 10 == 0 ? 10000 : 100});
  }
  policy.OnTick(Clock::now());
  EXPECT_EQ(policy.Choose(fleet.all(), {.prompt_tokens = 5000}).index, 0u);
  EXPECT_EQ(policy.Choose(fleet.all(), {.prompt_tokens = 10001}).index, 1u);
  fleet.Load(0, 0, 100000);
  EXPECT_EQ(policy.Choose(fleet.all(), {.prompt_tokens = 100}).index, 1u) << "out of balance";
}

}  // namespace
}  // namespace portico::router
