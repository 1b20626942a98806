#include "engine/llama/model_runner.h"

#include <gtest/gtest.h>

#include <atomic>

#include "engine/llama/demo_for_test.h"
#include "engine/llama/import/temp_folder_for_test.h"

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

}  // namespace
}  // namespace portico::llama
