// Vectors of texts by a decoder, of each text alone and of all together, in the same bits.
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "engine/llama/import/test_model_for_test.h"
#include "engine/llama/pooling/bert_for_test.h"
#include "engine/llama/pooling/pooling_for_test.h"

namespace portico::llama {
namespace {

struct PooledWeights {
  const char* name;
  const char* stored;
  const char* quantization = "";
  bool deterministic = false;
  bool gguf = false;  // libllama looks the tokens up
};

class PoolingInvarianceTest : public testing::TestWithParam<PooledWeights> {
 protected:
  void SetUp() override {
    RandomModel(SmallConfig("qwen3", {{"hidden_size", 256},
                                      {"intermediate_size", 256},
                                      {"head_dim", 64},
                                      {"max_position_embeddings", 600}}))
        .Write(folder_.path(), GetParam().stored);
  }

  void Start() {
    ModelOptions model;
    model.path = folder_.path();
    model.quantization = GetParam().quantization;
    model.deterministic = GetParam().deterministic;
    if (GetParam().gguf) {
      const auto imported = LlamaModel::Load(model, nullptr);
      ASSERT_TRUE(imported.ok()) << MessageOf(imported.status());
      model.path = (*imported)->info().file;
      model.quantization = "";
    }
    model.is_embedding = true;
    model.pooling = Pooling::kMean;  // of all tokens
    auto engine = LoadPoolingEngine(model);
    ASSERT_TRUE(engine.ok()) << MessageOf(engine.status());
    engine_ = *std::move(engine);
  }

  // Some in one piece and some in several, of which the last may be a single token.
  static std::vector<PoolingRequest> Texts() {
    std::vector<PoolingRequest> texts;
    for (const uint32_t size : {1, 270, 2, 7, 257, 40, 3, 1, 90}) {
      std::mt19937 random(size + static_cast<uint32_t>(texts.size()));
      std::vector<TokenId> tokens(size);
      for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 101);
      texts.push_back(PoolingText(std::move(tokens)));
    }
    return texts;
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  TempFolder folder_;
  std::unique_ptr<LlamaEngine> engine_;
};

// ggml multiplied the matrices in another order for a text of one token alone, and libllama's attention depended on where
// in the cache a batch's other texts were.
TEST_P(PoolingInvarianceTest, ADecodersTextHasTheSameBitsAloneAndAmongOthers) {
  ASSERT_NO_FATAL_FAILURE(Start());
  std::vector<std::vector<float>> alone;
  for (PoolingRequest& text : Texts()) {
    std::vector<PoolingRequest> one;
    one.push_back(std::move(text));
    alone.push_back(PoolAll(engine_.get(), std::move(one))[0]);
  }
  const auto together = PoolAll(engine_.get(), Texts());
  ASSERT_EQ(together.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(together[i], alone[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Weights, PoolingInvarianceTest,
    testing::Values(PooledWeights{"float32", "F32"}, PooledWeights{"float16", "F16"},
                    PooledWeights{"bfloat16", "BF16"}, PooledWeights{"q8_0", "BF16", "q8_0"},
                    PooledWeights{"bfloat16_gguf", "BF16", "", false, true},
                    PooledWeights{"q8_0_gguf", "BF16", "q8_0", false, true},
                    PooledWeights{"q4_k_m_deterministic", "BF16", "q4_k_m", true},
                    PooledWeights{"bfloat16_deterministic", "BF16", "", true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(PoolingDeterminism, IsRefusedOfAnEncoder) {
  TempFolder cache("XDG_CACHE_HOME"), folder;
  RandomBert(SmallBertConfig()).Write(folder.path());
  ModelOptions options;
  options.path = folder.path();
  options.deterministic = true;
  const auto engine = LoadPoolingEngine(options);
  EXPECT_EQ(engine.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(FieldOf(engine.status()), "enable_deterministic_inference");
}

}  // namespace
}  // namespace portico::llama
