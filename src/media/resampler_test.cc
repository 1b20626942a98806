#include "media/resampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "media/voice_activity.h"

namespace portico::media {
namespace {

Samples Tone(int32_t rate, double hertz, double seconds) {
  Samples samples(static_cast<size_t>(rate * seconds));
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<int16_t>(std::lround(
        10000 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate)));
  }
  return samples;
}

double Power(SampleSpan samples) {
  double sum = 0;
  for (const int16_t sample : samples) sum += static_cast<double>(sample) * sample;
  return sum / static_cast<double>(samples.size());
}

TEST(Resampler, KeepsATone) {
  using Rates = std::pair<int32_t, int32_t>;
  for (const Rates& rates : {Rates{16000, 24000},
                             {24000, 16000},
                             {44100, 16000},
                             {8000, 16000},
                             {16000, 22050},
                             {48000, 8000},
                             {16000, 15999}}) {
    const auto [from, to] = rates;
    Sound in{from, Tone(from, 440, 1)};
    const Sound out = Resample(std::move(in), to);
    const Samples wanted = Tone(to, 440, 1);
    ASSERT_NEAR(static_cast<double>(out.samples.size()), to, 1) << from << " → " << to;
    double error = 0;
    for (size_t i = 500; i + 500 < wanted.size(); ++i) {
      const double difference = out.samples[i] - wanted[i];
      error += difference * difference;
    }
    error /= static_cast<double>(wanted.size() - 1000);
    EXPECT_LT(10 * std::log10(error / Power(wanted)), -60) << from << " → " << to;
  }
}

TEST(Resampler, DropsWhatTheLowerRateCannotHave) {
  Sound in{48000, Tone(48000, 10000, 1)};
  const Sound out = Resample(std::move(in), 16000);
  EXPECT_LT(Power(out.samples), Power(Tone(16000, 440, 1)) * 1e-5);
}

TEST(Resampler, GivesTheSameInPieces) {
  const Samples in = Tone(16000, 300, 0.5);
  const Sound whole = Resample(Sound{16000, in}, 24000);
  Resampler resampler(16000, 24000);
  Samples pieces;
  for (size_t at = 0; at < in.size(); at += 77) {
    resampler.Process(SampleSpan(in).subspan(at, std::min<size_t>(77, in.size() - at)), &pieces);
  }
  resampler.Finish(&pieces);
  EXPECT_EQ(pieces, whole.samples);
}

TEST(VoiceActivity, FindsSpeechBetweenSilences) {
  Samples samples(16000, 0);
  const Samples tone = Tone(16000, 200, 1);
  samples.insert(samples.end(), tone.begin(), tone.end());
  samples.insert(samples.end(), 16000, 0);
  VoiceActivity activity({});
  std::vector<VoiceEvent> events;
  for (size_t at = 0; at < samples.size(); at += 320) {
    activity.Process(SampleSpan(samples).subspan(at, 320), &events);
  }
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(events[0].start);
  EXPECT_NEAR(static_cast<double>(events[0].sample), 16000, 480);
  EXPECT_FALSE(events[1].start);
  EXPECT_NEAR(static_cast<double>(events[1].sample), 32000, 480);
}

TEST(VoiceActivity, HearsNobodyInSilence) {
  EXPECT_TRUE(SpeechStretches(Sound{16000, Samples(160000, 3)}, 20).empty());
}

TEST(VoiceActivity, CutsALongSpeechWithinItsBound) {
  Sound sound{16000, Tone(16000, 200, 50)};
  const auto stretches = SpeechStretches(sound, 20);
  ASSERT_GE(stretches.size(), 3U);
  for (const Stretch& stretch : stretches) EXPECT_LE(stretch.end - stretch.begin, 320000);
}

}  // namespace
}  // namespace portico::media
