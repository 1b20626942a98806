#include "engine/mock/mock_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace portico {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// Collects what an engine delivers.
class CollectingSink : public TokenSink {
 public:
  struct Answer {
    std::vector<TokenId> tokens;
    std::vector<PositionLogprobs> logprobs;
    std::vector<PositionLogprobs> prompt_logprobs;
    // Of the terminal delta.
    struct {
      FinishReason finish = FinishReason::kNone;
      TokenId matched_token = -1;
      TokenUsage usage;
      Status error;
    } last;
    int deltas = 0;
    int ends = 0;
    bool spoke_after_end = false;
  };

  void Deliver(std::vector<TokenDelta> batch) override {
    const MutexLock lock(&mutex_);
    for (TokenDelta& delta : batch) Add(std::move(delta));
    changed_.NotifyAll();
  }

  // Waits until `count` streams have ended.
  void WaitForEnds(size_t count) {
    const MutexLock lock(&mutex_);
    while (ended_ < count) changed_.Wait(&mutex_);
  }
  // Waits until the stream has `count` tokens.
  void WaitForTokens(StreamId stream, size_t count) {
    const MutexLock lock(&mutex_);
    while (answers_[stream].tokens.size() < count) changed_.Wait(&mutex_);
  }

  Answer answer(StreamId stream) {
    const MutexLock lock(&mutex_);
    return answers_[stream];
  }
  std::map<StreamId, Answer> answers() {
    const MutexLock lock(&mutex_);
    return answers_;
  }
  size_t ended() {
    const MutexLock lock(&mutex_);
    return ended_;
  }

 private:
  void Add(TokenDelta delta) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Answer& answer = answers_[delta.stream];
    answer.spoke_after_end |= answer.ends > 0;
    ++answer.deltas;
    answer.tokens.insert(answer.tokens.end(), delta.tokens.begin(), delta.tokens.end());
    answer.logprobs.insert(answer.logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
    answer.prompt_logprobs.insert(answer.prompt_logprobs.end(), delta.prompt_logprobs.begin(),
                                  delta.prompt_logprobs.end());
    if (delta.finish != FinishReason::kNone) {
      ++answer.ends;
      ++ended_;
      answer.last = {delta.finish, delta.matched_token, delta.usage, std::move(delta.error)};
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::map<StreamId, Answer> answers_ ABSL_GUARDED_BY(mutex_);
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
};

MockEngineOptions Options() {
  MockEngineOptions options;
  options.vocab_size = 1000;
  options.context_length = 100000;
  options.special_ids = {1, 2, 3};
  options.eos_token_ids = {2};
  return options;
}

GenerateRequest Request(std::vector<TokenId> prompt, int32_t max_new_tokens) {
  GenerateRequest request;
  request.stream = NextStreamId();
  request.prompt = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
  OwnSampling(&request);
  request.max_new_tokens = max_new_tokens;
  return request;
}

// Runs one request on an engine of its own.
CollectingSink::Answer AnswerOf(const MockEngineOptions& options, GenerateRequest request) {
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  const StreamId id = request.stream;
  EXPECT_TRUE(engine->Submit(std::move(request), &sink).ok());
  sink.WaitForEnds(1);
  return sink.answer(id);
}

void ExpectIdle(const Engine& engine) {
  const EngineLoad load = engine.load();
  EXPECT_EQ(load.running, 0);
  EXPECT_EQ(load.waiting, 0);
  EXPECT_EQ(load.kv_cells_used, 0);
}

TEST(MockEngine, RepeatsThePromptWithoutItsSpecialTokens) {
  const auto answer = AnswerOf(Options(), Request({1, 10, 2, 11, 12, 3}, 7));
  EXPECT_THAT(answer.tokens, ElementsAre(10, 11, 12, 10, 11, 12, 10));
  EXPECT_EQ(answer.ends, 1);
  EXPECT_EQ(answer.last.finish, FinishReason::kLength);
  EXPECT_EQ(answer.last.usage.prompt_tokens, 6);
  EXPECT_EQ(answer.last.usage.completion_tokens, 7);
}

TEST(MockEngine, RepeatsTheLastTokenOfAPromptOfSpecialTokensOnly) {
  EXPECT_THAT(AnswerOf(Options(), Request({1, 3}, 3)).tokens, ElementsAre(3, 3, 3));
}

TEST(MockEngine, DoesNotStopAtAnEndTokenThatIsNotSpecial) {
  MockEngineOptions options = Options();
  options.eos_token_ids = {11};
  EXPECT_EQ(AnswerOf(options, Request({10, 11}, 6)).tokens.size(), 6u);
}

TEST(MockEngine, EndsAtAStopTokenAndNamesIt) {
  GenerateRequest request = Request({10, 11, 12}, 100);
  OwnSampling(&request).stop_token_ids = {12};
  const auto answer = AnswerOf(Options(), std::move(request));
  EXPECT_THAT(answer.tokens, ElementsAre(10, 11, 12));
  EXPECT_EQ(answer.last.finish, FinishReason::kStop);
  EXPECT_EQ(answer.last.matched_token, 12);
}

TEST(MockEngine, DoesNotEndAtAStopTokenWithinTheMinimum) {
  GenerateRequest request = Request({10, 11, 12}, 100);
  OwnSampling(&request).stop_token_ids = {12};
  OwnSampling(&request).min_new_tokens = 3;
  EXPECT_THAT(AnswerOf(Options(), std::move(request)).tokens, ElementsAre(10, 11, 12, 10, 11, 12));
}

TEST(MockEngine, GivesOneLogprobATokenWithDistinctAlternativesBestFirst) {
  GenerateRequest request = Request({10, 999}, 5);
  request.return_logprobs = true;
  request.top_logprobs = 4;
  const auto answer = AnswerOf(Options(), std::move(request));
  ASSERT_EQ(answer.logprobs.size(), 5u);
  for (size_t i = 0; i < answer.logprobs.size(); ++i) {
    const PositionLogprobs& at = answer.logprobs[i];
    EXPECT_EQ(at.chosen.token, answer.tokens[i]);
    EXPECT_LT(at.chosen.logprob, 0.0f);
    ASSERT_EQ(at.top.size(), 4u);
    std::set<TokenId> ids;
    for (size_t k = 0; k < at.top.size(); ++k) {
      ids.insert(at.top[k].token);
      EXPECT_LT(at.top[k].token, 1000);
      if (k > 0) {
        EXPECT_LT(at.top[k].logprob, at.top[k - 1].logprob);
      }
    }
    EXPECT_EQ(ids.size(), 4u);
  }
}

TEST(MockEngine, GivesPromptLogprobsWithoutAnyNewToken) {
  GenerateRequest request = Request({10, 11, 12, 13}, 0);
  request.prompt_logprobs_start = 0;
  const auto answer = AnswerOf(Options(), std::move(request));
  EXPECT_THAT(answer.tokens, IsEmpty());
  EXPECT_EQ(answer.last.finish, FinishReason::kLength);
  ASSERT_EQ(answer.prompt_logprobs.size(), 3u);
  EXPECT_EQ(answer.prompt_logprobs[0].chosen.token, 11);
  EXPECT_EQ(answer.prompt_logprobs[2].chosen.token, 13);
}

TEST(MockEngine, GivesPromptLogprobsOnce) {
  MockEngineOptions options = Options();
  options.itl_ms = 1;
  GenerateRequest request = Request({10, 11, 12, 13}, 4);
  request.prompt_logprobs_start = 2;
  EXPECT_EQ(AnswerOf(options, std::move(request)).prompt_logprobs.size(), 2u);
}

TEST(MockEngine, BoundsTheTokensOfADeltaAndLosesNone) {
  const auto answer = AnswerOf(Options(), Request({10}, 1000));
  EXPECT_EQ(answer.tokens.size(), 1000u);
  EXPECT_GE(answer.deltas, 1000 / kMockTokensPerDelivery);
}

TEST(MockEngine, GivesSeveralTokensAStepWhenAskedTo) {
  MockEngineOptions options = Options();
  options.itl_ms = 1;
  options.tokens_per_step = 3;
  const auto answer = AnswerOf(options, Request({10, 11}, 7));
  EXPECT_THAT(answer.tokens, ElementsAre(10, 11, 10, 11, 10, 11, 10));
  EXPECT_LE(answer.deltas, 3);
}

TEST(MockEngine, KeepsTheDelaysAsked) {
  MockEngineOptions options = Options();
  options.ttft_ms = 30;
  options.itl_ms = 5;
  const TimePoint start = Clock::now();
  AnswerOf(options, Request({10}, 5));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(50));  // never too early
}

TEST(MockEngine, EndsAnAbortedStreamOnceAndFreesItsCells) {
  MockEngineOptions options = Options();
  options.itl_ms = 3'600'000;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  GenerateRequest request = Request({10, 11}, 100);
  const StreamId id = request.stream;
  ASSERT_TRUE(engine->Submit(std::move(request), &sink).ok());
  sink.WaitForTokens(id, 1);
  EXPECT_EQ(engine->load().kv_cells_used, 3);
  EXPECT_EQ(ControlAndWait(*engine, FlushCacheControl{}).code(), StatusCode::kFailedPrecondition);
  engine->Abort(id, kNoShard);
  engine->Abort(id, kNoShard);
  engine->Abort(NextStreamId(), kNoShard);
  sink.WaitForEnds(1);
  ExpectIdle(*engine);
  EXPECT_TRUE(ControlAndWait(*engine, FlushCacheControl{}).ok());
  engine->Stop();
  EXPECT_EQ(sink.answer(id).last.finish, FinishReason::kAbort);
  EXPECT_EQ(sink.answer(id).ends, 1);
}

TEST(MockEngine, LetsRequestsWaitAndRefusesThoseBeyondTheQueue) {
  MockEngineOptions options = Options();
  options.itl_ms = 3'600'000;
  options.max_running_requests = 1;
  options.max_queued_requests = 2;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  std::vector<StreamId> ids;
  for (int i = 0; i < 3; ++i) {
    GenerateRequest request = Request({10}, 2);
    ids.push_back(request.stream);
    ASSERT_TRUE(engine->Submit(std::move(request), &sink).ok());
  }
  EXPECT_EQ(engine->Submit(Request({10}, 2), &sink).code(), StatusCode::kResourceExhausted);
  sink.WaitForTokens(ids[0], 1);
  EXPECT_EQ(engine->load().running, 1);
  EXPECT_EQ(engine->load().waiting, 2);
  engine->Abort(ids[1], kNoShard);  // while it waits
  sink.WaitForEnds(1);
  engine->Abort(ids[0], kNoShard);  // makes room for the last
  sink.WaitForTokens(ids[2], 1);
  EXPECT_THAT(sink.answer(ids[1]).tokens, IsEmpty());
  EXPECT_EQ(engine->load().waiting, 0);
}

TEST(MockEngine, EndsEveryStreamAtStopAndRefusesFromThenOn) {
  MockEngineOptions options = Options();
  options.ttft_ms = 3'600'000;
  options.max_running_requests = 2;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine->Submit(Request({10}, 2), &sink).ok());
  engine->Stop();
  engine->Stop();
  EXPECT_EQ(sink.ended(), 5u);
  for (const auto& [id, answer] : sink.answers()) {
    EXPECT_EQ(answer.last.finish, FinishReason::kAbort);
  }
  EXPECT_EQ(engine->Submit(Request({10}, 2), &sink).code(), StatusCode::kUnavailable);
  ExpectIdle(*engine);
}

TEST(MockEngine, DiesOnDemandWithAllItsStreams) {
  MockEngineOptions options = Options();
  options.faults.die = 1;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  ASSERT_TRUE(ControlAndWait(*engine, PauseControl{PauseMode::kInPlace})
                  .ok());  // or the first kills it before the others
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine->Submit(Request({10}, 1), &sink).ok());
  ASSERT_TRUE(ControlAndWait(*engine, ContinueControl{}).ok());
  sink.WaitForEnds(3);
  for (const auto& [id, answer] : sink.answers()) {
    EXPECT_EQ(answer.ends, 1);
    EXPECT_EQ(answer.last.finish, FinishReason::kError);
    EXPECT_EQ(answer.last.error.code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(engine->Submit(Request({10}, 1), &sink).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(engine->load().healthy);
  ExpectIdle(*engine);
}

TEST(MockEngine, StallsOnDemandUntilTheStreamIsAborted) {
  MockEngineOptions options = Options();
  options.faults.stall = 1;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  GenerateRequest request = Request({10}, 1);
  const StreamId id = request.stream;
  ASSERT_TRUE(engine->Submit(std::move(request), &sink).ok());
  while (engine->load().running == 0) std::this_thread::yield();
  EXPECT_EQ(engine->load().steps, 0u);
  engine->Abort(id, kNoShard);
  sink.WaitForEnds(1);
  EXPECT_THAT(sink.answer(id).tokens, IsEmpty());
  EXPECT_EQ(sink.answer(id).last.finish, FinishReason::kAbort);
}

TEST(MockEngine, FailsRequestsAtTheRateAsked) {
  MockEngineOptions options = Options();
  options.faults.error = 0.25;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(engine->Submit(Request({10}, 8), &sink).ok());
  sink.WaitForEnds(1000);
  int failed = 0;
  for (const auto& [id, answer] : sink.answers()) {
    if (answer.last.finish != FinishReason::kError) continue;
    ++failed;
    EXPECT_EQ(answer.last.error.code(), StatusCode::kInternal);
    EXPECT_LT(answer.tokens.size(), 8u);
  }
  EXPECT_GT(failed, 200);
  EXPECT_LT(failed, 300);
  ExpectIdle(*engine);
}

TEST(MockEngine, SurvivesAbortsFromManyThreadsWithEveryStreamEndedOnce) {
  MockEngineOptions options = Options();
  options.itl_ms = 0.2;
  options.max_running_requests = 64;
  options.max_queued_requests = 100000;
  CollectingSink sinks[3];
  const auto engine = NewMockEngine(options);
  std::vector<std::thread> threads;
  for (CollectingSink& sink : sinks) {
    threads.emplace_back([&engine, &sink] {
      for (int i = 0; i < 300; ++i) {
        GenerateRequest request = Request({10, 11, 12}, 20);
        const StreamId id = request.stream;
        ASSERT_TRUE(engine->Submit(std::move(request), &sink).ok());
        if (i % 2 == 0) engine->Abort(id, kNoShard);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (CollectingSink& sink : sinks) {
    sink.WaitForEnds(300);
    for (const auto& [id, answer] : sink.answers()) {
      EXPECT_EQ(answer.ends, 1);
      EXPECT_FALSE(answer.spoke_after_end);
    }
  }
  ExpectIdle(*engine);
}

TEST(MockEngine, CountsWhatItServed) {
  CollectingSink sink;
  const auto engine = NewMockEngine(Options());
  ASSERT_TRUE(engine->Submit(Request({10, 11, 12}, 5), &sink).ok());
  sink.WaitForEnds(1);
  EXPECT_EQ(engine->load().prompt_tokens, 3u);
  EXPECT_EQ(engine->load().generated_tokens, 5u);
  EXPECT_EQ(engine->info().name, "mock");
  EXPECT_THAT(engine->info().eos_token_ids, ElementsAreArray({2}));
}

}  // namespace
}  // namespace portico
