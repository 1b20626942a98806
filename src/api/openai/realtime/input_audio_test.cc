#include "api/openai/realtime/input_audio.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace portico::api::openai {
namespace {

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
  EXPECT_TRUE(turns[0].started);
  EXPECT_FALSE(turns[1].started);
  EXPECT_NEAR(turns[1].ms - turns[0].ms, InputAudio::kMaxSeconds * 1000, 100);
  EXPECT_EQ(static_cast<int64_t>(turns[1].sound.size()), (turns[1].ms - turns[0].ms) * 8);
  EXPECT_TRUE(turns[2].started);
  EXPECT_EQ(turns[2].ms, turns[1].ms);
  ASSERT_TRUE(input.Append(std::string(16000, '\xFF'), config, &turns));
  ASSERT_EQ(turns.size(), 4U);
  EXPECT_FALSE(turns[3].started);
  EXPECT_GT(turns[3].sound.size(), 9U * 8000);
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
