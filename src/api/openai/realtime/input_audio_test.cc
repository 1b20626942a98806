#include "api/openai/realtime/input_audio.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace portico::api::openai {
namespace {

using What = InputAudio::Turn::What;

// A tone of the telephone's 8 kHz.
std::string LoudSound(int64_t seconds) {
  std::string sound;
  for (int64_t i = 0; i < seconds * 8000; ++i) sound += i / 10 % 2 == 0 ? '\x10' : '\x90';
  return sound;
}

// Five minutes without a pause filled the buffer before anyone looked for turns, and every later
// append was refused for ever.
TEST(InputAudio, EndsATurnThatIsTooLongAndGoesOnListening) {
  RealtimeConfig config;
  config.input = RealtimeConfig::Coding::kMuLaw;
  InputAudio input;
  input.Configure(config);
  std::vector<InputAudio::Turn> turns;
  ASSERT_TRUE(input.Append(LoudSound(InputAudio::kMaxSeconds + 10), config, &turns));
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns[0].what, What::kStarted);
  EXPECT_EQ(turns[1].what, What::kStopped);
  EXPECT_NEAR(turns[1].ms - turns[0].ms, InputAudio::kMaxSeconds * 1000, 100);
  EXPECT_EQ(static_cast<int64_t>(turns[1].sound.size()), (turns[1].ms - turns[0].ms) * 8);
  EXPECT_EQ(turns[2].what, What::kStarted);
  EXPECT_EQ(turns[2].ms, turns[1].ms);
  ASSERT_TRUE(input.Append(std::string(16000, '\xFF'), config, &turns));
  ASSERT_EQ(turns.size(), 4U);
  EXPECT_EQ(turns[3].what, What::kStopped);
  EXPECT_GT(turns[3].sound.size(), 9U * 8000);
}

std::vector<What> WhatOf(const std::vector<InputAudio::Turn>& turns) {
  std::vector<What> what;
  for (const InputAudio::Turn& turn : turns) what.push_back(turn.what);
  return what;
}

class PausesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.input = RealtimeConfig::Coding::kMuLaw;
    config_.eagerness = RealtimeConfig::Eagerness::kHigh;
    input_.Configure(config_);
  }
  void Hear(const std::string& sound) { ASSERT_TRUE(input_.Append(sound, config_, &turns_)); }
  static std::string Silence(int64_t ms) {
    return std::string(static_cast<size_t>(ms) * 8, '\xFF');
  }

  RealtimeConfig config_;
  InputAudio input_;
  std::vector<InputAudio::Turn> turns_;
};

TEST_F(PausesTest, ATurnGoesOnBehindAPauseAndIsOneSound) {
  Hear(LoudSound(2) + Silence(1500) + LoudSound(1) + Silence(500));
  ASSERT_EQ(WhatOf(turns_),
            (std::vector{What::kStarted, What::kPaused, What::kResumed, What::kPaused}));
  EXPECT_NEAR(static_cast<double>(turns_[1].sound.size()), 2.3 * 8000, 200);
  EXPECT_NEAR(static_cast<double>(turns_[3].sound.size()), 2.5 * 8000, 200);
  EXPECT_TRUE(input_.speaking());
  const auto turn = input_.EndTurn(config_);
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->what, What::kStopped);
  EXPECT_NEAR(static_cast<double>(turn->sound.size()), 4.8 * 8000, 200);
  EXPECT_FALSE(input_.speaking());
  EXPECT_FALSE(input_.EndTurn(config_).has_value());
}

TEST_F(PausesTest, TheLongestPauseEndsATurn) {
  Hear(LoudSound(1) + Silence(1900));
  EXPECT_EQ(WhatOf(turns_), (std::vector{What::kStarted, What::kPaused}));
  Hear(Silence(200));
  EXPECT_EQ(WhatOf(turns_), (std::vector{What::kStarted, What::kPaused, What::kStopped}));
  Hear(LoudSound(1));
  EXPECT_EQ(turns_.back().what, What::kStarted);
}

TEST(InputAudio, IsFullOnlyWithoutVoiceActivity) {
  RealtimeConfig config;
  config.input = RealtimeConfig::Coding::kMuLaw;
  config.vad = false;
  InputAudio input;
  input.Configure(config);
  std::vector<InputAudio::Turn> turns;
  ASSERT_TRUE(input.Append(LoudSound(InputAudio::kMaxSeconds), config, &turns));
  EXPECT_FALSE(input.Append(LoudSound(1), config, &turns));
  EXPECT_EQ(input.Take().size(), static_cast<size_t>(InputAudio::kMaxSeconds) * 8000);
  EXPECT_TRUE(input.Append(LoudSound(1), config, &turns));
}

}  // namespace
}  // namespace portico::api::openai
