// What becomes of deltas that waited for their prompt.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/generation/generation_prompts_for_test.h"
#include "tokenizer/decode/stop_matcher.h"

namespace portico {
namespace {

class GenerationReplayTest : public GenerationPromptsFixture {};

TEST_F(GenerationReplayTest, AllChoicesOfThePromptWaitForItsOneReport) {
  HoldPool();
  Start(LongPlan(2));
  Deliver(First(1, {1}));
  Deliver(First(0, {2}));
  Deliver(Delta(1, {3}, FinishReason::kLength));
  Deliver(Delta(0, {4}));
  EXPECT_TRUE(sink_.deltas.empty());
  Settle();
  ASSERT_EQ(sink_.prompts.size(), 1u);
  std::vector<int32_t> order;
  for (const TextDelta& delta : sink_.deltas) order.push_back(delta.index);
  EXPECT_EQ(order, (std::vector<int32_t>{1, 0, 1, 0}));
  EXPECT_FALSE(sink_.ended);
  Deliver(Delta(0, {1}, FinishReason::kStop));
  EXPECT_TRUE(sink_.ended);
  EXPECT_EQ(sink_.prompts.size(), 1u);
}

TEST_F(GenerationReplayTest, AnAbortDoesNotWaitForThePool) {
  bool encoded = false;
  sink_.while_encoding = [&] { encoded = true; };
  HoldPool();
  StartNamed(LongPlan());
  Deliver(First(0, {1}));
  OnShard([&] { generation_->Abort(); });
  EXPECT_EQ(engine_->aborted.size(), 1u);
  Deliver(Delta(0, {}, FinishReason::kAbort));
  Replay();
  ASSERT_TRUE(sink_.ended);
  ASSERT_EQ(sink_.deltas.size(), 2u);
  EXPECT_EQ(sink_.deltas[0].tokens.size(), 1u);
  EXPECT_EQ(sink_.deltas[1].finish, FinishReason::kAbort);
  EXPECT_TRUE(RidIsFree());
  EXPECT_EQ(HeldDeltas(), 0);
  Settle();
  EXPECT_TRUE(sink_.prompts.empty());
  EXPECT_FALSE(encoded) << "it is for nobody";
}

TEST_F(GenerationReplayTest, AnAnswerThatIsAbortedBeforeItsPromptIsToldIsNotWhole) {
  HoldPool();
  StartNamed(LongPlan(2));
  Deliver(First(0, {1}));
  Deliver(Delta(0, {2}, FinishReason::kLength));
  OnShard([&] { generation_->Abort(); });
  Replay();
  ASSERT_EQ(sink_.deltas.size(), 2u);
  EXPECT_EQ(sink_.deltas[1].finish, FinishReason::kAbort);
  EXPECT_FALSE(sink_.ended);
  Deliver(First(1, {1}, FinishReason::kStop));
  Replay();
  ASSERT_TRUE(sink_.ended);
  EXPECT_EQ(sink_.deltas[2].finish, FinishReason::kAbort);
  EXPECT_TRUE(sink_.prompts.empty());
  EXPECT_EQ(sink_.total.completion_tokens, 3);
}

TEST_F(GenerationReplayTest, APromptThatComesAfterTheAbortIsNotEncoded) {
  HoldPool();
  StartNamed(LongPlan());
  OnShard([&] { generation_->Abort(); });
  Deliver(First(0, {1}));
  Deliver(Delta(0, {}, FinishReason::kAbort));
  Replay();
  ASSERT_TRUE(sink_.ended);
  EXPECT_TRUE(sink_.prompts.empty());
  EXPECT_EQ(sink_.deltas.back().finish, FinishReason::kAbort);
  EXPECT_EQ(HeldDeltas(), 0);
}

// All went on in one turn: megabytes at once where each event repeats the prompt.
TEST_F(GenerationReplayTest, WhatWaitedGoesOnInSeveralTurnsAndTellsWhereMoreFollows) {
  HoldPool();
  Start(LongPlan());
  Deliver(First(0, {1}));
  for (int i = 0; i < 999; ++i) Deliver(Delta(0, {static_cast<TokenId>(1 + i % 4)}));
  EXPECT_EQ(HeldDeltas(), 1000);
  CountPerTurn();
  Settle();
  EXPECT_EQ(HeldDeltas(), 0);
  ASSERT_EQ(sink_.deltas.size(), 1000u);
  for (size_t i = 0; i < 1000; ++i) {
    const TextDelta& delta = sink_.deltas[i];
    EXPECT_EQ(delta.tokens[0], static_cast<TokenId>(i == 0 ? 1 : 1 + (i - 1) % 4));
    EXPECT_EQ(delta.usage.completion_tokens, static_cast<int32_t>(i + 1));
    EXPECT_EQ(delta.more_at_once, i < 999);
  }
  EXPECT_GT(most_in_turn_, 1u);
  EXPECT_LE(most_in_turn_, 128u);
  Deliver(Delta(0, {2, 3}, FinishReason::kLength));
  ASSERT_EQ(sink_.deltas.size(), 1002u);
  EXPECT_FALSE(sink_.deltas[1000].more_at_once) << "it did not wait";
  EXPECT_FALSE(sink_.deltas[1001].more_at_once);
}

TEST_F(GenerationReplayTest, MoreFollowsWithinADeltaThatWaitedAndNotBehindItsEnd) {
  HoldPool();
  Start(LongPlan());
  Deliver(First(0, {}));
  Deliver(Delta(0, {1, 2}));
  Deliver(Delta(0, {3, 4}, FinishReason::kLength));
  Settle();
  ASSERT_TRUE(sink_.ended);
  std::vector<bool> more;
  for (const TextDelta& delta : sink_.deltas) more.push_back(delta.more_at_once);
  EXPECT_EQ(more, (std::vector<bool>{true, true, true, false}));
}

TEST_F(GenerationReplayTest, ADeltaWithoutTextDoesNotCountAsMore) {
  HoldPool();
  Start(LongPlan());
  Deliver(First(0, {1}));
  Deliver(Delta(0, {}));
  Settle();
  ASSERT_EQ(sink_.deltas.size(), 1u);
  EXPECT_FALSE(sink_.deltas[0].more_at_once);
}

TEST_F(GenerationReplayTest, ThePromptIsRepeatedForOneChoiceATurn) {
  HoldPool();
  Start(LongPlan(8));
  for (size_t request = 0; request < 8; ++request) Deliver(First(request, {1}));
  CountPerTurn();
  Settle();
  EXPECT_EQ(sink_.deltas.size(), 8u);
  EXPECT_EQ(most_in_turn_, 1u);
}

TEST_F(GenerationReplayTest, DeltasThatComeDuringTheReplayComeBehindIt) {
  HoldPool();
  Start(LongPlan());
  Deliver(First(0, {1}));
  for (int i = 0; i < 300; ++i) Deliver(Delta(0, {2}));
  sink_.on_delta = [this, told = false]() mutable {
    if (std::exchange(told, true)) return;
    std::vector<TokenDelta> batch;
    batch.push_back(Delta(0, {3}, FinishReason::kLength));
    hub_.Deliver(std::move(batch));
  };
  Settle();
  ASSERT_TRUE(sink_.ended);
  ASSERT_EQ(sink_.deltas.size(), 302u);
  EXPECT_EQ(sink_.deltas[300].tokens[0], 2);
  EXPECT_EQ(sink_.deltas[301].tokens[0], 3);
  EXPECT_TRUE(sink_.deltas[300].more_at_once);
  EXPECT_EQ(HeldDeltas(), 0);
}

TEST_F(GenerationReplayTest, AClientThatLeavesDuringTheReplayIsToldNoMore) {
  HoldPool();
  StartNamed(LongPlan());
  Deliver(First(0, {1}));
  for (int i = 0; i < 300; ++i) Deliver(Delta(0, {2}));
  sink_.on_delta = [this, told = false]() mutable {
    if (std::exchange(told, true)) return;
    shard_.Post([this] { generation_.reset(); });
  };
  Settle();
  EXPECT_LT(sink_.deltas.size(), 301u);
  EXPECT_EQ(HeldDeltas(), 0);
  EXPECT_EQ(engine_->aborted.size(), 1u);
  EXPECT_TRUE(RidIsFree());
}

TEST_F(GenerationReplayTest, AStopStringInADeltaThatWaitedEndsTheAnswerThere) {
  HoldPool();
  GenerationPlan plan = LongPlan();
  plan.stops = std::make_shared<const StopStrings>(std::vector<std::string>{"b"});
  Start(std::move(plan));
  Deliver(First(0, {1}));
  for (int i = 0; i < 3; ++i) Deliver(Delta(0, {2}));
  Deliver(Delta(0, {}, FinishReason::kLength));
  Settle();
  ASSERT_TRUE(sink_.ended);
  ASSERT_EQ(sink_.deltas.size(), 2u);
  EXPECT_EQ(sink_.deltas[1].finish, FinishReason::kStop);
  EXPECT_EQ(sink_.total.completion_tokens, 2);
}

}  // namespace
}  // namespace portico
