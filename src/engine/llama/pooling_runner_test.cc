#include "engine/llama/pooling_runner.h"

#include <gtest/gtest.h>

#include "engine/llama/bert_for_test.h"
#include "engine/llama/logits_for_test.h"
#include "engine/llama/pooling_for_test.h"

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

}  // namespace
}  // namespace portico::llama
