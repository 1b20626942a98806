#include "media/frame_trim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace portico::media {
namespace {

// Frames of 10 samples; each is its size as a byte, twice, and as many bytes as are missing.
constexpr FrameTrim::Codec kTens = {
    .delay = 15, .frame = 10, .look = 20, .head = 2, .frame_bytes = [](std::string_view head) {
      return head[0] == head[1] ? static_cast<size_t>(head[0]) : 0;
    }};

std::string TensFrame(char size) { return std::string(2, size) + std::string(size - 2, 'x'); }

Samples Joined(std::initializer_list<std::pair<size_t, int16_t>> runs) {
  Samples samples;
  for (const auto& [count, value] : runs) samples.insert(samples.end(), count, value);
  return samples;
}

// How many of eight frames are left of a sound that comes in such pieces.
int FramesLeft(const Samples& sound, size_t piece) {
  FrameTrim trim(kTens);
  for (size_t at = 0; at < sound.size(); at += piece) {
    trim.Enter(SampleSpan(sound).subspan(at, std::min(piece, sound.size() - at)));
  }
  trim.Rest();
  std::string out;
  std::string wanted;
  for (char size = 4; size < 12; ++size) out += TensFrame(size);
  EXPECT_TRUE(trim.Cut(0, &out).ok());
  int frames = 0;
  for (char size = 4; wanted.size() < out.size(); ++size, ++frames) wanted += TensFrame(size);
  EXPECT_EQ(out, wanted);
  return frames;
}

// What is encoded of a sound that comes in such pieces.
Samples EncodedOf(const Samples& sound, size_t piece) {
  FrameTrim trim(kTens);
  Samples encoded;
  const auto add = [&encoded](SampleSpan next) {
    encoded.insert(encoded.end(), next.begin(), next.end());
  };
  for (size_t at = 0; at < sound.size(); at += piece) {
    add(trim.Enter(SampleSpan(sound).subspan(at, std::min(piece, sound.size() - at))));
  }
  add(trim.Rest());
  EXPECT_EQ(trim.all_left_out(), encoded.empty());
  return encoded;
}

constexpr int16_t kFaint = FrameTrim::kQuiet;
constexpr int16_t kLoudBehindFaint = -kFaint * FrameTrim::kBelow;

TEST(FrameTrim, LeavesOutNoMoreThanTheDelayAndNothingThatIsHeard) {
  using Lengths = std::pair<size_t, ptrdiff_t>;
  for (const auto& [before, left_out] : {Lengths{0, 0}, {1, 1}, {14, 14}, {15, 15}, {34, 15}}) {
    for (const int16_t loud : {int16_t{kLoudBehindFaint}, int16_t{INT16_MIN}, int16_t{INT16_MAX}}) {
      const Samples sound = Joined({{before, kFaint}, {3, loud}, {20, 0}});
      const Samples wanted(sound.begin() + left_out, sound.end());
      for (const size_t piece : {1, 4, 33, 100}) {
        EXPECT_EQ(EncodedOf(sound, piece), wanted) << before << " " << loud << " " << piece;
      }
    }
  }
}

// The onset of a voice with peaks of -34 dBFS was cut off, and a sound that is quiet throughout lost its beginning.
TEST(FrameTrim, LeavesOutNothingOfASoundThatIsNoLouderThanTheQuietBeforeAnother) {
  const int16_t soft = 65;
  for (const Samples& sound : {Joined({{40, soft}}), Joined({{100, soft}}), Joined({{5, soft}}),
                               Joined({{12, soft}, {50, 650}}), Joined({{30, soft}, {50, 650}}),
                               Joined({{20, kFaint}, {50, -kLoudBehindFaint - 1}}),
                               // As loud, but too late to be waited for.
                               Joined({{35, kFaint}, {5, kLoudBehindFaint}})}) {
    for (const size_t piece : {1, 4, 33, 100}) {
      EXPECT_EQ(EncodedOf(sound, piece), sound) << sound.size() << " " << piece;
    }
  }
}

TEST(FrameTrim, LeavesOutTheQuietBeforeASoftSound) {
  const Samples sound = Joined({{10, 20}, {3, 650}, {20, 0}});
  for (const size_t piece : {1, 4, 100}) {
    EXPECT_EQ(EncodedOf(sound, piece), Samples(sound.begin() + 10, sound.end())) << piece;
  }
}

TEST(FrameTrim, HoldsWhatMayBeQuietNoLongerThanItLooksAhead) {
  FrameTrim trim(kTens);
  const Samples soft(34, 50);
  EXPECT_TRUE(trim.Enter(soft).empty());
  EXPECT_EQ(trim.Enter(Samples(1, 50)).size(), 35U);
  EXPECT_EQ(trim.Enter(soft).size(), 34U);
  EXPECT_TRUE(trim.Rest().empty());
}

TEST(FrameTrim, KeepsTheFramesUpToTheOneNearestToTheEnd) {
  for (const size_t piece : {1, 3, 7, 1000}) {
    // Quiet on both sides: as long as the sound is, to half a frame.
    EXPECT_EQ(FramesLeft(Joined({{20, 0}, {5, 1000}, {15, 0}}), piece), 4);
    EXPECT_EQ(FramesLeft(Joined({{20, 0}, {5, 1000}, {19, 0}}), piece), 4);
    EXPECT_EQ(FramesLeft(Joined({{20, 0}, {5, 1000}, {20, 0}}), piece), 5);
    // Heard to the end, which the last frame has.
    EXPECT_EQ(FramesLeft(Joined({{20, 0}, {24, 1000}}), piece), 5);
    EXPECT_EQ(FramesLeft(Joined({{20, 0}, {21, 1000}, {2, 0}}), piece), 5);
    EXPECT_EQ(FramesLeft(Joined({{20, 0}, {20, 1000}, {3, 0}}), piece), 4);
    // Heard from the beginning: late by the delay, and quiet at the end makes up for that.
    EXPECT_EQ(FramesLeft(Joined({{40, 1000}}), piece), 6);
    EXPECT_EQ(FramesLeft(Joined({{20, 1000}, {20, 0}}), piece), 4);
    EXPECT_EQ(FramesLeft(Joined({{26, 1000}, {14, 0}}), piece), 5);
    // Nothing is heard.
    EXPECT_EQ(FramesLeft(Joined({{33, 0}}), piece), 3);
    EXPECT_EQ(FramesLeft(Joined({{1, 0}}), piece), 1);
    EXPECT_EQ(FramesLeft({}, piece), 1);
  }
}

TEST(FrameTrim, CountsFramesHoweverTheirBytesCome) {
  std::string stream;
  for (char size = 2; size < 10; ++size) stream += TensFrame(size);
  const size_t wanted = 2 + 3 + 4 + 5;  // 38 samples: 4 frames
  const Samples sound = Joined({{20, 0}, {18, 50}});
  for (size_t told = 0; told <= wanted; ++told) {
    FrameTrim trim(kTens);
    trim.Enter(sound);
    std::string out = "before";
    for (size_t at = 0; at < told; ++at) {
      const size_t from = out.size();
      out += stream[at];
      ASSERT_TRUE(trim.Look(from, &out).ok());
    }
    const size_t from = out.size();
    out += stream.substr(told);
    ASSERT_TRUE(trim.Cut(from, &out).ok());
    EXPECT_EQ(out, "before" + stream.substr(0, wanted)) << told;
  }
}

TEST(FrameTrim, SaysThatTheseAreNoFrames) {
  FrameTrim trim(kTens);
  std::string out = TensFrame(5) + "abc";
  EXPECT_EQ(trim.Look(0, &out).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace portico::media
