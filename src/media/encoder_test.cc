#include "media/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "media/decoder.h"

namespace portico::media {
namespace {

constexpr int16_t kLoud = 8000;

size_t CountOf(double seconds, int32_t rate) {
  return static_cast<size_t>(std::lround(seconds * rate));
}

// A hiss that nobody hears, a tone, and the hiss again.
Samples ToneWithin(int32_t rate, double before, double tone, double after) {
  Samples samples;
  uint32_t random = 1;
  const auto hiss = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      random = random * 1664525 + 1013904223;
      samples.push_back(static_cast<int16_t>(static_cast<int>(random >> 24) % 61 - 30));
    }
  };
  hiss(CountOf(before, rate));
  for (size_t i = 0; i < CountOf(tone, rate); ++i) {
    samples.push_back(static_cast<int16_t>(kLoud * std::cos(static_cast<double>(i) * 2500 / rate)));
  }
  hiss(CountOf(after, rate));
  return samples;
}

std::string EncodedBy(AudioFormat format, int32_t rate, SampleSpan samples, size_t piece) {
  std::string out;
  auto encoder = NewEncoder(format, rate);
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  if (!encoder.ok()) return out;
  for (size_t at = 0; at < samples.size(); at += piece) {
    const SampleSpan next = samples.subspan(at, std::min(piece, samples.size() - at));
    EXPECT_TRUE((*encoder)->Encode(next, &out).ok());
  }
  EXPECT_TRUE((*encoder)->Finish(&out).ok());
  return out;
}

Sound DecodedFrom(const std::string& bytes) {
  auto sound = DecodeAudio(bytes, {});
  EXPECT_TRUE(sound.ok()) << sound.status();
  return sound.ok() ? *std::move(sound) : Sound{};
}

// Where something loud is first, and last, in seconds.
struct LoudSpan {
  double first = 0;
  double last = 0;
};
LoudSpan LoudIn(const Sound& sound, int bound = kLoud / 2) {
  const auto loud = [bound](int16_t sample) { return std::abs(sample) > bound; };
  const auto first = std::find_if(sound.samples.begin(), sound.samples.end(), loud);
  const auto last = std::find_if(sound.samples.rbegin(), sound.samples.rend(), loud);
  return {static_cast<double>(first - sound.samples.begin()) / sound.sample_rate,
          static_cast<double>(sound.samples.rend() - last) / sound.sample_rate};
}

class FramesOf : public testing::TestWithParam<AudioFormat> {
 protected:
  void SetUp() override {
    if (const Status can = CanEncode(GetParam()); !can.ok()) GTEST_SKIP() << can;
    if (const auto decoded = DecodeAudio("OggS", {});
        decoded.status().code() == StatusCode::kUnavailable) {
      GTEST_SKIP() << decoded.status();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Encoder, FramesOf, testing::Values(AudioFormat::kMp3, AudioFormat::kAac),
                         [](const auto& format) {
                           return std::string(AudioFormatName(format.param));
                         });

// Files were 0.1 s longer than the sound (AAC at 8 kHz: 0.25 s), and the sound in them was late.
TEST_P(FramesOf, HaveTheLengthOfTheSoundAndItsTiming) {
  for (const int32_t rate : {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}) {
    for (const double after : {0.2, 0.22, 0.24, 0.26}) {
      const Sound sound{rate, ToneWithin(rate, 0.2, 0.5, after)};
      const std::string what = std::to_string(rate) + " " + std::to_string(after);
      const Sound decoded = DecodedFrom(EncodedBy(GetParam(), rate, sound.samples, 480));
      // Half a frame of AAC at 8 kHz is 64 ms.
      const double most = GetParam() == AudioFormat::kAac && rate == 8000 ? 0.065 : 0.05;
      EXPECT_NEAR(decoded.seconds(), sound.seconds(), most) << what;
      const LoudSpan heard = LoudIn(decoded);
      EXPECT_NEAR(heard.first, 0.2, 0.002) << what;
      EXPECT_NEAR(heard.last, 0.7, 0.002) << what;
    }
  }
}

TEST_P(FramesOf, HaveAllOfASoundThatBeginsAndEndsAtOnce) {
  for (const int32_t rate : {8000, 16000, 22050, 48000}) {
    for (const double tone : {0.01, 0.33, 0.35, 0.37, 0.39}) {
      const Sound sound{rate, ToneWithin(rate, 0, tone, 0)};
      const std::string what = std::to_string(rate) + " " + std::to_string(tone);
      const Sound decoded = DecodedFrom(EncodedBy(GetParam(), rate, sound.samples, 480));
      const LoudSpan heard = LoudIn(decoded);
      EXPECT_NEAR(heard.last - heard.first, tone, 0.003) << what;
      const double delay = (GetParam() == AudioFormat::kAac ? 1024.0 : 1105.0) / rate;
      EXPECT_NEAR(heard.first, delay, 0.002) << what;
    }
  }
}

// Up to the delay was cut off where its peaks were below -50 dBFS.
TEST_P(FramesOf, HaveTheOnsetOfASoftVoice) {
  constexpr int16_t kOnset = 100;
  for (const int32_t rate : {8000, 16000}) {
    for (const int16_t then : {kOnset, int16_t{10 * kOnset}}) {
      Samples sound = ToneWithin(rate, 0, 0.6, 0);
      for (size_t i = 0; i < sound.size(); ++i) {
        const int peak = i < CountOf(0.2, rate) ? kOnset : then;
        sound[i] = static_cast<int16_t>(sound[i] * peak / kLoud);
      }
      const std::string what = std::to_string(rate) + " " + std::to_string(then);
      const Sound decoded = DecodedFrom(EncodedBy(GetParam(), rate, sound, 480));
      const double delay = (GetParam() == AudioFormat::kAac ? 1024.0 : 1105.0) / rate;
      EXPECT_NEAR(LoudIn(decoded, kOnset / 2).first, delay, 0.003) << what;
      EXPECT_NEAR(LoudIn(decoded, then / 2).last, delay + 0.6, 0.003) << what;
    }
  }
}

TEST_P(FramesOf, AreTheSameHoweverTheSoundComes) {
  for (const int32_t rate : {16000, 22050, 48000}) {
    const Samples loud = ToneWithin(rate, 0.1, 0.2, 0.1);
    Samples soft = ToneWithin(rate, 0, 0.8, 0);
    for (int16_t& sample : soft) sample = static_cast<int16_t>(sample / 100);
    for (const Samples& samples : {loud, soft}) {
      const std::string whole = EncodedBy(GetParam(), rate, samples, samples.size());
      for (const size_t piece : {1, 7, 480, 1105, 1106, 5000}) {
        EXPECT_EQ(EncodedBy(GetParam(), rate, samples, piece), whole) << rate << " " << piece;
      }
    }
  }
}

TEST_P(FramesOf, AreAtLeastOneOfASoundThatIsShortOrSilent) {
  for (const size_t count : {1, 100, 576, 1024, 1105, 1106, 2000, 16000}) {
    const Samples samples(count);
    EXPECT_FALSE(EncodedBy(GetParam(), 16000, samples, 480).empty()) << count;
    if (count < 2000) continue;
    EXPECT_NEAR(DecodedFrom(EncodedBy(GetParam(), 16000, samples, 480)).seconds(),
                static_cast<double>(count) / 16000, 0.05);
  }
}

}  // namespace
}  // namespace portico::media
