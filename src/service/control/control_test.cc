#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/mock/mock_engine.h"
#include "service/control/each_engine.h"
#include "service/control/pause.h"
#include "service/control/weight_update.h"

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
  // The mock engine answers at once.
  Status Control(const EngineControl& control) {
    Status answer = Error(StatusCode::kUnknown, "no answer");
    ControlEngines(models_, "", control, TimePoint::max(),
                   [&](Status status) { answer = std::move(status); });
    return answer;
  }
  Status Update(const std::string& path) {
    Status answer = Error(StatusCode::kUnknown, "no answer");
    WeightUpdate update;
    update.control.path = path;
    UpdateWeights(models_, "", std::move(update), TimePoint::max(),
                  [&](Status status) { answer = std::move(status); });
    return answer;
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
  EXPECT_EQ(Control(PauseControl{PauseMode::kInPlace}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Control(ContinueControl{}).code(), StatusCode::kUnavailable);
  models_.Publish();
  EXPECT_FALSE(AnyPaused(models_));
  EXPECT_TRUE(Control(PauseControl{PauseMode::kRetract}).ok());
  EXPECT_TRUE(AnyPaused(models_));
  EXPECT_TRUE(Control(ContinueControl{}).ok());
  EXPECT_FALSE(AnyPaused(models_));
}

TEST_F(ControlTest, AnEngineWithoutWeightsSaysSoAndThePathIsChecked) {
  EXPECT_EQ(Update("/x").code(), StatusCode::kUnavailable);
  models_.Publish();
  EXPECT_EQ(FieldOf(Update("")), "model_path");
  EXPECT_EQ(Update("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Update("/x").code(), StatusCode::kFailedPrecondition);
}

TEST_F(ControlTest, ThereIsNoProfilerToStart) {
  EXPECT_EQ(Control(StartProfileControl{}).code(), StatusCode::kUnavailable);
  models_.Publish();
  EXPECT_EQ(Control(StartProfileControl{}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Control(StopProfileControl{}).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace portico
