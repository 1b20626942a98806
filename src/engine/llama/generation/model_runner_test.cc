#include "engine/llama/generation/model_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/sanitized_for_test.h"
#include "engine/llama/generation/demo_for_test.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/model/logits_for_test.h"

namespace portico::llama {
namespace {

// A client that left during a long prompt was computed for to the end of its chunk: seconds.
TEST(ModelRunner, ACancelledStepCanBeRunAgain) {
  TempFolder cache("PORTICO_CACHE_DIR");
  ModelOptions model_options;
  model_options.path = DemoFolder();
  model_options.dtype = "float32";
  auto model = LlamaModel::Load(model_options, nullptr);
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  RunnerOptions options;
  options.cells = 64;
  auto runner = ModelRunner::Create(**model, options);
  ASSERT_TRUE(runner.ok()) << MessageOf(runner.status());

  ScheduledRequest request;
  request.tokens = DemoQuestions()[0].prompt;
  request.branch.sequence = 0;
  const auto size = static_cast<int32_t>(request.tokens.size());
  Step step;
  step.chunks.push_back({&request, 0, size, 1, true});
  const std::atomic<bool> no{false};
  const std::atomic<bool> yes{true};
  ASSERT_TRUE((*runner)->Run(step, no).ok());
  const auto row = (*runner)->Logits(0);
  const std::vector<float> logits(row.begin(), row.end());
  (*runner)->Remove(0, 0, -1);

  EXPECT_EQ((*runner)->Run(step, yes).code(), StatusCode::kCancelled);
  (*runner)->Remove(0, 0, -1);
  ASSERT_TRUE((*runner)->Run(step, no).ok());
  const auto again = (*runner)->Logits(0);
  EXPECT_EQ(std::vector<float>(again.begin(), again.end()), logits);
}

// Logits of the last token of `tokens`, computed in chunks of at most `chunk` tokens, beside the cells of another request.
std::vector<float> LastLogits(const LlamaModel& model, bool own_attention, int32_t chunk,
                              const std::vector<TokenId>& tokens,
                              const std::vector<TokenId>& others) {
  RunnerOptions options;
  options.cells = 256;
  options.max_sequences_a_step = 2;
  options.own_attention = own_attention;
  auto runner = ModelRunner::Create(model, options);
  if (!runner.ok()) {
    ADD_FAILURE() << MessageOf(runner.status());
    return {};
  }
  const std::atomic<bool> no{false};
  const auto compute = [&](const std::vector<TokenId>& of, int32_t sequence, int32_t step_size) {
    ScheduledRequest request;
    request.tokens = of;
    request.branch.sequence = sequence;
    const auto size = static_cast<int32_t>(of.size());
    for (int32_t begin = 0; begin < size; begin += step_size) {
      const int32_t count = std::min(step_size, size - begin);
      Step step;
      step.chunks.push_back({&request, begin, count, 1, begin + count == size});
      EXPECT_TRUE((*runner)->Run(step, no).ok());
      EXPECT_EQ((*runner)->own_layers() > 0, own_attention);
    }
  };
  if (!others.empty()) compute(others, 1, 64);
  compute(tokens, 0, chunk);
  const auto row = (*runner)->Logits(0);
  return {row.begin(), row.end()};
}

struct Weights {
  const char* name;
  const char* dtype;
  const char* quantization;
  float tolerance;  // between Portico's attention and libllama's
  bool deterministic = false;
  const char* kv_cache_dtype = "auto";
};

class AnswersOfOneRequest : public testing::TestWithParam<Weights> {
 protected:
  void SetUp() override {
    ModelOptions options;
    options.path = DemoFolder();
    options.dtype = GetParam().dtype;
    options.quantization = GetParam().quantization;
    options.deterministic = GetParam().deterministic;
    options.kv_cache_dtype = GetParam().kv_cache_dtype;
    auto model = LlamaModel::Load(options, nullptr);
    ASSERT_TRUE(model.ok()) << MessageOf(model.status());
    model_ = *std::move(model);
    for (int round = 0; round < 4; ++round) {
      const auto questions = DemoQuestions();
      tokens_.insert(tokens_.end(), questions[0].prompt.begin(), questions[0].prompt.end());
    }
    for (int32_t i = 0; i < 60; ++i) others_.push_back(5 + i);
  }

  TempFolder cache_{"PORTICO_CACHE_DIR"};
  std::unique_ptr<LlamaModel> model_;
  std::vector<TokenId> tokens_, others_;
};

// libllama's attention runs over all cells in use: 1,024 new tokens took twice as long beside 14,000 cached ones.
TEST_P(AnswersOfOneRequest, AreThoseOfLibllamasAttention) {
  const std::vector<float> theirs = LastLogits(*model_, false, 64, tokens_, {});
  for (const int32_t chunk : {64, 7, 1}) {
    const std::vector<float> ours = LastLogits(*model_, true, chunk, tokens_, others_);
    EXPECT_LT(MaxDifference(ours, theirs), GetParam().tolerance) << chunk;
  }
}

// Greedy and seeded answers changed with the load: 50 of 60 of a qwen3's at temperature 1.
TEST_P(AnswersOfOneRequest, AreTheSameBitsHoweverTheyAreComputed) {
  const std::vector<float> alone = LastLogits(*model_, true, 64, tokens_, {});
  const std::vector<int32_t> all = {64, 20, 7, 2, 1};
  for (const int32_t chunk : kSanitized ? std::vector<int32_t>{20, 1} : all) {
    EXPECT_EQ(LastLogits(*model_, true, chunk, tokens_, others_), alone) << chunk;
  }
}

// libllama's attention rounds queries to the type of quantized keys.
INSTANTIATE_TEST_SUITE_P(
    Weights, AnswersOfOneRequest,
    testing::Values(Weights{"float32", "float32", "", 1e-4f},
                    Weights{"bfloat16", "bfloat16", "", 0.1f},
                    Weights{"q8_0", "auto", "q8_0", 0.3f},
                    Weights{"q4_k_m", "auto", "q4_k_m", 0.5f, true},
                    Weights{"bfloat16_cache_float32", "bfloat16", "", 0.1f, false, "float32"},
                    Weights{"bfloat16_cache_bfloat16", "bfloat16", "", 0.3f, false, "bfloat16"},
                    Weights{"bfloat16_cache_q8_0", "bfloat16", "", 1.0f, false, "q8_0"},
                    Weights{"q8_0_cache_q5_1", "auto", "q8_0", 1.0f, false, "q5_1"},
                    Weights{"q4_k_m_cache_q8_0", "auto", "q4_k_m", 1.0f, true, "q8_0"}),
    [](const auto& test) { return test.param.name; });

// Beside another request's tokens in the same step, and after what others have left.
TEST(ModelRunner, ATokenGivesTheSameBitsAloneAndInABatch) {
  TempFolder cache("PORTICO_CACHE_DIR");
  ModelOptions model_options;
  model_options.path = DemoFolder();
  auto model = LlamaModel::Load(model_options, nullptr);
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  RunnerOptions options;
  options.cells = 256;
  options.max_sequences_a_step = 4;
  auto runner = ModelRunner::Create(**model, options);
  ASSERT_TRUE(runner.ok()) << MessageOf(runner.status());
  const std::atomic<bool> no{false};
  const auto questions = DemoQuestions();
  std::vector<ScheduledRequest> requests(4);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].tokens = questions[i].prompt;
    requests[i].branch.sequence = static_cast<int32_t>(i);
  }
  const auto chunk = [&](size_t i, int32_t begin) {
    const auto size = static_cast<int32_t>(requests[i].tokens.size());
    return Chunk{&requests[i], begin, size - begin, 1, true};
  };
  const auto row = [&](int32_t index) {
    const auto logits = (*runner)->Logits(index);
    return std::vector<float>(logits.begin(), logits.end());
  };
  Step alone;
  alone.chunks = {chunk(0, 0)};
  ASSERT_TRUE((*runner)->Run(alone, no).ok());
  const std::vector<float> prompt = row(0);
  requests[0].tokens.push_back(questions[0].answer[0]);
  const auto size = static_cast<int32_t>(questions[0].prompt.size());
  alone.chunks = {chunk(0, size)};
  ASSERT_TRUE((*runner)->Run(alone, no).ok());
  const std::vector<float> decoded = row(0);

  (*runner)->Remove(0, 0, -1);
  requests[0].tokens.pop_back();
  Step together;
  for (const size_t i : {3, 0, 1}) together.chunks.push_back(chunk(i, 0));
  ASSERT_TRUE((*runner)->Run(together, no).ok());
  EXPECT_EQ(row(1), prompt);
  requests[0].tokens.push_back(questions[0].answer[0]);
  together.chunks = {chunk(2, 0), chunk(0, size)};
  ASSERT_TRUE((*runner)->Run(together, no).ok());
  EXPECT_EQ(row(1), decoded);
}

}  // namespace
}  // namespace portico::llama
