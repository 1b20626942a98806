// Greedy answers on the demo model through hundreds of random schedules on one engine: requests that share prefixes,
// make room for one another, are aborted, and start in a cache that all before them have left behind.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/sanitized_for_test.h"
#include "engine/llama/engine_for_test.h"
#include "engine/llama/generation/demo_for_test.h"

namespace portico::llama {
namespace {

struct Setup {
  const char* name;
  const char* dtype;
};

class DemoSchedulesTest : public testing::TestWithParam<Setup>, protected TestEngine {
 protected:
  // One schedule: what is asked at once, and what becomes of it.
  void RunSchedule(int number) {
    CollectingSink sink;
    std::vector<std::pair<StreamId, size_t>> questions;
    std::vector<StreamId> aborted;
    const size_t count = 2 + random_() % 6;
    for (size_t i = 0; i < count; ++i) {
      const size_t k = random_() % questions_.size();
      GenerateRequest request = Greedy(questions_[k].prompt, 40);
      OwnSampling(&request).ignore_eos = false;
      const bool noise = random_() % 3 == 0;
      if (noise) {  // begins as a question does
        std::vector<TokenId> tokens(questions_[k].prompt.begin(), questions_[k].prompt.begin() + 4);
        for (size_t n = random_() % 40; n > 0; --n) {
          tokens.push_back(static_cast<TokenId>(random_() % 3000));
        }
        request = Greedy(std::move(tokens), static_cast<int32_t>(1 + random_() % 30));
      }
      const StreamId stream = request.stream;
      ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
      if (noise && random_() % 2 == 0) {
        aborted.push_back(stream);
      } else if (!noise) {
        questions.emplace_back(stream, k);
      }
      if (random_() % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
      }
    }
    const size_t growing =
        number % 5 == 0 ? 2 : 0;  // let in together, until there is room for one only
    for (size_t i = 0; i < growing; ++i) {
      std::vector<TokenId> tokens(10);
      for (TokenId& token : tokens) token = static_cast<TokenId>(random_() % 3000);
      ASSERT_TRUE(engine_->Submit(Greedy(std::move(tokens), 60), &sink).ok());
    }
    for (const StreamId stream : aborted) engine_->Abort(stream, kNoShard);
    sink.WaitForEnds(count + growing);
    for (const auto& [stream, k] : questions) {
      std::vector<TokenId> expected = questions_[k].answer;
      expected.push_back(kDemoEnd);
      ASSERT_EQ(sink.of(stream).tokens, expected) << "schedule " << number << ", question " << k;
    }
    if (random_() % 10 == 0) {
      ASSERT_TRUE(ControlAndWait(*engine_, FlushCacheControl{}).ok());
    }
  }

  const std::vector<DemoQuestion> questions_ = DemoQuestions();
  std::mt19937 random_{21};
};

TEST_P(DemoSchedulesTest, EveryAnswerIsTheOneGivenAlone) {
  LlamaEngineOptions options;
  options.max_running_requests = 8;
  options.max_total_tokens = 112;  // four questions or so: the youngest must make room
  options.chunked_prefill_size = 16;
  LoadModel(DemoFolder(), GetParam().dtype);
  ASSERT_NE(model_, nullptr);
  Start(options);
  for (int i = 0; i < (kSanitized ? 20 : 300) && !HasFatalFailure(); ++i) RunSchedule(i);
  EXPECT_GT(engine_->load().retractions, 0u);
  ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Weights, DemoSchedulesTest,
                         testing::Values(Setup{"float32", "float32"}, Setup{"auto", "auto"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace portico::llama
