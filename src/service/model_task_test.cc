#include "service/model_task.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/mock/mock_engine.h"
#include "service/generation/score.h"
#include "service/plan/native_plan.h"
#include "service/plan/plan.h"

namespace portico {
namespace {

std::unique_ptr<ServingModel> ModelOf(ModelTask task, int32_t labels = 1) {
  auto model = std::make_unique<ServingModel>();
  model->id = "tiny";
  MockEngineOptions options;
  options.vocab_size = 10;
  options.context_length = 100;
  options.task = task;
  options.labels = labels;
  model->engine = NewMockEngine(options);
  return model;
}

void ExpectRefused(const Status& status, std::string_view why) {
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(FieldOf(status), "model");
  EXPECT_NE(MessageOf(status).find("tiny"), std::string_view::npos);
  EXPECT_NE(MessageOf(status).find(why), std::string_view::npos) << MessageOf(status);
}

TEST(ModelTaskTest, EveryModelDoesWhatItIsMadeForAndSaysSoElse) {
  const auto chat = ModelOf(ModelTask::kGenerate);
  EXPECT_TRUE(CheckGenerates(*chat).ok());
  ExpectRefused(CheckEmbeds(*chat), "generates text");
  ExpectRefused(CheckClassifies(*chat), "generates text");
  ExpectRefused(CheckRanks(*chat), "generates text");
  const auto embedder = ModelOf(ModelTask::kEmbed);
  EXPECT_TRUE(CheckEmbeds(*embedder).ok());
  ExpectRefused(CheckGenerates(*embedder), "/v1/embeddings");
  ExpectRefused(CheckClassifies(*embedder), "does not classify");
  ExpectRefused(CheckRanks(*embedder), "does not rank");
  const auto ranker = ModelOf(ModelTask::kClassify);
  EXPECT_TRUE(CheckClassifies(*ranker).ok());
  EXPECT_TRUE(CheckRanks(*ranker).ok());
  ExpectRefused(CheckGenerates(*ranker), "/v1/classify");
  ExpectRefused(CheckEmbeds(*ranker), "/v1/classify");
}

TEST(ModelTaskTest, RankingNeedsOneLabelOrAYesAndANo) {
  ExpectRefused(CheckRanks(*ModelOf(ModelTask::kClassify, 3)), "3 labels");
  ExpectRefused(CheckRanks(*ModelOf(ModelTask::kClassify, 2)), "yes and no");
}

TEST(ModelTaskTest, TextIsNotAskedOfAModelThatGivesNone) {
  const auto model = ModelOf(ModelTask::kEmbed);
  EXPECT_EQ(PlanChat(*model, {}).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(PlanCompletion(*model, {}).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(PlanNative(*model, {}, nullptr).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(PlanScore(*model, {}).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace portico
