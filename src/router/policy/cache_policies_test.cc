// cache_aware and cost: who gets a prompt of which a part is cached somewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "router/index/block_hash.h"
#include "router/policy/cache_aware.h"
#include "router/policy/cost.h"
#include "router/policy/fleet_for_test.h"
#include "router/policy/worker_load.h"

namespace portico::router {
namespace {

std::string Text(char letter, size_t size) { return std::string(size, letter); }

std::vector<int32_t> Tokens(int32_t first, size_t size) {
  std::vector<int32_t> tokens(size);
  for (size_t i = 0; i < size; ++i) tokens[i] = first + static_cast<int32_t>(i);
  return tokens;
}

RoutingKey TokensKey(const std::vector<int32_t>& tokens) {
  return {.tokens = tokens, .prompt_tokens = static_cast<int64_t>(tokens.size())};
}

PolicyOptions Seeded() {
  PolicyOptions options;
  options.seed = 7;
  return options;
}

TEST(CacheAwareTest, AMatchAboveTheThresholdGoesWhereItWas) {
  TestFleet fleet(4);
  CacheAware policy(Seeded());
  const std::string first = Text('a', 300) + Text('b', 700);
  const size_t home = fleet.Send(policy, TextKey(first));
  // 0.3 is no hit, what is above it is.
  const std::string at = Text('a', 300) + Text('c', 700);
  const std::string above = Text('a', 300) + "b" + Text('c', 699);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(at)).reason, "miss");
  EXPECT_NE(policy.Choose(fleet.all(), TextKey(at)).index, home) << "the least loaded";
  const Choice hit = policy.Choose(fleet.all(), TextKey(above));
  EXPECT_EQ(hit.reason, "hit");
  EXPECT_EQ(hit.index, home);
  EXPECT_NEAR(hit.matched, 0.301, 1e-9);
}

TEST(CacheAwareTest, ImbalanceNeedsBothThresholds) {
  TestFleet fleet(2);
  PolicyOptions options = Seeded();
  options.balance_abs_threshold = 4;
  options.balance_rel_threshold = 1.5;
  CacheAware policy(options);
  fleet.Load(1, 1);
  const std::string text = Text('a', 400);
  EXPECT_EQ(fleet.Send(policy, TextKey(text)), 0u);
  fleet.Load(0, 4);  // 5 and 1
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(text)).index, 0u) << "4 is not more than 4";
  fleet.Load(0, 1);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(text)).reason, "imbalance");
  fleet.Load(1, 19);
  fleet.Load(0, 20);  // 26 and 20: not 1.5 times
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(text)).reason, "hit");
}

TEST(CacheAwareTest, OlderReleasesSentAMissToTheSmallestTree) {
  TestFleet fleet(2);
  PolicyOptions options = Seeded();
  options.cache_aware_miss = "smallest-tree";
  CacheAware policy(options);
  const std::string a = Text('a', 400);
  const std::string b = Text('b', 400);
  policy.OnStart(fleet[0], TextKey(a));
  fleet.Load(1, 10);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(b)).index, 1u);
}

// smg sends what a lost worker held to the first of the list, all of it, for good.
TEST(CacheAwareTest, WhatALostWorkerHeldSpreadsOverTheOthers) {
  TestFleet fleet(4);
  CacheAware policy(Seeded());
  for (int i = 0; i < 30; ++i) {
    policy.OnStart(fleet[0], TextKey(Text(static_cast<char>('A' + i), 400)));
  }
  policy.OnWorkerRemoved(fleet[0]);
  const std::vector<Worker*> rest = fleet.Without(0);
  std::set<size_t> taken;
  for (int i = 0; i < 30; ++i) {
    const std::string text = Text(static_cast<char>('A' + i), 400);
    taken.insert(policy.Choose(rest, TextKey(text)).index);
  }
  EXPECT_EQ(taken.size(), 3u);
}

TEST(CacheAwareTest, TokensMatchAsCharactersDo) {
  TestFleet fleet(3);
  CacheAware policy(Seeded());
  std::vector<int32_t> tokens(100, 5);
  const RoutingKey key{.tokens = tokens, .prompt_tokens = 100};
  const size_t home = fleet.Send(policy, key);
  std::vector<int32_t> longer(120, 5);
  EXPECT_EQ(policy.Choose(fleet.all(), {.tokens = longer, .prompt_tokens = 120}).index, home);
  std::vector<int32_t> other(100, 5 + 256);
  EXPECT_EQ(policy.Choose(fleet.all(), {.tokens = other, .prompt_tokens = 100}).reason, "miss");
}

TEST(CostTest, APrefixDrawsRequestsUntilTheQueueThereIsLonger) {
  TestFleet fleet(4);
  Cost policy(Seeded());
  const std::string prompt = Text('a', 16000);  // 4,000 tokens
  const size_t home = fleet.Send(policy, TextKey(prompt));
  fleet.End(policy, home);
  const Choice hit = policy.Choose(fleet.all(), TextKey(prompt));
  EXPECT_EQ(hit.index, home);
  EXPECT_EQ(hit.reason, "cached");
  EXPECT_GT(hit.matched, 0.99);
  fleet.Load(home, 0, 7000);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(prompt)).index, home) << "4,000 twice";
  fleet.Load(home, 0, 2000);
  EXPECT_NE(policy.Choose(fleet.all(), TextKey(prompt)).index, home);
}

// A conversation left its worker for any shorter queue while caches were not full; then two had it, and other
// conversations were evicted.
TEST(CostTest, AConversationStaysWhereTheQueueIsLessThanTwiceAsLong) {
  TestFleet fleet(2);
  Cost policy(Seeded());
  const std::vector<int32_t> prompt = Tokens(7, 1600);
  const size_t home = fleet.Send(policy, TokensKey(prompt));
  fleet.End(policy, home);
  fleet.Load(home, 0, 2400);
  EXPECT_EQ(policy.Choose(fleet.all(), TokensKey(prompt)).index, home);
}

TEST(CostTest, WhatIsNewGoesWhereCellsAreFreeThoughItsBeginningIsCachedElsewhere) {
  for (const bool full : {false, true}) {
    TestFleet fleet(2);
    for (const size_t i : {0u, 1u}) {
      fleet[i].SetReport({.used_tokens = 0, .total_tokens = 4000, .at = Clock::now()});
    }
    Cost policy(Seeded());
    std::vector<int32_t> prompt = Tokens(7, 320);
    prompt.resize(full ? 4000 : 1000, 8);
    policy.OnWorkerAdded(fleet[0]);
    policy.OnStart(fleet[0], TokensKey(prompt));
    prompt.resize(320);
    prompt.resize(850, 9);
    EXPECT_EQ(policy.Choose(fleet.all(), TokensKey(prompt)).index, full ? 1u : 0u);
  }
}

// A mean of what the worker's prompts have found cached says nothing of the one that it computes now.
TEST(CostTest, APromptInFlightCountsWithWhatItComputes) {
  TestFleet fleet(2);
  Cost policy(Seeded());
  const std::string prompt = Text('a', 16000);
  const size_t home = fleet.Send(policy, TextKey(prompt));
  EXPECT_EQ(fleet[home].tokens(), TextKey(prompt).prompt_tokens);
  fleet.End(policy, home);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(fleet.Send(policy, TextKey(prompt)), home);
    EXPECT_LT(fleet[home].tokens(), 100) << "all of it is cached";
    fleet.End(policy, home);
  }
  const std::string other = Text('b', 16000);
  const size_t busy = fleet.Send(policy, TextKey(other));
  EXPECT_NE(fleet.Send(policy, TextKey(Text('c', 16000))), busy);
}

TEST(CostTest, OfSeveralPromptsInACallOnlyTheFirstIsBelievedToBeCached) {
  TestFleet fleet(1);
  Cost policy(Seeded());
  std::vector<int32_t> first(160);
  for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<int32_t>(i);
  fleet.Send(policy, {.tokens = first, .prompt_tokens = 160});
  fleet.End(policy, 0);
  fleet.Send(policy, {.tokens = first, .prompt_tokens = 1600});
  EXPECT_EQ(fleet[0].tokens(), 1440);
}

TEST(CostTest, WithoutAnythingCachedItIsTheLeastLoad) {
  TestFleet fleet(3);
  Cost policy(Seeded());
  fleet.Load(0, 2);
  fleet.Load(1, 1, 500);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey("short")).index, 2u);
}

// Of words that its tokenizer does not know a worker's cache held half of what the index believed.
TEST(CostTest, TextCountsInTokensAsWorkersCountThem) {
  for (const bool counted : {false, true}) {
    TestFleet fleet(1);
    fleet[0].SetReport({.used_tokens = 0, .total_tokens = 1200, .at = Clock::now()});
    Cost policy(Seeded());
    const std::string first = Text('a', 2000);
    const std::string second = Text('b', 2000);
    if (counted) policy.OnUsage(TextKey(second), 1000);
    policy.OnUsage(TextKey("short"), 1);    // mostly the template's
    policy.OnUsage(TextKey(second), 2001);  // an image's too
    fleet.Send(policy, TextKey(first));
    EXPECT_EQ(fleet[0].tokens(), counted ? 1002 : 501);
    fleet.Send(policy, TextKey(second));
    EXPECT_EQ(policy.Choose(fleet.all(), TextKey(first)).matched > 0.5, !counted);
    EXPECT_GT(policy.Choose(fleet.all(), TextKey(second)).matched, 0.8);
  }
}

TEST(CostTest, ALostWorkersCacheCountsForNothing) {
  TestFleet fleet(2);
  Cost policy(Seeded());
  const std::string prompt = Text('a', 16000);
  const size_t home = fleet.Send(policy, TextKey(prompt));
  policy.OnWorkerLost(fleet[home]);
  EXPECT_NE(policy.Choose(fleet.all(), TextKey(prompt)).index, home);
}

TEST(CostTest, TextsMatchByShortBlocksFirstAndThenByLongOnes) {
  for (const size_t size :
       std::initializer_list<size_t>{0, 63, 64, 255, 256, 511, 512, 767, 5000}) {
    std::vector<uint64_t> blocks;
    HashTextBlocks(Text('a', size), 1, &blocks);
    const auto count = static_cast<int64_t>(blocks.size());
    EXPECT_LE(BytesOfTextBlocks(count), static_cast<int64_t>(size));
    EXPECT_GT(BytesOfTextBlocks(count + 1), static_cast<int64_t>(size));
    std::vector<uint64_t> longer;
    HashTextBlocks(Text('a', size) + std::string(1000, 'z'), 1, &longer);
    EXPECT_TRUE(std::equal(blocks.begin(), blocks.end(), longer.begin())) << size;
  }
}

TEST(CostTest, ANewWorkerStartsSlowly) {
  TestFleet fleet(2);
  Cost policy(Seeded());
  fleet.Load(0, 10);
  fleet[1].SetHealthySince(Clock::now());
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey("x")).index, 1u) << "it has none at all yet";
  fleet.Load(1, 6);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey("x")).index, 0u);
  fleet[1].SetHealthySince(Clock::now() - std::chrono::seconds(11));
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey("x")).index, 1u);
}

TEST(CostTest, RequestsOfOtherGatewaysCount) {
  // A worker that another gateway had filled was as good as an idle one.
  TestFleet fleet(2);
  Cost policy(Seeded());
  fleet.Load(0, 3);
  fleet.Load(1, 5);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey("x")).index, 0u);
  TestFleet told(2);
  told.Load(0, 3);
  told.Load(1, 5);
  told[0].SetReport({.running_requests = 8, .waiting_requests = 2, .at = Clock::now()});
  told[1].SetReport({.running_requests = 5, .at = Clock::now()});
  Cost other(Seeded());
  EXPECT_EQ(other.Choose(told.all(), TextKey("x")).index, 1u) << "10 there, 3 of them its own";
}

TEST(CostTest, OwnRequestsThatHaveEndedSinceAReportAreNobodys) {
  TestFleet fleet(2);
  Cost policy(Seeded());
  fleet.Load(0, 8);
  fleet[0].SetReport({.running_requests = 8, .waiting_requests = 0, .at = Clock::now()});
  for (int i = 0; i < 8; ++i) fleet[0].Finish();
  fleet.Load(1, 1);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey("x")).index, 0u);
}

TEST(CostTest, AnOldReportOfOthersRequestsDoesNotCount) {
  TestFleet fleet(2);
  Cost policy(Seeded());
  fleet[0].SetReport({.running_requests = 50, .at = Clock::now() - 2 * kReportAge});
  fleet.Load(1, 1);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey("x")).index, 0u);
}

TEST(CostTest, AFullKvCacheIsAvoided) {
  TestFleet fleet(2);
  Cost policy(Seeded());
  fleet[0].SetReport({.used_tokens = 9900, .total_tokens = 10000, .at = Clock::now()});
  fleet[1].SetReport({.used_tokens = 5000, .total_tokens = 10000, .at = Clock::now()});
  fleet.Load(1, 10);
  EXPECT_EQ(policy.Choose(fleet.all(), TextKey(Text('a', 400))).index, 1u);
}

}  // namespace
}  // namespace portico::router
