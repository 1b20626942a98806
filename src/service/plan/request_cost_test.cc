#include "service/plan/request_cost.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/mock/mock_engine.h"
#include "service/generation/score.h"
#include "service/plan/native_plan.h"
#include "service/plan/plan.h"
#include "service/pooling/pooling_plan.h"

namespace portico {
namespace {

TEST(RequestCost, NamesTheFieldAndBothNumbers) {
  RequestCost cost(1000);
  EXPECT_TRUE(cost.Add("prompt", 10, 100).ok());
  const Status refused = cost.Add("n", 1, 1);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(refused), "n");
  EXPECT_EQ(MessageOf(refused),
            "n: the request would take at least 1001 bytes, and --max-request-cost-bytes is 1000");
}

TEST(RequestCost, HugeCountsDoNotWrapAround) {
  RequestCost cost(1000);
  EXPECT_FALSE(cost.Add("n", std::numeric_limits<int64_t>::max(), 100).ok());
  EXPECT_FALSE(cost.Add("n", 1, 1).ok());
}

// Requests of a few kilobytes that would take more than the bound of 1 MiB; each is refused before its texts are
// tokenized.
class RequestCostTest : public testing::Test {
 protected:
  RequestCostTest() {
    MockEngineOptions options;
    options.vocab_size = 1000;
    options.context_length = 100000;
    model_.engine = NewMockEngine(options);
    model_.max_request_cost = 1 << 20;
    model_.tokenizer = *Tokenizer::FromJson(
        R"({"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,)"
        R"("decoder":null,"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"u","vocab":{"u":0,"a":1,"b":2,"c":3}}})");
  }

  static CompletionRequest::Prompt Text(size_t bytes) {
    CompletionRequest::Prompt prompt;
    prompt.text = std::string(bytes, 'a');
    return prompt;
  }

  static CompletionRequest Completion(size_t prompts, int32_t max_tokens) {
    CompletionRequest request;
    request.options.max_tokens = max_tokens;
    request.prompts.assign(prompts, Text(1));
    return request;
  }

  ServingModel model_;
};

TEST_F(RequestCostTest, ChoicesTimesLogprobsAreCounted) {
  CompletionRequest request = Completion(1, 100);
  request.options.n = 20;
  request.options.logprobs = true;
  EXPECT_TRUE(PlanCompletion(model_, request).ok());
  request.options.top_logprobs = 20;
  EXPECT_EQ(FieldOf(PlanCompletion(model_, request).status()), "logprobs");
  request.options.n = 1;
  EXPECT_TRUE(PlanCompletion(model_, request).ok());
}

// 128 choices of a prompt of 30,000 tokens were answered with 1.2 GB of its log-probabilities.
TEST_F(RequestCostTest, PromptsThatEveryChoiceRepeatsAreCountedWithEachChoice) {
  CompletionRequest request = Completion(1, 1);
  request.prompts = {Text(50)};
  request.echo = true;
  request.options.logprobs = true;
  request.options.top_logprobs = 20;
  request.options.n = 5;
  EXPECT_TRUE(PlanCompletion(model_, request).ok());
  request.options.n = 20;
  EXPECT_EQ(FieldOf(PlanCompletion(model_, request).status()), "logprobs");

  request = Completion(1, 1);
  request.prompts = {Text(20000)};
  request.options.n = 100;
  EXPECT_TRUE(PlanCompletion(model_, request).ok());
  request.echo = true;
  EXPECT_EQ(FieldOf(PlanCompletion(model_, request).status()), "n");
}

TEST_F(RequestCostTest, TheFieldThatAsksForMostLogprobsIsNamed) {
  NativeGenerateRequest request;
  request.prompts = {Text(50)};
  request.return_logprob.values = {true};
  request.logprob_start_len.values = {0};
  request.sampling.values.emplace_back().options.n = 20;
  const auto rid = +[] { return std::string("r"); };
  EXPECT_TRUE(PlanNative(model_, request, rid).ok());
  request.top_logprobs_num.values = {20};
  EXPECT_EQ(FieldOf(PlanNative(model_, request, rid).status()), "top_logprobs_num");
  request.top_logprobs_num.values = {1};
  request.token_ids_logprob.values = {std::vector<TokenId>(100, 1)};
  EXPECT_EQ(FieldOf(PlanNative(model_, request, rid).status()), "token_ids_logprob");
}

TEST_F(RequestCostTest, ListsOfPromptsAreCounted) {
  EXPECT_TRUE(PlanCompletion(model_, Completion(100, 1)).ok());
  EXPECT_EQ(FieldOf(PlanCompletion(model_, Completion(1000, 1)).status()), "prompt");
}

TEST_F(RequestCostTest, NativeBatchesAreCountedWithTheirChoices) {
  NativeGenerateRequest request;
  request.prompts.assign(20, Text(1));
  request.is_batch = true;
  request.sampling.values.emplace_back().options.n = 2;
  const auto rid = +[] {
    static int count = 0;
    return std::to_string(++count);
  };
  EXPECT_TRUE(PlanNative(model_, request, rid).ok());
  request.sampling.values[0].options.n = 100;
  EXPECT_EQ(FieldOf(PlanNative(model_, request, rid).status()), "n");
}

TEST_F(RequestCostTest, NativePromptsShareOneSetOfParameters) {
  NativeGenerateRequest request;
  request.prompts.assign(3, Text(1));
  request.is_batch = true;
  GenerationOptions& options = request.sampling.values.emplace_back().options;
  options.stop = {"x"};
  options.logit_bias = {{1, 2.0f}};
  int made = 0;
  const auto plan = PlanNative(
      model_, request, +[] {
        static int count = 0;
        return std::to_string(++count);
      });
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  for (const GenerationPlan& prompt : plan->prompts) {
    EXPECT_EQ(prompt.sampling, plan->prompts[0].sampling);
    EXPECT_EQ(prompt.stops, plan->prompts[0].stops);
    EXPECT_NE(prompt.stops, nullptr);
    EXPECT_TRUE(prompt.options.stop.empty());
    EXPECT_TRUE(prompt.options.logit_bias.empty());
    ++made;
  }
  EXPECT_EQ(made, 3);
}

TEST_F(RequestCostTest, AQueryIsCountedWithEachItem) {
  ScoreRequest request;
  request.query = Text(1000);
  request.items.assign(50, Text(1));
  request.label_token_ids = {1};
  EXPECT_TRUE(PlanScore(model_, request).ok());
  request.items.assign(1000, Text(1));
  EXPECT_EQ(FieldOf(PlanScore(model_, request).status()), "items");
}

TEST_F(RequestCostTest, TextsForVectorsAreCounted) {
  MockEngineOptions options;
  options.vocab_size = 1000;
  options.context_length = 100000;
  options.task = ModelTask::kEmbed;
  model_.engine = NewMockEngine(options);
  const PoolingPlanner planner{model_, 8192, nullptr};
  EmbeddingRequest request;
  request.input_field = "input";
  request.inputs.assign(100, Text(1));
  EXPECT_TRUE(planner.PlanInputs(request).ok());
  request.inputs.assign(1000, Text(1));
  EXPECT_EQ(FieldOf(planner.PlanInputs(request).status()), "input");
}

}  // namespace
}  // namespace portico
