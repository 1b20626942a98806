#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "service/generation/generation_prompts_for_test.h"

namespace portico {
namespace {

class GenerationPromptsTest : public GenerationPromptsFixture {};

// It took a quarter of a second of the shard's time for 30,000 tokens with 20 alternatives each.
TEST_F(GenerationPromptsTest, ALongPromptIsSpelledOnThePoolWhileItsDeltasWait) {
  pool_ = nullptr;
  Start(LongPlan());
  Deliver(First(0, {1}));
  Deliver(Delta(0, {2, 3}));
  Deliver(Delta(0, {4}, FinishReason::kLength));
  ASSERT_TRUE(sink_.ended);
  const TextRecorder on_shard = std::exchange(sink_, {});
  engine_->requests.clear();

  pool_ = &cpu_;
  HoldPool();
  Start(LongPlan());
  Deliver(First(0, {1}));
  Deliver(Delta(0, {2, 3}));
  Deliver(Delta(0, {4}, FinishReason::kLength));
  EXPECT_TRUE(sink_.prompts.empty());
  EXPECT_TRUE(sink_.deltas.empty());
  EXPECT_EQ(HeldDeltas(), 3);
  Settle();
  ASSERT_TRUE(sink_.ended);
  EXPECT_EQ(HeldDeltas(), 0);
  ASSERT_EQ(sink_.prompts.size(), 1u);
  EXPECT_EQ(sink_.prompts[0].text, "the prompt");
  EXPECT_EQ(sink_.prompts[0].tokens, on_shard.prompts[0].tokens);
  ASSERT_EQ(sink_.prompts[0].logprobs.size(), kLongPromptTokens);
  for (size_t i = 0; i < kLongPromptTokens; ++i) {
    const TextPositionLogprobs& position = sink_.prompts[0].logprobs[i];
    const TextPositionLogprobs& other = on_shard.prompts[0].logprobs[i];
    EXPECT_EQ(position.chosen.text, other.chosen.text);
    EXPECT_EQ(position.chosen.logprob, other.chosen.logprob);
    ASSERT_EQ(position.top.size(), other.top.size());
    for (size_t k = 0; k < other.top.size(); ++k) {
      EXPECT_EQ(position.top[k].text, other.top[k].text);
    }
  }
  ASSERT_EQ(sink_.deltas.size(), on_shard.deltas.size());
  for (size_t i = 0; i < sink_.deltas.size(); ++i) {
    EXPECT_EQ(sink_.deltas[i].text, on_shard.deltas[i].text);
    EXPECT_EQ(sink_.deltas[i].tokens, on_shard.deltas[i].tokens);
    EXPECT_EQ(sink_.deltas[i].finish, on_shard.deltas[i].finish);
  }
  EXPECT_EQ(sink_.total.completion_tokens, 4);
}

TEST_F(GenerationPromptsTest, AShortPromptIsReportedAtOnceWhateverThePoolDoes) {
  HoldPool();
  GenerationPlan plan = LongPlan();
  plan.prompts[0].ids =
      std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{1, 2, 3, 4});
  Start(std::move(plan));
  Deliver(First(0, {1}, FinishReason::kLength));
  EXPECT_TRUE(sink_.ended);
  ASSERT_EQ(sink_.prompts.size(), 1u);
  EXPECT_EQ(sink_.prompts[0].logprobs.size(), 4u);
}

TEST_F(GenerationPromptsTest, ALongPromptWithoutLogprobsNeedsNoPool) {
  HoldPool();
  GenerationPlan plan = LongPlan();
  plan.prompt_logprobs_start = -1;
  Start(std::move(plan));
  Deliver(Delta(0, {1}, FinishReason::kLength));
  EXPECT_TRUE(sink_.ended);
}

TEST_F(GenerationPromptsTest, OtherPromptsOfTheRequestDoNotWait) {
  HoldPool();
  GenerationPlan plan = LongPlan();
  GenerationPlan::Prompt small;
  small.ids = std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{1, 2});
  plan.prompts.push_back(std::move(small));
  Start(std::move(plan));
  Deliver(First(0, {1}, FinishReason::kLength));
  Deliver(First(1, {2}, FinishReason::kLength));
  ASSERT_EQ(sink_.deltas.size(), 1u);
  EXPECT_EQ(sink_.deltas[0].index, 1);
  Settle();
  EXPECT_TRUE(sink_.ended);
  EXPECT_EQ(sink_.prompts.size(), 2u);
}

// It filled the pool's queue by itself, and failed.
TEST_F(GenerationPromptsTest, ARequestWithMoreLongPromptsThanThePoolQueuesIsAnswered) {
  HoldPool();
  GenerationPlan plan = LongPlan();
  while (plan.prompts.size() < 10) plan.prompts.push_back(LongPrompt());
  Start(std::move(plan));
  for (size_t request = 0; request < 10; ++request) {
    Deliver(First(request, {1}, FinishReason::kLength));
  }
  Replay();
  EXPECT_EQ(sink_.prompts.size(), 6u) << "what the pool has no room for";
  Settle();
  ASSERT_TRUE(sink_.ended);
  ASSERT_EQ(sink_.prompts.size(), 10u);
  for (const PromptEcho& prompt : sink_.prompts) {
    EXPECT_EQ(prompt.logprobs.size(), kLongPromptTokens);
  }
  ASSERT_EQ(sink_.deltas.size(), 10u);
  for (const TextDelta& delta : sink_.deltas) EXPECT_EQ(delta.finish, FinishReason::kLength);
  EXPECT_EQ(HeldDeltas(), 0);
}

// Each choice brings its prompt's values, and each got a task that freed them.
TEST_F(GenerationPromptsTest, TheValuesOfManyChoicesTakeOnePlaceInThePool) {
  HoldPool();
  Start(LongPlan(100));
  for (size_t request = 0; request < 100; ++request) Deliver(First(request, {1}));
  EXPECT_EQ(cpu_.queued(), 2u) << "the prompt, and values to free";
  Settle();
  EXPECT_EQ(cpu_.refused(), 0u);
  EXPECT_EQ(sink_.prompts.size(), 1u);
  EXPECT_EQ(sink_.deltas.size(), 100u);
  for (size_t request = 0; request < 100; ++request) {
    Deliver(Delta(request, {2}, FinishReason::kLength));
  }
  EXPECT_TRUE(sink_.ended);
}

TEST_F(GenerationPromptsTest, AFullPoolEndsARequestThatIsTooLongForTheShard) {
  HoldPool();
  while (cpu_.Submit([] {})) {
  }
  GenerationPlan very_long = LongPlan(2);
  very_long.prompts[0] = LongPrompt(kVeryLongPromptTokens);
  StartNamed(std::move(very_long));
  Deliver(First(0, {1}));
  ASSERT_TRUE(sink_.ended);
  EXPECT_TRUE(sink_.prompts.empty());
  ASSERT_EQ(sink_.deltas.size(), 2u);
  for (const TextDelta& delta : sink_.deltas) {
    EXPECT_EQ(delta.finish, FinishReason::kError);
    EXPECT_EQ(delta.error.code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(engine_->aborted.size(), 2u);
  EXPECT_TRUE(RidIsFree());
  EXPECT_EQ(hub_.streams(), 0u);
  Deliver(First(1, {1}, FinishReason::kAbort));
  EXPECT_EQ(sink_.deltas.size(), 2u);
}

TEST_F(GenerationPromptsTest, AnEngineThatDiesWhileThePoolWorksEndsTheStreamWithItsError) {
  HoldPool();
  StartNamed(LongPlan(2));
  Deliver(First(0, {1}));
  for (size_t request : {0u, 1u}) {
    TokenDelta dead = Delta(request, {}, FinishReason::kError);
    dead.error = Error(StatusCode::kInternal, "the engine has died");
    Deliver(std::move(dead));
  }
  Settle();
  ASSERT_TRUE(sink_.ended);
  ASSERT_EQ(sink_.deltas.size(), 3u);
  EXPECT_EQ(sink_.deltas[1].error.message(), "the engine has died");
  EXPECT_EQ(sink_.deltas[2].error.message(), "the engine has died");
  EXPECT_TRUE(RidIsFree());
  EXPECT_EQ(HeldDeltas(), 0);
}

TEST_F(GenerationPromptsTest, AClientThatLeavesBeforeThePoolBeginsSparesItTheWork) {
  bool encoded = false;
  HoldPool();
  sink_.while_encoding = [&] { encoded = true; };
  StartNamed(LongPlan());
  Deliver(First(0, {1}));
  EXPECT_EQ(HeldDeltas(), 1);
  OnShard([&] { generation_.reset(); });
  EXPECT_EQ(HeldDeltas(), 0);
  EXPECT_EQ(engine_->aborted.size(), 1u);
  EXPECT_TRUE(RidIsFree());
  EXPECT_EQ(hub_.streams(), 0u);
  Settle();
  EXPECT_FALSE(encoded);
  EXPECT_TRUE(sink_.prompts.empty());
}

TEST_F(GenerationPromptsTest, AClientThatLeavesWhileThePoolWorksIsNotReportedTo) {
  std::promise<void> begun;
  std::promise<void> left;
  sink_.while_encoding = [&] {
    begun.set_value();
    left.get_future().wait();
  };
  StartNamed(LongPlan());
  Deliver(First(0, {1}));
  begun.get_future().wait();
  OnShard([&] { generation_.reset(); });
  left.set_value();
  Settle();
  EXPECT_TRUE(sink_.prompts.empty());
  EXPECT_TRUE(sink_.deltas.empty());
  EXPECT_TRUE(RidIsFree());
}

TEST_F(GenerationPromptsTest, MoreDeltasThanMayWaitEndTheRequest) {
  HoldPool();
  StartNamed(LongPlan());
  Deliver(First(0, {1}));
  for (int i = 0; i < 4096; ++i) {
    std::vector<TokenDelta> batch;
    batch.push_back(Delta(0, {2}));
    hub_.Deliver(std::move(batch));
  }
  OnShard([] {});
  ASSERT_TRUE(sink_.ended);
  ASSERT_EQ(sink_.deltas.size(), 1u);
  EXPECT_EQ(sink_.deltas[0].error.code(), StatusCode::kUnavailable);
  EXPECT_EQ(engine_->aborted.size(), 1u);
  EXPECT_EQ(HeldDeltas(), 0);
  EXPECT_TRUE(RidIsFree());
  Settle();
  EXPECT_TRUE(sink_.prompts.empty()) << "what the pool gives then is for nobody";
}

}  // namespace
}  // namespace portico
