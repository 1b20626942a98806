#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_pool.h"
#include "service/active_rids.h"
#include "service/generation_for_test.h"
#include "tokenizer/decode/stop_matcher.h"

namespace portico {
namespace {

constexpr size_t kPromptTokens = 600;

// Prompts that are spelled and encoded on a pool of one thread, which works when the test lets it.
class GenerationPromptsTest : public GenerationFixture {
 protected:
  GenerationPromptsTest() { pool_ = &cpu_; }
  ~GenerationPromptsTest() override {
    LetPoolWork();
    OnShard([&] { generation_.reset(); });
  }

  void HoldPool() {
    auto held = std::make_shared<std::promise<void>>();
    std::future<void> goes_on = let_go_.get_future();
    ASSERT_TRUE(cpu_.Submit([held, goes_on = std::move(goes_on)] {
      held->set_value();
      goes_on.wait();
    }));
    held->get_future().wait();
    holds_ = true;
  }
  void LetPoolWork() {
    if (!std::exchange(holds_, false)) return;
    let_go_.set_value();
  }
  // Until the pool has done what it had, and the shard what came of it.
  void Settle() {
    LetPoolWork();
    std::promise<void> last;
    ASSERT_TRUE(cpu_.Submit([&] { last.set_value(); }));
    last.get_future().wait();
    OnShard([] {});
  }

  static GenerationPlan LongPlan(int32_t n = 1) {
    GenerationPlan plan = Plan(n);
    std::vector<TokenId> ids(kPromptTokens);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(1 + i % 4);
    plan.prompts[0].ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
    plan.prompts[0].text = "the prompt";
    plan.echo = true;
    plan.options.logprobs = true;
    plan.options.top_logprobs = 2;
    plan.prompt_logprobs_start = 0;
    return plan;
  }

  TokenDelta Delta(size_t request, std::vector<TokenId> tokens,
                   FinishReason finish = FinishReason::kNone) const {
    TokenDelta delta;
    delta.stream = engine_->requests[request].stream;
    delta.tokens.assign(tokens.begin(), tokens.end());
    delta.finish = finish;
    return delta;
  }
  // The first of its stream.
  TokenDelta First(size_t request, std::vector<TokenId> tokens,
                   FinishReason finish = FinishReason::kNone) const {
    TokenDelta delta = Delta(request, std::move(tokens), finish);
    const std::vector<TokenId>& prompt = *engine_->requests[request].prompt;
    for (size_t i = 1; i < prompt.size(); ++i) {
      PositionLogprobs& position = delta.prompt_logprobs.emplace_back();
      position.chosen = {prompt[i], -0.5f - static_cast<float>(i)};
      position.top = {{1, -0.25f}, {2, -0.75f}};
    }
    return delta;
  }
  void Deliver(TokenDelta delta) {
    std::vector<TokenDelta> batch;
    batch.push_back(std::move(delta));
    hub_.Deliver(std::move(batch));
    OnShard([] {});
  }

  double HeldDeltas() { return metrics_.Of(model_).held_deltas.Value(); }
  bool RidIsFree() { return rids_.Take("mine").ok(); }
  void StartNamed(GenerationPlan plan) {
    plan.options.rid = "mine";
    ASSERT_TRUE(TakeRids(rids_, &plan).ok());
    Start(std::move(plan));
    ASSERT_FALSE(RidIsFree());
  }

  ActiveRids rids_;
  CpuPool cpu_{1, 4};
  std::promise<void> let_go_;
  bool holds_ = false;
};

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
  ASSERT_EQ(sink_.prompts[0].logprobs.size(), kPromptTokens);
  for (size_t i = 0; i < kPromptTokens; ++i) {
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

TEST_F(GenerationPromptsTest, AllChoicesOfThePromptWaitForItsOneReport) {
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

TEST_F(GenerationPromptsTest, AFullPoolEndsTheRequestAndItsStreams) {
  HoldPool();
  while (cpu_.Submit([] {})) {
  }
  StartNamed(LongPlan(2));
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

TEST_F(GenerationPromptsTest, AnAbortWhileThePoolWorksEndsTheStreamAfterItsPrompt) {
  HoldPool();
  StartNamed(LongPlan());
  Deliver(First(0, {1}));
  OnShard([&] { generation_->Abort(); });
  EXPECT_EQ(engine_->aborted.size(), 1u);
  Deliver(Delta(0, {}, FinishReason::kAbort));
  EXPECT_FALSE(sink_.ended);
  Settle();
  ASSERT_TRUE(sink_.ended);
  EXPECT_EQ(sink_.prompts.size(), 1u);
  ASSERT_EQ(sink_.deltas.size(), 2u);
  EXPECT_EQ(sink_.deltas[0].tokens.size(), 1u);
  EXPECT_EQ(sink_.deltas[1].finish, FinishReason::kAbort);
  EXPECT_TRUE(RidIsFree());
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

TEST_F(GenerationPromptsTest, AStopStringInADeltaThatWaitedEndsTheAnswerThere) {
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
