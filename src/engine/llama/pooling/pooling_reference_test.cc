// Imported folders that give vectors and class logits against what transformers computes in float32 (data/models of
// the reference data).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "engine/llama/import/files/safetensors.h"
#include "engine/llama/model/logits_for_test.h"
#include "engine/llama/pooling/pooling_for_test.h"
#include "engine/llama/reference_engine_for_test.h"

namespace portico::llama {
namespace {

constexpr float kVectorTolerance = 1e-3f;

struct Folder {
  const char* name;
  std::optional<Pooling> pooling;  // of vectors
  size_t labels = 0;
};

class PoolingReferenceTest : public testing::TestWithParam<Folder> {
 protected:
  void SetUp() override {
    if (SharedFolder().empty()) GTEST_SKIP() << "the reference data is not here";
    const std::string folder = SharedFolder() + "/data/models/" + GetParam().name;
    ModelOptions options;
    options.path = folder;
    options.dtype = "float32";
    options.pooling = GetParam().pooling;
    auto engine = LoadPoolingEngine(options);
    ASSERT_TRUE(engine.ok()) << MessageOf(engine.status());
    engine_ = *std::move(engine);
    auto expected = WeightFiles::OpenFile(folder + "/expected.safetensors");
    ASSERT_TRUE(expected.ok()) << MessageOf(expected.status());
    const std::string what =
        GetParam().pooling ? "." + std::string(PoolingName(*GetParam().pooling)) : ".scores";
    for (int k = 0; k < 5; ++k) {
      const std::string name = "case" + std::to_string(k);
      texts_.push_back(ReadTensorOf<TokenId>(*expected, name + ".input_ids"));
      const auto types = ReadTensorOf<int32_t>(*expected, name + ".token_type_ids");
      types_.emplace_back(types.begin(), types.end());
      expected_.push_back(ReadTensorOf<float>(*expected, name + what));
      ASSERT_FALSE(expected_.back().empty());
    }
  }

  PoolingRequest Text(size_t k) const { return PoolingText(texts_[k], types_[k]); }

  std::unique_ptr<LlamaEngine> engine_;
  std::vector<std::vector<TokenId>> texts_;
  std::vector<std::vector<uint8_t>> types_;
  std::vector<std::vector<float>> expected_;
};

TEST_P(PoolingReferenceTest, EachTextAloneEqualsTransformers) {
  float most = 0;
  for (size_t k = 0; k < texts_.size(); ++k) {
    std::vector<PoolingRequest> one;
    one.push_back(Text(k));
    most = std::max(most, MaxDifference(PoolAll(engine_.get(), std::move(one))[0], expected_[k]));
  }
  EXPECT_LE(most, kVectorTolerance);
  RecordProperty("max_difference", std::to_string(most));
}

TEST_P(PoolingReferenceTest, MixedBatchesEqualTransformers) {
  std::vector<PoolingRequest> many;
  for (size_t i = 0; i < 40; ++i) many.push_back(Text(i % texts_.size()));
  const auto values = PoolAll(engine_.get(), std::move(many));
  ASSERT_EQ(values.size(), 40u);
  float most = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, MaxDifference(values[i], expected_[i % texts_.size()]));
  }
  EXPECT_LE(most, kVectorTolerance);
}

TEST_P(PoolingReferenceTest, SaysWhatItGives) {
  const EngineInfo& info = engine_->info();
  EXPECT_EQ(info.task, GetParam().pooling ? ModelTask::kEmbed : ModelTask::kClassify);
  EXPECT_EQ(info.labels.size(), GetParam().labels);
  if (!GetParam().pooling) return;
  EXPECT_EQ(info.pooling, *GetParam().pooling);
  EXPECT_EQ(info.embedding_size, 64);
}

INSTANTIATE_TEST_SUITE_P(
    Folders, PoolingReferenceTest,
    testing::Values(
        Folder{"bert-embed", Pooling::kMean}, Folder{"bert-embed", Pooling::kCls},
        Folder{"bert-embed", Pooling::kLast}, Folder{"xlm-roberta-embed", Pooling::kMean},
        Folder{"xlm-roberta-embed", Pooling::kCls}, Folder{"qwen3-embed", Pooling::kMean},
        Folder{"qwen3-embed", Pooling::kCls}, Folder{"qwen3-embed", Pooling::kLast},
        Folder{"bert-cross-encoder", std::nullopt, 1}, Folder{"roberta-classify", std::nullopt, 4},
        Folder{"qwen2-classify", std::nullopt, 3}, Folder{"llama-reward", std::nullopt, 1}),
    [](const auto& test) {
      std::string name = test.param.name;
      if (test.param.pooling) name += "_" + std::string(PoolingName(*test.param.pooling));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace portico::llama
