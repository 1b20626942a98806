#include "engine/llama/pooling/pooling_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "engine/llama/import/test_model_for_test.h"
#include "engine/llama/model/logits_for_test.h"
#include "engine/llama/pooling/bert_for_test.h"
#include "engine/llama/pooling/pooling_for_test.h"

namespace portico::llama {
namespace {

// libllama wants room for a row of each text of a batch and gave up, with the whole process, on encoders that take
// fewer tokens than there may be texts.
TEST(PoolingRunnerTest, AModelsContextMayBeShorterThanABatchHasTexts) {
  TempFolder cache("XDG_CACHE_HOME"), folder;
  const TestModel bert = RandomBert(SmallBertConfig({{"max_position_embeddings", 24}}));
  bert.Write(folder.path(), "F32");
  ModelOptions options;
  options.path = folder.path();
  options.dtype = "float32";
  options.pooling = Pooling::kCls;
  const auto engine = LoadPoolingEngine(options);
  ASSERT_TRUE(engine.ok()) << MessageOf(engine.status());
  EXPECT_EQ((*engine)->info().context_length, 24);

  const PlainBert plain(bert);
  std::vector<std::vector<TokenId>> sizes;
  std::vector<std::vector<float>> expected;
  for (int32_t i = 0; i < 24; ++i) {
    sizes.emplace_back(static_cast<size_t>(i + 1), i);
    const PlainBert::Row state = plain.States(sizes.back())[0];
    expected.emplace_back(state.begin(), state.end());
  }
  std::vector<PoolingRequest> texts;
  for (size_t i = 0; i < 300; ++i) texts.push_back(PoolingText(sizes[i % sizes.size()]));
  const auto values = PoolAll(engine->get(), std::move(texts));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_LE(MaxDifference(values[i], expected[i % sizes.size()]), 1e-4f) << i;
  }
}

TEST(PoolingRunnerTest, ADecoderHasPorticosAttention) {
  TempFolder cache("XDG_CACHE_HOME"), folder;
  RandomModel(SmallConfig("qwen3", {{"architectures", JsonArray{"Qwen3Model"}}}))
      .Write(folder.path());
  ModelOptions options;
  options.path = folder.path();
  const auto model = LlamaModel::Load(options, nullptr);
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  PoolingRunnerOptions run;
  run.cells = 64;
  run.max_tokens = 32;
  run.max_texts = 4;
  const auto runner = PoolingRunner::Create(**model, run);
  ASSERT_TRUE(runner.ok()) << MessageOf(runner.status());
  ScheduledText text, other;
  text.request = PoolingText({5});
  other.request = PoolingText({7, 8, 9});
  const std::atomic<bool> no{false};
  ASSERT_TRUE((*runner)->Run({{&text, 1}}, 1, no).ok());
  EXPECT_EQ((*runner)->own_layers(), 2);
  const auto state = (*runner)->State(0);
  const std::vector<float> alone(state.begin(), state.end());
  // Nothing is left of the token that filled the batch up.
  ASSERT_TRUE((*runner)->Run({{&other, 3}, {&text, 1}}, 1, no).ok());
  const auto again = (*runner)->State(3);
  EXPECT_EQ(std::vector<float>(again.begin(), again.end()), alone);
}

}  // namespace
}  // namespace portico::llama
