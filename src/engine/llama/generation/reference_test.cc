// Imported folders against what transformers computes in float32 (data/models of the reference
// data).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "engine/llama/generation/model_runner.h"
#include "engine/llama/import/files/safetensors.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/model/logits_for_test.h"
#include "engine/llama/model/model.h"

namespace portico::llama {
namespace {

constexpr float kTolerance = 1e-4f;  // the bar is 1e-3

template <typename T>
std::vector<T> ReadTensor(const WeightFiles& file, const std::string& name) {
  const WeightTensor* tensor = file.Find(name);
  if (tensor == nullptr) return {};
  std::vector<T> values(tensor->bytes / sizeof(T));
  EXPECT_TRUE(file.FileOf(*tensor).ReadAt(tensor->offset, values.data(), tensor->bytes).ok());
  return values;
}

// As PromptLogits(), of what the engine computes with: Portico's attention, the prompt in chunks.
std::vector<std::vector<float>> RunnerLogits(const LlamaModel& model, std::vector<TokenId> tokens) {
  const auto size = static_cast<int32_t>(tokens.size());
  RunnerOptions options;
  options.cells = size;
  options.max_tokens_a_step = options.max_rows_a_step = 200;
  options.threads = 2;
  auto runner = ModelRunner::Create(model, options);
  EXPECT_TRUE(runner.ok()) << MessageOf(runner.status());
  if (!runner.ok()) return {};
  ScheduledRequest request;
  request.tokens = std::move(tokens);
  request.branch.sequence = 0;
  std::vector<std::vector<float>> rows;
  for (int32_t begin = 0; begin < size; begin += options.max_tokens_a_step) {
    const int32_t count = std::min(options.max_tokens_a_step, size - begin);
    Step step;
    step.chunks.push_back({&request, begin, count, count, begin + count == size});
    EXPECT_TRUE((*runner)->Run(step, std::atomic<bool>(false)).ok());
    EXPECT_EQ((*runner)->own_layers(), model.info().layers);
    for (int32_t i = 0; i < count; ++i) {
      const auto row = (*runner)->Logits(i);
      rows.emplace_back(row.begin(), row.end());
    }
  }
  return rows;
}

class ReferenceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (SharedFolder().empty()) GTEST_SKIP() << "the reference data is not here";
    folder_ = SharedFolder() + "/data/models/" + GetParam();
  }

  // Compares every reference prompt that fits the context.
  template <typename LogitsOf>
  void Compare(const std::string& dtype, float tolerance, LogitsOf logits_of) {
    ModelOptions options;
    options.path = folder_;
    options.dtype = dtype;
    auto model = LlamaModel::Load(options, nullptr);
    ASSERT_TRUE(model.ok()) << MessageOf(model.status());
    auto expected = WeightFiles::OpenFile(folder_ + "/expected.safetensors");
    ASSERT_TRUE(expected.ok()) << MessageOf(expected.status());
    float most = 0;
    for (int k = 0; k < 5; ++k) {
      std::string name = "case" + std::to_string(k);
      auto ids = ReadTensor<int32_t>(*expected, name + ".input_ids");
      auto logits = ReadTensor<float>(*expected, name + ".logits");
      ASSERT_FALSE(ids.empty());
      size_t vocab = static_cast<size_t>((*model)->info().vocab_size);
      size_t rows = logits.size() / vocab;
      size_t first = ids.size() - rows;  // the longest prompt has its last position only
      size_t within = std::min(ids.size(), static_cast<size_t>((*model)->info().context_length));
      ids.resize(within);
      auto actual = logits_of(**model, ids);
      ASSERT_EQ(actual.size(), within);
      for (size_t t = first; t < within; ++t) {
        auto row = logits.begin() + static_cast<ptrdiff_t>((t - first) * vocab);
        most = std::max(
            most,
            MaxDifference(actual[t], std::vector<float>(row, row + static_cast<ptrdiff_t>(vocab))));
      }
    }
    EXPECT_LE(most, tolerance) << GetParam();
    RecordProperty("max_difference", std::to_string(most));
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  std::string folder_;
};

TEST_P(ReferenceTest, Float32LogitsEqualThoseOfTransformers) {
  Compare("float32", kTolerance, PromptLogits);
}

TEST_P(ReferenceTest, Float32LogitsOfTheEnginesAttentionEqualThoseOfTransformers) {
  Compare("float32", kTolerance, RunnerLogits);
}

TEST_P(ReferenceTest, Bfloat16LogitsAreNear) { Compare("bfloat16", 0.3f, PromptLogits); }

TEST_P(ReferenceTest, Bfloat16LogitsOfTheEnginesAttentionAreNear) {
  Compare("bfloat16", 0.3f, RunnerLogits);
}

INSTANTIATE_TEST_SUITE_P(Folders, ReferenceTest,
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
