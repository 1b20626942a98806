// What engine.h promises: ends, aborts, bounds, usage, seeds. On one tiny model.
#include "engine/llama/generation/engine_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <set>
#include <thread>

#include "base/sanitized_for_test.h"
#include "engine/llama/reference_engine_for_test.h"

namespace portico::llama {
namespace {

class EngineThreadTest : public testing::Test, protected ReferenceEngine {
 protected:
  void SetUp() override {
    if (!Here()) GTEST_SKIP() << "the reference data is not here";
    Load("llama-gqa");
  }
  // An answer of `tokens` may have ended before it was told to.
  static void ExpectAbortedOrWhole(const Answer& answer, size_t tokens) {
    EXPECT_EQ(answer.last.finish,
              answer.tokens.size() < tokens ? FinishReason::kAbort : FinishReason::kLength);
  }
  std::vector<TokenId> Noise(std::mt19937* random, size_t most) {
    std::vector<TokenId> tokens(1 + (*random)() % most);
    for (TokenId& token : tokens) token = static_cast<TokenId>((*random)() % vocab_);
    return tokens;
  }
};

TEST_F(EngineThreadTest, AStopTokenEndsTheAnswerAndIsItsLastToken) {
  Start({});
  const std::vector<TokenId>& greedy = cases_[1].greedy;
  ASSERT_GE(greedy.size(), 4u);
  GenerateRequest request = Greedy(cases_[1].prompt, 24);
  OwnSampling(&request).stop_token_ids = {greedy[3]};
  const Answer answer = Ask(std::move(request));
  const auto first = std::find(greedy.begin(), greedy.end(), greedy[3]);
  EXPECT_EQ(answer.tokens, std::vector<TokenId>(greedy.begin(), first + 1));
  EXPECT_EQ(answer.last.finish, FinishReason::kStop);
  EXPECT_EQ(answer.last.matched_token, greedy[3]);
  EXPECT_EQ(answer.last.usage.completion_tokens, static_cast<int32_t>(answer.tokens.size()));
  EXPECT_EQ(answer.last.usage.prompt_tokens, static_cast<int32_t>(cases_[1].prompt.size()));
}

TEST_F(EngineThreadTest, OutputLogprobsBelongToTheirTokens) {
  Start({});
  GenerateRequest request = Greedy(cases_[1].prompt, 8);
  request.return_logprobs = true;
  request.top_logprobs = 3;
  const Answer answer = Ask(std::move(request));
  ASSERT_EQ(answer.logprobs.size(), answer.tokens.size());
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    EXPECT_EQ(answer.logprobs[i].chosen.token, answer.tokens[i]);
    ASSERT_EQ(answer.logprobs[i].top.size(), 3u);
    EXPECT_EQ(answer.logprobs[i].top[0].token, answer.tokens[i]);  // greedy
    EXPECT_LT(answer.logprobs[i].chosen.logprob, 0);
  }
}

TEST_F(EngineThreadTest, AnswersDoNotExceedMaxNewTokensAndZeroGivesNone) {
  Start({});
  const Answer none = Ask(Greedy(cases_[1].prompt, 0));
  EXPECT_TRUE(none.tokens.empty());
  EXPECT_EQ(none.last.finish, FinishReason::kLength);
  EXPECT_EQ(Ask(Greedy(cases_[1].prompt, 1)).tokens.size(), 1u);
  EXPECT_EQ(Ask(Greedy(cases_[1].prompt, 30)).tokens.size(), 30u);
}

TEST_F(EngineThreadTest, SeededAnswersDependOnSeedAndChoiceOnlyNotOnTheBatch) {
  Start({});
  const auto ask = [&](uint64_t seed, int32_t choice) {
    GenerateRequest request = Greedy(cases_[1].prompt, 20);
    OwnSampling(&request).temperature = 1.0f;
    OwnSampling(&request).seed = seed;
    request.choice = choice;
    return request;
  };
  const Answer alone = Ask(ask(1, 0));
  CollectingSink sink;
  std::set<std::vector<TokenId>> different;
  std::vector<StreamId> streams;
  for (int32_t choice = 0; choice < 8; ++choice) {
    GenerateRequest request = ask(1, choice);
    streams.push_back(request.stream);
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
  }
  sink.WaitForEnds(8);
  EXPECT_EQ(sink.of(streams[0]).tokens, alone.tokens);
  for (const StreamId stream : streams) different.insert(sink.of(stream).tokens);
  EXPECT_EQ(different.size(), 8u);
  EXPECT_NE(Ask(ask(2, 0)).tokens, alone.tokens);
}

TEST_F(EngineThreadTest, TheChoicesOfOnePromptShareItsCells) {
  Start({});
  const ReferenceCase& c = cases_.back();
  const auto prompt = std::make_shared<const std::vector<TokenId>>(c.prompt);
  CollectingSink sink;
  std::vector<StreamId> streams;
  for (int32_t choice = 0; choice < 6; ++choice) {
    GenerateRequest request = Greedy({}, 4);
    request.prompt = prompt;
    request.choice = choice;
    streams.push_back(request.stream);
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
  }
  sink.WaitForEnds(6);
  int32_t cached = 0;
  for (const StreamId stream : streams) cached += sink.of(stream).last.usage.cached_tokens;
  EXPECT_EQ(cached, 5 * (static_cast<int32_t>(c.prompt.size()) - 1));
  const EngineLoad load = engine_->load();
  EXPECT_EQ(load.cached_tokens, static_cast<uint64_t>(cached));
  EXPECT_EQ(load.prompt_tokens, 6 * c.prompt.size());
  EXPECT_EQ(load.generated_tokens, 24u);
}

TEST_F(EngineThreadTest, AFullQueueRefusesAndRecovers) {
  LlamaEngineOptions options;
  options.max_running_requests = 1;
  options.max_queued_requests = 2;
  Start(options);
  CollectingSink sink;
  size_t accepted = 0;
  Status refused = OkStatus();
  // Some may end meanwhile.
  for (;;) {
    refused = engine_->Submit(Greedy(cases_[1].prompt, 100), &sink);
    if (!refused.ok()) break;
    ++accepted;
  }
  EXPECT_GE(accepted, 3u);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  sink.WaitForEnds(accepted);
  EXPECT_EQ(Ask(Greedy(cases_[1].prompt, 2)).tokens.size(), 2u);
  ExpectIdle();
}

TEST_F(EngineThreadTest, APromptThatTheCacheCannotHoldIsRefused) {
  LlamaEngineOptions options;
  options.max_total_tokens = 10;
  Start(options);
  EXPECT_EQ(engine_->info().context_length, 10);
  CollectingSink sink;
  const Status status = engine_->Submit(Greedy(std::vector<TokenId>(10, 1), 1), &sink);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  GenerateRequest growing = Greedy(std::vector<TokenId>(5, 1), 30);
  const Answer answer = Ask(std::move(growing));
  EXPECT_EQ(answer.last.finish, FinishReason::kError);
  EXPECT_EQ(answer.last.error.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(MessageOf(answer.last.error).find("holds only 10"), std::string_view::npos);
  ExpectIdle();
}

TEST_F(EngineThreadTest, FlushingNeedsAnIdleEngineAndEmptiesTheCache) {
  Start({});
  Ask(Greedy(cases_[1].prompt, 4));
  EXPECT_GT(engine_->load().kv_cells_cached, 0);
  CollectingSink sink;
  GenerateRequest request = Greedy(cases_[1].prompt, 200);
  const StreamId stream = request.stream;
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kInPlace})
                  .ok());  // or it might end before the flush
  ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
  EXPECT_EQ(ControlAndWait(*engine_, FlushCacheControl{}).code(), StatusCode::kFailedPrecondition);
  engine_->Abort(stream, kNoShard);
  sink.WaitForEnds(1);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  EXPECT_TRUE(ControlAndWait(*engine_, FlushCacheControl{}).ok());
  // The turn before the flush may still write its count.
  const TimePoint deadline = Clock::now() + std::chrono::seconds(60);
  while (engine_->load().kv_cells_cached != 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(engine_->load().kv_cells_cached, 0);
  EXPECT_EQ(Ask(Greedy(cases_[1].prompt, 4)).last.usage.cached_tokens, 0);
}

TEST_F(EngineThreadTest, StoppingEndsEveryStreamOnceAndRefusesNewOnes) {
  LlamaEngineOptions options;
  options.max_running_requests = 2;
  Start(options);
  CollectingSink sink;
  std::vector<StreamId> streams;
  for (int i = 0; i < 6; ++i) {
    GenerateRequest request = Greedy(cases_[1].prompt, 200);
    streams.push_back(request.stream);
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
  }
  sink.WaitForTokens(streams[0], 2);
  engine_->Stop();
  engine_->Stop();
  for (const StreamId stream : streams) {
    EXPECT_EQ(sink.of(stream).terminals, 1);
    ExpectAbortedOrWhole(sink.of(stream), 200);
  }
  EXPECT_EQ(engine_->Submit(Greedy({1}, 1), &sink).code(), StatusCode::kUnavailable);
  ExpectIdle();
}

// The bar of the first milestone: 1,000 clients that leave at random moments leave nothing behind.
TEST_F(EngineThreadTest, AThousandAbortsAtRandomTimesLeaveNothingBehind) {
  LlamaEngineOptions options;
  options.max_running_requests = 16;
  options.max_total_tokens = 1500;  // evictions and retractions, too
  options.chunked_prefill_size = 64;
  Start(options);
  std::mt19937 random(9);
  CollectingSink sink;
  std::vector<StreamId> streams;
  std::vector<StreamId> alive;
  for (int i = 0; i < RandomRounds(1000); ++i) {
    GenerateRequest request = Greedy(Noise(&random, 200), 200);
    if (i % 3 == 0) request.prompt_logprobs_start = 0;
    streams.push_back(request.stream);
    alive.push_back(request.stream);
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    while (alive.size() > random() % 40) {
      const size_t which = random() % alive.size();
      engine_->Abort(alive[which], kNoShard);
      alive.erase(alive.begin() + static_cast<ptrdiff_t>(which));
    }
  }
  for (const StreamId stream : alive) engine_->Abort(stream, kNoShard);
  sink.WaitForEnds(streams.size());
  for (const StreamId stream : streams) {
    const Answer answer = sink.of(stream);
    ASSERT_EQ(answer.terminals, 1);
    ASSERT_EQ(answer.after_end, 0);
    ExpectAbortedOrWhole(answer, 200);
  }
  ExpectIdle();
  EXPECT_TRUE(ControlAndWait(*engine_, FlushCacheControl{}).ok());
  for (size_t k = 0; k < cases_.size(); ++k) {
    if (cases_[k].prompt.size() < 1000) ExpectReference(k, Ask(Question(k)), "afterwards");
  }
}

TEST_F(EngineThreadTest, OptionsOutOfRangeAreNamed) {
  LlamaEngineOptions options;
  options.max_running_requests = kMaxRunningRequests + 1;
  const auto engine = NewLlamaEngine(std::move(model_), options);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(FieldOf(engine.status()), "max_running_requests");
}

}  // namespace
}  // namespace portico::llama
