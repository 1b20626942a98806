// Seeded answers at temperature 1 on a small model of qwen3's shape with random weights, alone and among others. Their
// log-probabilities are compared too: a last bit that differs in the logits shows there.
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "engine/llama/engine_for_test.h"
#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {
namespace {

constexpr int32_t kRequests = 24;

class LoadInvarianceTest : public testing::TestWithParam<const char*>, protected TestEngine {
 protected:
  static GenerateRequest Request(int32_t number) {
    std::mt19937 random(static_cast<uint32_t>(number));
    std::vector<TokenId> prompt(1 + random() % 90);
    for (TokenId& token : prompt) token = static_cast<TokenId>(random() % 101);
    GenerateRequest request = Greedy(std::move(prompt), 40);
    OwnSampling(&request).temperature = 1;
    OwnSampling(&request).seed = static_cast<uint64_t>(number);
    request.return_logprobs = true;
    return request;
  }

  static std::vector<std::pair<TokenId, float>> Drawn(const Answer& answer) {
    std::vector<std::pair<TokenId, float>> drawn;
    for (const PositionLogprobs& position : answer.logprobs) {
      drawn.emplace_back(position.chosen.token, position.chosen.logprob);
    }
    return drawn;
  }

  TempFolder folder_;
};

// 50 of 60 answers of a qwen3 changed with the load.
TEST_P(LoadInvarianceTest, SeededAnswersAreThoseGivenAlone) {
  RandomModel(SmallConfig("qwen3", {{"num_hidden_layers", 3}})).Write(folder_.path(), GetParam());
  LoadModel(folder_.path(), "auto");
  ASSERT_NE(model_, nullptr);
  LlamaEngineOptions options;
  options.max_running_requests = 16;
  options.max_total_tokens = 1024;  // for some ten of them: the youngest must make room
  options.chunked_prefill_size = 48;
  Start(options);
  std::vector<std::vector<std::pair<TokenId, float>>> alone;
  for (int32_t i = 0; i < kRequests; ++i) alone.push_back(Drawn(Ask(Request(i))));
  EXPECT_EQ(alone[0].size(), 40u);
  for (int round = 0; round < 2; ++round) {
    CollectingSink sink;
    std::vector<StreamId> streams;
    for (int32_t i = 0; i < kRequests; ++i) {
      GenerateRequest request = Request(i);
      streams.push_back(request.stream);
      ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
    }
    sink.WaitForEnds(kRequests);
    for (size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(Drawn(sink.of(streams[i])), alone[i]) << i;
    }
  }
  ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Weights, LoadInvarianceTest, testing::Values("F32", "F16", "BF16"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace portico::llama
