// The engine end to end on the tiny models of the reference data, whose greedy answers and logits
// transformers has computed in float32.
#include "engine/llama/llama_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/llama/reference_engine_for_test.h"

namespace portico::llama {
namespace {

class LlamaEngineTest : public testing::TestWithParam<const char*>, protected ReferenceEngine {
 protected:
  void SetUp() override {
    if (!Here()) GTEST_SKIP() << "the reference data is not here";
    Load(GetParam());
  }
};

TEST_P(LlamaEngineTest, AnswersAsTransformersDoesAloneAndFromTheCache) {
  Start({});
  for (size_t k = 0; k < cases_.size(); ++k) ExpectReference(k, Ask(Question(k)), "alone");
  for (size_t k = 0; k < cases_.size(); ++k) {
    const Answer again = Ask(Question(k));
    ExpectReference(k, again, "from the cache");
    EXPECT_EQ(again.last.usage.cached_tokens, static_cast<int32_t>(cases_[k].prompt.size()) - 1);
  }
  ExpectIdle();
}

TEST_P(LlamaEngineTest, AnswersTheSameAmongManyOthers) {
  LlamaEngineOptions options;
  options.chunked_prefill_size = 48;
  Start(options);
  std::mt19937 random(7);
  CollectingSink sink;
  std::vector<std::pair<size_t, StreamId>> asked;
  for (size_t i = 0; i < 32; ++i) {
    if (i % 2 == 0) {
      GenerateRequest request = Question(i / 2);
      asked.emplace_back(i / 2, request.stream);
      ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
      continue;
    }
    std::vector<TokenId> noise(1 + random() % 100);
    for (TokenId& token : noise) token = static_cast<TokenId>(random() % vocab_);
    ASSERT_TRUE(
        engine_->Submit(Greedy(noise, 1 + static_cast<int32_t>(random() % 20)), &sink).ok());
  }
  sink.WaitForEnds(32);
  for (const auto& [k, stream] : asked) ExpectReference(k, sink.of(stream), "among others");
  ExpectIdle();
}

TEST_P(LlamaEngineTest, AnswersTheSameWhenTheCacheIsTooSmallForAll) {
  LlamaEngineOptions options;
  size_t longest = 0;
  for (const auto& c : cases_) longest = std::max(longest, c.prompt.size() + c.greedy.size());
  options.max_total_tokens = static_cast<int64_t>(longest + 8);
  options.chunked_prefill_size = 64;
  Start(options);
  CollectingSink sink;
  std::vector<StreamId> streams;
  for (size_t k = 0; k < 40; ++k) {
    GenerateRequest request = Question(k);
    streams.push_back(request.stream);
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
  }
  sink.WaitForEnds(40);
  for (size_t k = 0; k < 40; ++k) ExpectReference(k, sink.of(streams[k]), "in a small cache");
  ExpectIdle();
}

TEST_P(LlamaEngineTest, PromptLogprobsAreThoseOfTransformers) {
  Start({});
  for (size_t k = 0; k < cases_.size(); ++k) {
    const ReferenceCase& c = cases_[k];
    if (c.logits.size() != c.prompt.size() * vocab_ || c.prompt.size() < 2) continue;
    for (const int32_t start : {0, 1, static_cast<int32_t>(c.prompt.size()) / 2}) {
      GenerateRequest request = Greedy(c.prompt, 0);
      request.prompt_logprobs_start = start;
      request.top_logprobs = 5;
      const Answer answer = Ask(std::move(request));
      const auto first = static_cast<size_t>(std::max(start, 1));
      EXPECT_TRUE(answer.tokens.empty());
      EXPECT_EQ(answer.last.finish, FinishReason::kLength);
      ASSERT_EQ(answer.prompt_logprobs.size(), c.prompt.size() - first);
      for (size_t t = first; t < c.prompt.size(); ++t) {
        const float* row = &c.logits[(t - 1) * vocab_];
        double sum = 0;
        for (size_t v = 0; v < vocab_; ++v) sum += std::exp(static_cast<double>(row[v]));
        const PositionLogprobs& got = answer.prompt_logprobs[t - first];
        EXPECT_EQ(got.chosen.token, c.prompt[t]);
        EXPECT_NEAR(got.chosen.logprob, row[c.prompt[t]] - std::log(sum), 1e-3);
        ASSERT_EQ(got.top.size(), 5u);
        EXPECT_NEAR(got.top[0].logprob, *std::max_element(row, row + vocab_) - std::log(sum), 1e-3);
      }
    }
  }
  ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Folders, LlamaEngineTest,
                         testing::Values("llama-gqa", "llama-mha-bias", "llama-rope-llama3-tied",
                                         "llama-rope-yarn", "llama-rope-linear", "qwen2", "qwen3",
                                         "mistral-window"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace portico::llama
