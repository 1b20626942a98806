#include "engine/mock/simulated_engine.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace portico {
namespace {

class Sink final : public TokenSink {
 public:
  ShardIndex shard() const override { return kNoShard; }
  void Deliver(std::vector<TokenDelta> batch) override {
    const MutexLock lock(&mutex_);
    for (TokenDelta& delta : batch) {
      std::vector<TokenId>& tokens = tokens_[delta.stream];
      tokens.insert(tokens.end(), delta.tokens.begin(), delta.tokens.end());
      if (delta.finish != FinishReason::kNone) ends_[delta.stream] = {delta.finish, delta.usage};
    }
    changed_.NotifyAll();
  }
  struct End {
    FinishReason finish = FinishReason::kNone;
    TokenUsage usage;
  };
  // Of the stream's last delta.
  End Await(StreamId stream) {
    const MutexLock lock(&mutex_);
    while (!ends_.contains(stream)) changed_.Wait(&mutex_);
    return ends_[stream];
  }
  bool HasEnded(StreamId stream) {
    const MutexLock lock(&mutex_);
    return ends_.contains(stream);
  }
  std::vector<TokenId> tokens(StreamId stream) {
    const MutexLock lock(&mutex_);
    return tokens_[stream];
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<StreamId, std::vector<TokenId>> tokens_ ABSL_GUARDED_BY(mutex_);
  std::map<StreamId, End> ends_ ABSL_GUARDED_BY(mutex_);
};

GenerateRequest Request(StreamId stream, std::vector<TokenId> prompt, int32_t count) {
  GenerateRequest request;
  request.stream = stream;
  request.prompt = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
  request.sampling = std::make_shared<const SamplingParams>();
  request.max_new_tokens = count;
  return request;
}

std::vector<TokenId> Prompt(TokenId first, size_t size) {
  std::vector<TokenId> prompt(size);
  std::iota(prompt.begin(), prompt.end(), first);
  return prompt;
}

std::unique_ptr<Engine> Make(MockSimulation simulation) {
  MockEngineOptions options;
  options.vocab_size = 100000;
  options.context_length = 4096;
  options.max_running_requests = 4;
  options.special_ids = {7};
  options.simulation = simulation;
  return NewMockEngine(std::move(options));
}

TEST(SimulatedEngineTest, AnswersWithThePromptsOwnTokensAndSharesPrefixes) {
  Sink sink;
  auto engine = Make({.kv_cells = 1000, .prefill_us = 1});
  std::vector<TokenId> prompt = Prompt(1, 100);
  ASSERT_TRUE(engine->Submit(Request(1, prompt, 8), &sink).ok());
  const Sink::End last = sink.Await(1);
  EXPECT_EQ(sink.tokens(1), (std::vector<TokenId>{1, 2, 3, 4, 5, 6, 8, 9}));
  EXPECT_EQ(last.finish, FinishReason::kLength);
  EXPECT_EQ(last.usage.cached_tokens, 0);
  prompt.push_back(5000);
  ASSERT_TRUE(engine->Submit(Request(2, prompt, 1), &sink).ok());
  EXPECT_EQ(sink.Await(2).usage.cached_tokens, 100);
  EXPECT_EQ(engine->load().cached_tokens, 100U);
  EXPECT_EQ(engine->load().prompt_tokens, 201U);
  EXPECT_EQ(engine->load().running, 0);
}

TEST(SimulatedEngineTest, APrefixThatWasPushedOutIsComputedAgain) {
  Sink sink;
  auto engine = Make({.kv_cells = 300});
  StreamId id = 0;
  for (const TokenId first : {1, 1000, 2000, 1}) {
    ASSERT_TRUE(engine->Submit(Request(++id, Prompt(first, 150), 2), &sink).ok());
    EXPECT_EQ(sink.Await(id).usage.cached_tokens, 0) << id;
  }
  const Status status = engine->Submit(Request(9, Prompt(1, 300), 2), &sink);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

// Minutes, where any of the three is given: an engine whose steps take no time has long answered.
TEST(SimulatedEngineTest, AStepTakesTheTimeOfEachOfItsParts) {
  for (const MockSimulation& slow :
       {MockSimulation{.kv_cells = 2000, .step_ms = 200},
        MockSimulation{.kv_cells = 2000, .decode_us = 200'000},
        MockSimulation{.kv_cells = 2000, .prefill_us = 200'000, .chunk_tokens = 1}}) {
    Sink sink;
    auto engine = Make(slow);
    auto other = Make({.kv_cells = 2000});
    ASSERT_TRUE(engine->Submit(Request(1, Prompt(1, 600), 600), &sink).ok());
    ASSERT_TRUE(other->Submit(Request(2, Prompt(1, 600), 600), &sink).ok());
    EXPECT_EQ(sink.Await(2).finish, FinishReason::kLength);
    EXPECT_EQ(other->load().steps, 600U);
    EXPECT_FALSE(sink.HasEnded(1));
    engine->Abort(1, kNoShard);
    EXPECT_EQ(sink.Await(1).finish, FinishReason::kAbort);
  }
}

TEST(SimulatedEngineTest, AnAbortedStreamGivesItsCellsBack) {
  Sink sink;
  auto engine = Make({.kv_cells = 1000, .step_ms = 1});
  ASSERT_TRUE(engine->Submit(Request(1, Prompt(1, 10), 900), &sink).ok());
  engine->Abort(1, kNoShard);
  EXPECT_EQ(sink.Await(1).finish, FinishReason::kAbort);
  EXPECT_EQ(engine->load().kv_cells_used, 0);
  engine->Stop();
  EXPECT_FALSE(engine->Submit(Request(2, Prompt(1, 10), 1), &sink).ok());
}

}  // namespace
}  // namespace portico
