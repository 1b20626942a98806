#include "pipeline/coordinator/audio_times.h"

#include <gtest/gtest.h>

namespace portico::pipeline {
namespace {

using namespace std::chrono_literals;

class AudioTimesTest : public ::testing::Test {
 protected:
  const TimePoint asked_{};
  Registry registry_;
  AudioMetrics metrics_{&registry_, "speech"};
  AudioTimes times_{asked_};
};

TEST_F(AudioTimesTest, MeasuresTheFirstSoundTheFactorAndTheSilence) {
  times_.Came(asked_ + 100ms, 0.5);
  times_.Came(asked_ + 200ms, 0.5);   // in time: there is sound up to 1.1 s
  times_.Came(asked_ + 1400ms, 0.5);  // 0.3 s late
  times_.Came(asked_ + 1500ms, 0.5);
  times_.Report(true, &metrics_);
  EXPECT_DOUBLE_EQ(metrics_.first.Take().sum, 0.1);
  EXPECT_DOUBLE_EQ(metrics_.factor.Take().sum, 0.75);
  EXPECT_NEAR(metrics_.underrun.Take().sum, 0.3, 1e-6);
}

TEST_F(AudioTimesTest, BlamesNobodyForAClientThatDoesNotRead) {
  times_.Came(asked_ + 100ms, 1);
  times_.Paused(60s);
  times_.Came(asked_ + 60s + 600ms, 1);
  times_.Report(true, &metrics_);
  EXPECT_EQ(metrics_.underrun.Take().sum, 0);
  EXPECT_NEAR(metrics_.factor.Take().sum, 0.3, 1e-6);
}

TEST_F(AudioTimesTest, CountsOnlyTheFirstSoundOfAnAnswerThatBreaksOffOrHasNoLength) {
  times_.Came(asked_ + 100ms, 0);
  times_.Came(asked_ + 900ms, -1);
  times_.Report(true, &metrics_);
  AudioTimes broken{asked_};
  broken.Came(asked_ + 100ms, 1);
  broken.Report(false, &metrics_);
  AudioTimes silent{asked_};
  silent.Report(true, &metrics_);
  EXPECT_EQ(metrics_.first.Take().count, 2U);
  EXPECT_EQ(metrics_.factor.Take().count, 0U);
  EXPECT_EQ(metrics_.underrun.Take().count, 0U);
}

}  // namespace
}  // namespace portico::pipeline
