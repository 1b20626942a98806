#include <gtest/gtest.h>

#include <memory>

#include "engine/mock/mock_engine.h"
#include "service/pause.h"
#include "service/profiling.h"
#include "service/weight_update.h"

namespace portico {
namespace {

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    auto model = std::make_unique<ServingModel>();
    model->id = "tiny";
    MockEngineOptions options;
    options.vocab_size = 10;
    options.context_length = 100;
    model->engine = NewMockEngine(options);
    models_.Add(std::move(model));
  }
  ModelRegistry models_;
};

TEST_F(ControlTest, ThreeWordsArePauseModesAndNothingElse) {
  EXPECT_EQ(*ParsePauseMode("abort"), PauseMode::kAbort);
  EXPECT_EQ(*ParsePauseMode("retract"), PauseMode::kRetract);
  EXPECT_EQ(*ParsePauseMode("in_place"), PauseMode::kInPlace);
  for (const char* word : {"", "Abort", "in place", "stop"}) {
    const Status refused = ParsePauseMode(word).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << word;
    EXPECT_EQ(FieldOf(refused), "mode") << word;
  }
}

TEST_F(ControlTest, EnginesPauseAndContinueOnceTheyAreLoaded) {
  EXPECT_EQ(PauseEngines(models_, "", PauseMode::kInPlace).code(), StatusCode::kUnavailable);
  EXPECT_EQ(ContinueEngines(models_, "").code(), StatusCode::kUnavailable);
  models_.Publish();
  EXPECT_FALSE(AnyPaused(models_));
  EXPECT_TRUE(PauseEngines(models_, "", PauseMode::kRetract).ok());
  EXPECT_TRUE(AnyPaused(models_));
  EXPECT_TRUE(ContinueEngines(models_, "").ok());
  EXPECT_FALSE(AnyPaused(models_));
}

TEST_F(ControlTest, AnEngineWithoutWeightsSaysSoAndThePathIsChecked) {
  EXPECT_EQ(UpdateWeights(models_, "", "/x").code(), StatusCode::kUnavailable);
  models_.Publish();
  EXPECT_EQ(FieldOf(UpdateWeights(models_, "", "")), "model_path");
  EXPECT_EQ(UpdateWeights(models_, "", "").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(UpdateWeights(models_, "", "/x").code(), StatusCode::kFailedPrecondition);
}

TEST_F(ControlTest, ThereIsNoProfilerToStart) {
  EXPECT_EQ(StartProfile(models_).code(), StatusCode::kUnavailable);
  models_.Publish();
  EXPECT_EQ(StartProfile(models_).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(StopProfile(models_).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace portico
