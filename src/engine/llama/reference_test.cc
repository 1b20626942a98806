// Imported folders against what transformers computes in float32 (data/models of the reference
// data).
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "engine/llama/import/safetensors.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/logits_for_test.h"
#include "engine/llama/model.h"

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

class ReferenceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (SharedFolder().empty()) GTEST_SKIP() << "the reference data is not here";
    folder_ = SharedFolder() + "/data/models/" + GetParam();
  }

  // Compares every reference prompt that fits the context.
  void Compare(const std::string& dtype, float tolerance) {
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
      auto actual = PromptLogits(**model, ids);
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

TEST_P(ReferenceTest, Float32LogitsEqualThoseOfTransformers) { Compare("float32", kTolerance); }

TEST_P(ReferenceTest, Bfloat16LogitsAreNear) { Compare("bfloat16", 0.3f); }

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
