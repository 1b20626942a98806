// cost, with workers that tell what their caches take in and let go.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "message/kv_events.h"
#include "router/policy/cost.h"
#include "router/policy/fleet_for_test.h"

namespace portico::router {
namespace {

PolicyOptions WithSeed() {
  PolicyOptions options;
  options.seed = 7;
  return options;
}

// A prompt as text, and as a tokenizer of four bytes a token has it.
struct Prompt {
  explicit Prompt(const std::string& with) : text(with) {
    for (size_t i = 0; i + 4 <= with.size(); i += 4) {
      tokens.push_back(with[i] * 1000003 + with[i + 1] * 1009 + with[i + 2] * 31 + with[i + 3]);
    }
  }
  RoutingKey key() const { return TextKey(text); }
  RoutingKey key_of_tokens() const {
    return {.tokens = tokens, .prompt_tokens = static_cast<int64_t>(tokens.size())};
  }

  std::string text;
  std::vector<TokenId> tokens;
};

// A worker's own names: different for each worker.
int64_t NameOf(size_t worker, size_t block) {
  return static_cast<int64_t>(worker * 100000 + block + 1);
}

KvEventBatch StoredOn(size_t worker, const Prompt& prompt, size_t first = 0) {
  KvEventBatch batch;
  KvEvent& event = batch.events.emplace_back();
  event.kind = KvEvent::Kind::kStored;
  for (size_t i = 0; i < prompt.tokens.size() / 16; ++i) {
    const auto begin = prompt.tokens.begin() + static_cast<ptrdiff_t>(i * 16);
    event.blocks.push_back(
        {.hash = NameOf(worker, first + i), .tokens = {begin, begin + 16}, .lora_id = {}});
  }
  return batch;
}

KvEventBatch RemovedFrom(size_t worker, size_t begin, size_t end) {
  KvEventBatch batch;
  KvEvent& event = batch.events.emplace_back();
  event.kind = KvEvent::Kind::kRemoved;
  for (size_t i = end; i-- > begin;) event.removed.push_back(NameOf(worker, i));
  return batch;
}

KvEventBatch ClearedAll() {
  KvEventBatch batch;
  batch.events.emplace_back().kind = KvEvent::Kind::kCleared;
  return batch;
}

class CostEventsTest : public testing::Test {
 protected:
  CostEventsTest() {
    for (size_t i = 0; i < 3; ++i) {
      policy_.OnWorkerAdded(fleet_[i]);
      EXPECT_TRUE(policy_.OnKvEvents(fleet_[i], {}, true));
    }
  }
  Choice Choose(const RoutingKey& key) { return policy_.Choose(fleet_.all(), key); }
  // A request that has come and gone.
  size_t Send(const Prompt& prompt) {
    const size_t i = fleet_.Send(policy_, prompt.key());
    policy_.OnPrompt(prompt.key(), prompt.tokens);
    fleet_.End(policy_, i);
    return i;
  }

  TestFleet fleet_{3};
  Cost policy_{WithSeed()};
  const Prompt long_{std::string(2000, 'a') + std::string(2000, 'b')};
};

TEST_F(CostEventsTest, AWorkerThatHasEvictedAPromptIsNotSentToForIt) {
  const size_t home = Send(long_);
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[home], StoredOn(home, long_), false));
  EXPECT_EQ(Choose(long_.key()).reason, "cached");
  EXPECT_TRUE(
      policy_.OnKvEvents(fleet_[home], RemovedFrom(home, 0, long_.tokens.size() / 16), false));
  EXPECT_EQ(Choose(long_.key()).matched, 0);
  // What it takes in again counts again.
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[home], StoredOn(home, long_), false));
  EXPECT_EQ(Choose(long_.key()).index, home);
}

TEST_F(CostEventsTest, HalfOfAPromptThatIsLeftCountsAsHalf) {
  const size_t home = Send(long_);
  const size_t blocks = long_.tokens.size() / 16;
  policy_.OnKvEvents(fleet_[home], StoredOn(home, long_), false);
  policy_.OnKvEvents(fleet_[home], RemovedFrom(home, blocks / 2, blocks), false);
  EXPECT_NEAR(Choose(long_.key()).matched, 0.5, 0.07);
}

TEST_F(CostEventsTest, WhatOthersHaveSentToAWorkerCounts) {
  const size_t home = Send(long_);
  const size_t other = (home + 1) % 3;
  policy_.OnKvEvents(fleet_[home], StoredOn(home, long_), false);
  policy_.OnKvEvents(fleet_[home], ClearedAll(), false);
  // By another gateway.
  policy_.OnKvEvents(fleet_[other], StoredOn(other, long_), false);
  EXPECT_EQ(Choose(long_.key()).index, other);
  // Before this gateway has ever seen the text: then its second request for it finds it.
  const Prompt fresh(std::string(4000, 'c'));
  policy_.OnKvEvents(fleet_[other], StoredOn(other, fresh, 5000), false);
  policy_.OnPrompt(fresh.key(), fresh.tokens);
  EXPECT_EQ(Choose(fresh.key()).index, other);
}

TEST_F(CostEventsTest, PromptsThatComeAsTokensAreFoundDirectly) {
  policy_.OnKvEvents(fleet_[2], StoredOn(2, long_), false);
  EXPECT_EQ(Choose(long_.key_of_tokens()).index, 2u);
  EXPECT_EQ(Choose(long_.key_of_tokens()).reason, "cached");
  policy_.OnKvEvents(fleet_[2], RemovedFrom(2, 0, 250), false);
  EXPECT_EQ(Choose(long_.key_of_tokens()).reason, "least cost");
}

TEST_F(CostEventsTest, AWorkerThatWasLostIsAskedForItsStateAnew) {
  const size_t home = Send(long_);
  policy_.OnKvEvents(fleet_[home], StoredOn(home, long_), false);
  policy_.OnWorkerLost(fleet_[home]);
  EXPECT_EQ(Choose(long_.key()).matched, 0);
  EXPECT_FALSE(policy_.OnKvEvents(fleet_[home], {}, false))
      << "it does not know what these build on";
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[home], {}, true));
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[home], StoredOn(home, long_), false));
  EXPECT_EQ(Choose(long_.key()).index, home);
  policy_.OnWorkerRemoved(fleet_[home]);
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[home], {}, false))
      << "of a worker that is gone nothing is wanted";
  EXPECT_FALSE(policy_.Believes(fleet_[home]));
}

TEST_F(CostEventsTest, ARankThatIsClearedLeavesTheOthers) {
  const Prompt other(std::string(4000, 'c'));
  KvEventBatch batch = StoredOn(0, long_);
  batch.rank = 1;
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[0], batch, false));
  batch = StoredOn(0, other);
  batch.rank = 0;
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[0], batch, false));
  batch = ClearedAll();
  batch.rank = 0;
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[0], batch, false));
  EXPECT_EQ(Choose(long_.key_of_tokens()).index, 0u);
  EXPECT_GT(Choose(long_.key_of_tokens()).matched, 0.9);
  EXPECT_EQ(Choose(other.key_of_tokens()).matched, 0);
}

TEST_F(CostEventsTest, PromptsOfTokensThatNameAModelFollowWhatIsTold) {
  RoutingKey key = long_.key_of_tokens();
  key.model = "demo";
  policy_.OnKvEvents(fleet_[1], StoredOn(1, long_), false);
  EXPECT_EQ(Choose(key).index, 1u) << "though it was never sent there";
  EXPECT_EQ(fleet_.Send(policy_, key), 1u);
  fleet_.End(policy_, 1);
  policy_.OnKvEvents(fleet_[1], RemovedFrom(1, 0, long_.tokens.size() / 16), false);
  EXPECT_EQ(Choose(key).matched, 0);
}

TEST_F(CostEventsTest, AWorkerThatIsNotHeardAnyMoreIsGuessedAbout) {
  policy_.OnKvEvents(fleet_[2], StoredOn(2, long_), false);
  EXPECT_EQ(Choose(long_.key_of_tokens()).index, 2u);
  policy_.OnKvEventsLost(fleet_[2]);
  EXPECT_FALSE(policy_.Believes(fleet_[2]));
  EXPECT_EQ(Choose(long_.key_of_tokens()).matched, 0);
  EXPECT_FALSE(policy_.OnKvEvents(fleet_[2], StoredOn(2, long_), false)) << "it has to begin anew";
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[2], {}, true));
  EXPECT_TRUE(policy_.OnKvEvents(fleet_[2], StoredOn(2, long_), false));
  EXPECT_EQ(Choose(long_.key_of_tokens()).index, 2u);
}

// Of workers over HTTP prompts are known as text alone, events as tokens alone.
TEST(CostUnlinkedTest, TextIsGuessedWithinWhatTheWorkerHasHeldAndClearedWhenItSaysSo) {
  TestFleet fleet(1);
  PolicyOptions options = WithSeed();
  static TimePoint now;
  now = TimePoint(std::chrono::hours(1));
  options.now = [] { return now; };
  Cost policy(options);
  policy.OnWorkerAdded(fleet[0]);
  EXPECT_TRUE(policy.OnKvEvents(fleet[0], {}, true));
  const auto send = [&](const Prompt& prompt) {
    now += std::chrono::seconds(1);
    fleet.End(policy, fleet.Send(policy, prompt.key()));
  };
  const Prompt first(std::string(4000, 'a'));
  const Prompt second(std::string(4000, 'b'));
  send(first);
  send(second);
  const auto matched = [&](const Prompt& prompt) {
    return policy.Choose(fleet.all(), prompt.key()).matched;
  };
  EXPECT_GT(matched(first), 0.9);
  // A cache that is full with one of them.
  policy.OnKvEvents(fleet[0], StoredOn(0, first), false);
  policy.OnKvEvents(fleet[0], RemovedFrom(0, 0, 1), false);
  send(second);
  EXPECT_GT(matched(second), 0.9);
  EXPECT_LT(matched(first), 0.6) << "it has been pushed out";
  policy.OnKvEvents(fleet[0], ClearedAll(), false);
  EXPECT_EQ(matched(second), 0);
}

TEST(CostBudgetTest, AWorkerThatTellsTooMuchIsGuessedAbout) {
  TestFleet fleet(2);
  PolicyOptions options = WithSeed();
  options.index_bytes = 4 << 20;
  Cost policy(options);
  policy.OnWorkerAdded(fleet[0]);
  EXPECT_TRUE(policy.OnKvEvents(fleet[0], {}, true));
  EXPECT_TRUE(policy.Believes(fleet[0]));
  for (int i = 0; i < 100; ++i) {
    std::string text(16000, 'a');
    text[0] = static_cast<char>(' ' + i);
    EXPECT_TRUE(policy.OnKvEvents(fleet[0],
                                  StoredOn(0, Prompt(text), static_cast<size_t>(i) * 1000), false));
    EXPECT_LE(policy.index_bytes(), static_cast<size_t>(options.index_bytes));
  }
  EXPECT_FALSE(policy.Believes(fleet[0]));
  EXPECT_TRUE(policy.OnKvEvents(fleet[0], {}, true)) << "until it tells anew";
  EXPECT_TRUE(policy.Believes(fleet[0]));
}

}  // namespace
}  // namespace portico::router
