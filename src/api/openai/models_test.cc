#include "api/openai/models.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/mock/mock_engine.h"

namespace portico::api::openai {
namespace {

std::unique_ptr<ServingModel> ModelOf(ModelTask task) {
  auto model = std::make_unique<ServingModel>();
  model->id = "demo";
  model->created = 7;
  MockEngineOptions options;
  options.context_length = 2048;
  options.task = task;
  options.labels = 2;
  model->engine = NewMockEngine(options);
  return model;
}

TEST(ModelsTest, CardsHaveOpenAisShape) {
  const auto model = ModelOf(ModelTask::kGenerate);
  const std::string card =
      R"({"id":"demo","object":"model","created":7,"owned_by":"portico","root":"demo",)"
      R"("parent":null,"max_model_len":2048,"task":"generate","is_generation":true,)"
      R"("is_embedding":false})";
  EXPECT_EQ(ModelBody(*model), card);
  EXPECT_EQ(ModelListBody({model.get()}), R"({"object":"list","data":[)" + card + "]}");
  EXPECT_EQ(ModelListBody({}), R"({"object":"list","data":[]})");
  EXPECT_EQ(ModelListBody({}, "voice", 8),
            R"({"object":"list","data":[{"id":"voice","object":"model","created":8,)"
            R"("owned_by":"portico","root":"voice"}]})");
}

TEST(ModelsTest, WhatAModelGivesIsSaid) {
  EXPECT_NE(
      ModelBody(*ModelOf(ModelTask::kEmbed))
          .find(R"("task":"embed","is_generation":false,"is_embedding":true,"pooling":"mean",)"
                R"("embedding_size":64,"normalized":true,"matryoshka_dimensions":[16,32]})"),
      std::string::npos);
  EXPECT_NE(
      ModelBody(*ModelOf(ModelTask::kClassify))
          .find(R"("task":"classify","is_generation":false,"is_embedding":false,)"
                R"("pooling":"mean","num_labels":2,"id2label":{"0":"LABEL_0","1":"LABEL_1"}})"),
      std::string::npos);
}

}  // namespace
}  // namespace portico::api::openai
