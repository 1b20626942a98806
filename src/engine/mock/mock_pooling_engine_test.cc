#include "engine/mock/mock_pooling_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace portico {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

class CollectingSink : public PoolingSink {
 public:
  void Deliver(std::vector<PoolingOutput> batch) override {
    const MutexLock lock(&mutex_);
    for (PoolingOutput& output : batch) outputs_[output.stream].push_back(std::move(output));
    changed_.NotifyAll();
    while (held_) changed_.Wait(&mutex_);
  }
  // The engine's thread stands in its next delivery until it is released.
  void Hold(bool held) {
    const MutexLock lock(&mutex_);
    held_ = held;
    changed_.NotifyAll();
  }

  // Waits until `count` texts have an answer: stream to its answers.
  std::map<StreamId, std::vector<PoolingOutput>> WaitFor(size_t count) {
    const MutexLock lock(&mutex_);
    while (outputs_.size() < count) changed_.Wait(&mutex_);
    return outputs_;
  }
  bool empty() {
    const MutexLock lock(&mutex_);
    return outputs_.empty();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<StreamId, std::vector<PoolingOutput>> outputs_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

constexpr double kNever = 3'600'000;

MockEngineOptions Options(ModelTask task = ModelTask::kEmbed) {
  MockEngineOptions options;
  options.vocab_size = 1000;
  options.context_length = 4096;
  options.task = task;
  return options;
}

PoolingRequest Text(std::vector<TokenId> tokens, std::vector<uint8_t> types = {}) {
  PoolingRequest request;
  request.stream = NextStreamId();
  request.tokens = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
  request.token_types = std::move(types);
  return request;
}

PoolingOutput AnswerOf(const MockEngineOptions& options, PoolingRequest text) {
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  EXPECT_TRUE(engine->SubmitPooling({std::move(text)}, &sink).ok());
  return sink.WaitFor(1).begin()->second.front();
}

Status SubmitOne(Engine* engine, PoolingSink* sink, StreamId* stream = nullptr) {
  PoolingRequest text = Text({1, 2, 3});
  if (stream != nullptr) *stream = text.stream;
  std::vector<PoolingRequest> texts;
  texts.push_back(std::move(text));
  return engine->SubmitPooling(std::move(texts), sink);
}

// What the engine's own thread says changes a moment after the call.
void WaitForLoad(const Engine& engine, int64_t running, int64_t waiting) {
  for (;;) {
    const EngineLoad load = engine.load();
    if (load.running == running && load.waiting == waiting) return;
    std::this_thread::yield();
  }
}

TEST(MockPoolingEngine, GivesTheSameVectorForTheSameTokensOnly) {
  const PoolingOutput a = AnswerOf(Options(), Text({5, 6, 7}));
  EXPECT_EQ(a.finish, FinishReason::kStop);
  EXPECT_EQ(a.prompt_tokens, 3);
  EXPECT_THAT(a.values, SizeIs(64));
  EXPECT_THAT(a.values, Each(::testing::AllOf(::testing::Ge(-1.0f), ::testing::Le(1.0f))));
  EXPECT_EQ(a.values, AnswerOf(Options(), Text({5, 6, 7})).values);
  EXPECT_NE(a.values, AnswerOf(Options(), Text({5, 7, 6})).values);
  EXPECT_NE(a.values, AnswerOf(Options(), Text({5, 6, 7}, {0, 0, 1})).values);
}

TEST(MockPoolingEngine, GivesALogitForEachLabel) {
  MockEngineOptions options = Options(ModelTask::kClassify);
  options.labels = 3;
  EXPECT_THAT(NewMockEngine(options)->info().labels, SizeIs(3));
  EXPECT_THAT(AnswerOf(options, Text({5, 6, 7})).values, SizeIs(3));
}

TEST(MockPoolingEngine, AnswersEveryTextOfARequestOnce) {
  CollectingSink sink;
  const auto engine = NewMockEngine(Options());
  std::vector<PoolingRequest> texts;
  for (TokenId i = 0; i < 500; ++i) texts.push_back(Text({i, i + 1}));
  ASSERT_TRUE(engine->SubmitPooling(std::move(texts), &sink).ok());
  sink.WaitFor(500);
  engine->Stop();
  for (const auto& [stream, outputs] : sink.WaitFor(500)) EXPECT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(engine->load().prompt_tokens, 1000u);
  EXPECT_EQ(engine->load().running + engine->load().waiting, 0);
}

TEST(MockPoolingEngine, RefusesRequestsForTokens) {
  const auto engine = NewMockEngine(Options());
  EXPECT_EQ(engine->Submit({}, nullptr).code(), StatusCode::kFailedPrecondition);
}

TEST(MockEngine, RefusesRequestsForVectors) {
  const auto engine = NewMockEngine(Options(ModelTask::kGenerate));
  CollectingSink sink;
  EXPECT_EQ(SubmitOne(engine.get(), &sink).code(), StatusCode::kFailedPrecondition);
}

TEST(MockPoolingEngine, RefusesWhatDoesNotFitIntoTheQueue) {
  MockEngineOptions options = Options();
  options.ttft_ms = kNever;
  options.max_running_requests = 1;
  options.max_queued_requests = 1;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  std::vector<PoolingRequest> many;
  for (int i = 0; i < 100; ++i) many.push_back(Text({i}));
  ASSERT_TRUE(engine->SubmitPooling(std::move(many), &sink).ok());
  ASSERT_TRUE(SubmitOne(engine.get(), &sink).ok());
  WaitForLoad(*engine, 1, 1);
  EXPECT_EQ(SubmitOne(engine.get(), &sink).code(), StatusCode::kResourceExhausted);
}

TEST(MockPoolingEngine, EndsAbortedTextsAndLeavesTheOthers) {
  MockEngineOptions options = Options();
  options.ttft_ms = kNever;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  std::vector<PoolingRequest> texts;
  texts.push_back(Text({1}));
  texts.push_back(Text({2}));
  const StreamId first = texts[0].stream, second = texts[1].stream;
  ASSERT_TRUE(engine->SubmitPooling(std::move(texts), &sink).ok());
  engine->Abort(first, kNoShard);
  EXPECT_EQ(sink.WaitFor(1)[first].front().finish, FinishReason::kAbort);
  WaitForLoad(*engine, 1, 0);
  engine->Abort(second, kNoShard);
  EXPECT_EQ(sink.WaitFor(2)[second].front().finish, FinishReason::kAbort);
  WaitForLoad(*engine, 0, 0);
}

TEST(MockPoolingEngine, StopEndsEverything) {
  MockEngineOptions options = Options();
  options.ttft_ms = kNever;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  StreamId stream = 0;
  ASSERT_TRUE(SubmitOne(engine.get(), &sink, &stream).ok());
  engine->Stop();
  EXPECT_EQ(sink.WaitFor(1)[stream].front().finish, FinishReason::kAbort);
  EXPECT_EQ(SubmitOne(engine.get(), &sink).code(), StatusCode::kUnavailable);
}

TEST(MockPoolingEngine, CommitsItsFaults) {
  MockEngineOptions options = Options();
  options.faults.error = 1;
  EXPECT_EQ(AnswerOf(options, Text({1})).error.code(), StatusCode::kInternal);
  options.faults = {.die = 1};
  EXPECT_EQ(AnswerOf(options, Text({1})).error.code(), StatusCode::kUnavailable);

  options.faults = {.stall = 1};
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  StreamId stream = 0;
  ASSERT_TRUE(SubmitOne(engine.get(), &sink, &stream).ok());
  while (engine->load().steps == 0) std::this_thread::yield();
  EXPECT_TRUE(sink.empty());
  engine->Abort(stream, kNoShard);
  EXPECT_EQ(sink.WaitFor(1)[stream].front().finish, FinishReason::kAbort);
}

TEST(MockPoolingEngine, ComputesNothingDuringAPause) {
  CollectingSink sink;
  const auto engine = NewMockEngine(Options());
  ASSERT_TRUE(ControlAndWait(*engine, PauseControl{PauseMode::kInPlace}).ok());
  StreamId stream = 0;
  ASSERT_TRUE(SubmitOne(engine.get(), &sink, &stream).ok());
  WaitForLoad(*engine, 0, 1);
  EXPECT_TRUE(engine->load().paused);
  EXPECT_TRUE(sink.empty());
  ASSERT_TRUE(ControlAndWait(*engine, ContinueControl{}).ok());
  EXPECT_EQ(sink.WaitFor(1)[stream].front().finish, FinishReason::kStop);
}

TEST(MockPoolingEngine, APauseAbortsOrRetractsWhatItsModeSays) {
  MockEngineOptions options = Options();
  options.ttft_ms = kNever;
  CollectingSink sink;
  const auto engine = NewMockEngine(options);
  StreamId stream = 0;
  ASSERT_TRUE(SubmitOne(engine.get(), &sink, &stream).ok());
  WaitForLoad(*engine, 1, 0);
  ASSERT_TRUE(ControlAndWait(*engine, PauseControl{PauseMode::kRetract}).ok());
  WaitForLoad(*engine, 0, 1);
  EXPECT_TRUE(sink.empty());
  ASSERT_TRUE(ControlAndWait(*engine, PauseControl{PauseMode::kAbort}).ok());
  EXPECT_EQ(sink.WaitFor(1)[stream].front().finish, FinishReason::kAbort);
}

TEST(MockPoolingEngine, APauseSparesWhatComesRightBehindIt) {
  // It took the pause and what had come after it in one go, and aborted both.
  CollectingSink sink;
  const auto engine = NewMockEngine(Options());
  sink.Hold(true);
  ASSERT_TRUE(SubmitOne(engine.get(), &sink).ok());
  sink.WaitFor(1);
  StreamId stream = 0;
  ASSERT_TRUE(ControlAndWait(*engine, PauseControl{PauseMode::kAbort}).ok());
  ASSERT_TRUE(SubmitOne(engine.get(), &sink, &stream).ok());
  ASSERT_TRUE(ControlAndWait(*engine, ContinueControl{}).ok());
  sink.Hold(false);
  EXPECT_EQ(sink.WaitFor(2)[stream].front().finish, FinishReason::kStop);
}

}  // namespace
}  // namespace portico
