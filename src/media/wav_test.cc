#include "media/wav.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "media/decoder.h"
#include "media/encoder.h"
#include "media/g711.h"

namespace portico::media {
namespace {

using ::testing::HasSubstr;

std::string Ramp(int samples, uint32_t claimed) {
  Samples values;
  for (int i = 0; i < samples; ++i) values.push_back(static_cast<int16_t>(i * 7 - 300));
  std::string file = WavHeader(16000, claimed);
  AppendBytes(values, &file);
  return file;
}

TEST(Wav, ReadsWhatItWrites) {
  const auto sound = ReadWav(Ramp(100, 200), {});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->sample_rate, 16000);
  ASSERT_EQ(sound->samples.size(), 100U);
  EXPECT_EQ(sound->samples[3], -279);
}

TEST(Wav, TakesWhatIsThereWhereTheSizeIsUnknown) {
  const auto sound = ReadWav(Ramp(100, kUnknownWavBytes), {});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->samples.size(), 100U);
}

// Half of an upload was transcribed as if it were the whole.
TEST(Wav, RefusesSoundThatIsCutOffOrClaimsMoreThanThereIs) {
  const std::string file = Ramp(100, 200);
  for (const size_t size : {file.size() - 100, kWavHeaderBytes + 2}) {
    EXPECT_THAT(std::string(ReadWav(std::string_view(file).substr(0, size), {}).status().message()),
                HasSubstr("cut off"))
        << size;
  }
  EXPECT_THAT(std::string(ReadWav(Ramp(100, 0x10000000), {}).status().message()),
              HasSubstr("claims 268435456 bytes of sound and 200 are there"));
  // sox and ffmpeg, which write to a pipe.
  for (const uint32_t unknown : {0x7FFFFFFFU, 0x7FFFF000U, 0x80000000U, 0xFFFFFFD3U}) {
    EXPECT_TRUE(ReadWav(Ramp(100, unknown), {}).ok()) << unknown;
  }
  EXPECT_TRUE(ReadWav(file + "LIST", {}).ok());  // what follows the sound is not read
}

TEST(Wav, TakesSizesOfZeroAndThoseThatCountTheHeaderAsSound) {
  std::string piped = Ramp(100, 0);  // the file's is 36: there is only the header
  auto sound = ReadWav(piped, {});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->samples.size(), 100U);
  piped.replace(4, 4, std::string(4, '\0'));
  EXPECT_TRUE(ReadWav(piped, {}).ok());
  piped.replace(4, 4, std::string(4, '\xFF'));
  EXPECT_TRUE(ReadWav(piped, {}).ok());
  // An empty file with notes behind its sound.
  std::string noted = WavHeader(16000, 0) + std::string("LIST\4\0\0\0abcd", 12);
  noted[4] = 48;
  EXPECT_THAT(std::string(ReadWav(noted, {}).status().message()), HasSubstr("no samples"));
  sound = ReadWav(Ramp(100, 200 + kWavHeaderBytes), {});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->samples.size(), 100U);
}

TEST(Wav, GetsItsTrueSizesLater) {
  std::string file = Ramp(100, kUnknownWavBytes);
  SetWavSizes(&file);
  EXPECT_EQ(file, Ramp(100, 200));
}

TEST(Wav, RefusesEveryCutOfItsHeadAndNeverCrashes) {
  const std::string file = Ramp(10, 20);
  for (size_t size = 0; size <= kWavHeaderBytes + 1; ++size) {
    EXPECT_FALSE(ReadWav(std::string_view(file).substr(0, size), {}).ok()) << size;
  }
}

TEST(Wav, RefusesHoursManyChannelsAndStrangeRates) {
  AudioLimits limits;
  limits.max_seconds = 0.001;
  EXPECT_THAT(std::string(ReadWav(Ramp(100, 200), limits).status().message()),
              HasSubstr("at most"));
  std::string channels = Ramp(100, 200);
  channels[22] = 99;
  EXPECT_THAT(std::string(ReadWav(channels, {}).status().message()), HasSubstr("99 channels"));
  std::string rate = Ramp(100, 200);
  rate[24] = 1;
  rate[25] = 0;
  EXPECT_THAT(std::string(ReadWav(rate, {}).status().message()), HasSubstr("sample rate"));
  std::string tag = Ramp(100, 200);
  tag[20] = 0x55;  // MP3 in a WAV file
  EXPECT_THAT(std::string(ReadWav(tag, {}).status().message()), HasSubstr("format 85"));
}

// It was decoded as if it were right.
TEST(Wav, RefusesFramesOfAnotherSizeThanTheirChannelsHave) {
  for (const char wrong : {0, 1, 4}) {
    std::string file = Ramp(100, 200);
    file[32] = wrong;
    EXPECT_THAT(std::string(ReadWav(file, {}).status().message()), HasSubstr("frames have"));
  }
}

TEST(Wav, AveragesChannels) {
  std::string file = WavHeader(8000, 8);
  file[22] = 2;
  file[32] = 4;
  AppendBytes(Samples{100, 300, -50, 50}, &file);
  const auto sound = ReadWav(file, {});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->samples, (Samples{200, 0}));
}

TEST(G711, KeepsSamplesWithinItsStep) {
  for (int sample = -32000; sample <= 32000; sample += 37) {
    const auto value = static_cast<int16_t>(sample);
    const int step = std::max(16, std::abs(sample) / 16);
    EXPECT_NEAR(FromMuLaw(ToMuLaw(value)), sample, step);
    EXPECT_NEAR(FromALaw(ToALaw(value)), sample, step);
  }
  // ITU-T G.191: mu-law 0xFF and A-law 0xD5 are the smallest positive values.
  EXPECT_EQ(FromMuLaw(0xFF), 0);
  EXPECT_EQ(FromALaw(0xD5), 8);
}

TEST(Decoder, NamesWhatItDoesNotRead) {
  EXPECT_THAT(std::string(DecodeAudio("", {}).status().message()), HasSubstr("empty"));
  EXPECT_THAT(std::string(DecodeAudio("hello there", {}).status().message()),
              HasSubstr("not known"));
  const std::string mp4(
      "\0\0\0\x18"
      "ftypM4A \0\0\0\0",
      16);
  EXPECT_THAT(std::string(DecodeAudio(mp4, {}).status().message()), HasSubstr("M4A"));
}

// Every encoder whose library is installed gives a file that the decoder reads to the same length.
TEST(Encoder, MakesFilesOfTheRightLength) {
  Samples tone(16000);
  for (size_t i = 0; i < tone.size(); ++i) {
    tone[i] = static_cast<int16_t>(8000 * std::sin(static_cast<double>(i) * 0.17));
  }
  for (const AudioFormat format :
       {AudioFormat::kWav, AudioFormat::kMp3, AudioFormat::kOpus, AudioFormat::kFlac}) {
    if (!CanEncode(format).ok()) continue;
    auto encoder = NewEncoder(format, 16000);
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    std::string file;
    for (size_t at = 0; at < tone.size(); at += 480) {
      const size_t count = std::min<size_t>(480, tone.size() - at);
      ASSERT_TRUE((*encoder)->Encode(SampleSpan(tone).subspan(at, count), &file).ok());
    }
    ASSERT_TRUE((*encoder)->Finish(&file).ok());
    const auto sound = DecodeAudio(file, {});
    if (absl::IsUnavailable(sound.status())) continue;
    ASSERT_TRUE(sound.ok()) << AudioFormatName(format) << sound.status();
    // MP3 adds its frames' padding.
    EXPECT_NEAR(sound->seconds(), 1, format == AudioFormat::kMp3 ? 0.15 : 0.03)
        << AudioFormatName(format);
  }
}

// Half of the words of an upload were transcribed as if they were all.
TEST(Decoder, RefusesHalfOfAFile) {
  for (const AudioFormat format : {AudioFormat::kMp3, AudioFormat::kOpus}) {
    if (!CanEncode(format).ok()) continue;
    auto encoder = NewEncoder(format, 16000);
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    std::string file;
    ASSERT_TRUE((*encoder)->Encode(Samples(64000, 100), &file).ok());
    ASSERT_TRUE((*encoder)->Finish(&file).ok());
    const std::string_view half = std::string_view(file).substr(0, file.size() / 2 + 1);
    EXPECT_THAT(std::string(DecodeAudio(half, {}).status().message()), HasSubstr("cut off"))
        << AudioFormatName(format);
  }
}

TEST(Decoder, RefusesFlacThatHasLessSoundThanItsHeadClaims) {
  if (!CanEncode(AudioFormat::kFlac).ok()) return;
  auto encoder = NewEncoder(AudioFormat::kFlac, 16000);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  std::string file;
  ASSERT_TRUE((*encoder)->Encode(Samples(16000, 100), &file).ok());
  ASSERT_TRUE((*encoder)->Finish(&file).ok());
  const auto whole = DecodeAudio(file, {});
  if (absl::IsUnavailable(whole.status())) return;
  ASSERT_TRUE(whole.ok()) << whole.status();
  // The number of samples: the last 36 bits before STREAMINFO's MD5 (RFC 9639, 8.2).
  constexpr size_t kSamplesAt = 4 + 4 + 14;
  std::string rounded = file;
  rounded.replace(kSamplesAt, 4, std::string("\0\0\x3E\xE4", 4));  // 16100
  EXPECT_TRUE(DecodeAudio(rounded, {}).ok());
  file[kSamplesAt + 1] = 0x10;
  EXPECT_THAT(std::string(DecodeAudio(file, {}).status().message()),
              HasSubstr("FLAC audio is cut"));
}

TEST(Encoder, IsNeverAnotherFormatInstead) {
  // AAC is made by portico-media, which may stand beside this program.
  const Status aac = CanEncode(AudioFormat::kAac);
  if (!aac.ok()) {
    EXPECT_EQ(aac.code(), StatusCode::kUnavailable);
    EXPECT_EQ(ReasonOf(aac), "encoder_missing");
  }
  EXPECT_EQ(NewEncoder(AudioFormat::kWav, 1000).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace portico::media
