#include "service/model_registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/mock/mock_engine.h"
#include "service/model_task.h"

namespace portico {
namespace {

std::unique_ptr<ServingModel> Named(const std::string& id, ModelTask task) {
  auto model = std::make_unique<ServingModel>();
  model->id = id;
  MockEngineOptions options;
  options.vocab_size = 10;
  options.context_length = 100;
  options.task = task;
  model->engine = NewMockEngine(options);
  return model;
}

std::string IdOf(const StatusOr<const ServingModel*>& found) {
  return found.ok() ? (*found)->id : ReasonOf(found.status());
}

TEST(ModelRegistryTest, DefaultIsTheServersModelUnlessOneIsCalledSo) {
  ModelRegistry models;
  models.Add(Named("first", ModelTask::kGenerate));
  EXPECT_EQ(models.Find("default").status().code(), StatusCode::kUnavailable);
  models.Publish();
  EXPECT_EQ(IdOf(models.Find("default")), "first");
  EXPECT_EQ(IdOf(models.FindForRequest("default")), "first");
  EXPECT_EQ(IdOf(models.Find("Default")), "model_not_found");
  EXPECT_TRUE(models.MeansDefault("") && models.MeansDefault("default"));
  EXPECT_FALSE(models.MeansDefault("first") || models.MeansDefault("other"));

  ModelRegistry both;
  both.Add(Named("first", ModelTask::kGenerate));
  both.Add(Named("default", ModelTask::kGenerate));
  both.Publish();
  EXPECT_EQ(IdOf(both.Find("default")), "default");
  EXPECT_FALSE(both.MeansDefault("default"));
}

TEST(ModelRegistryTest, AnyNameIsTakenOfRequestsOnlyWhereItIsAllowed) {
  ModelRegistry models;
  models.Add(Named("first", ModelTask::kGenerate));
  models.Add(Named("second", ModelTask::kGenerate));
  models.AcceptAnyName();
  models.Publish();
  EXPECT_EQ(IdOf(models.FindForRequest("gpt-4o")), "first");
  EXPECT_EQ(IdOf(models.FindForRequest("second")), "second");
  EXPECT_EQ(IdOf(models.Find("gpt-4o")), "model_not_found");
}

TEST(ModelRegistryTest, ARequestThatLeavesItToTheServerGetsTheFirstThatCan) {
  ModelRegistry models;
  models.Add(Named("chat", ModelTask::kGenerate));
  models.Add(Named("vectors", ModelTask::kEmbed));
  models.AcceptAnyName();
  models.Publish();
  for (const char* name : {"", "default", "text-embedding-3-small"}) {
    EXPECT_EQ(IdOf(FindAble(models, name, CheckEmbeds)), "vectors") << name;
    EXPECT_EQ(IdOf(FindAble(models, name, CheckGenerates)), "chat") << name;
  }
  EXPECT_EQ(IdOf(FindAble(models, "chat", CheckEmbeds)), "model_does_not_embed");
}

}  // namespace
}  // namespace portico
