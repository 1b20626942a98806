#include "pipeline/speech/recognizer.h"

#include <gtest/gtest.h>

#include "pipeline/speech/flite_voice.h"

namespace portico::pipeline {
namespace {

std::string WordsOf(const StatusOr<Heard>& heard) {
  if (!heard.ok()) return std::string(heard.status().message());
  std::string words;
  for (const HeardWord& word : heard->words) words += word.word + " ";
  return words;
}

// An aborted request had the recognizer for up to 12 s of sound.
TEST(Recognizer, StopsBetweenPiecesAndHearsTheNextUtteranceAsEver) {
  const auto voice = FliteVoice::Load("rms");
  auto recognizer = Recognizer::Load();
  if (!voice.ok() || !recognizer.ok()) GTEST_SKIP() << "the speech packages are not installed";
  media::Samples samples;
  ASSERT_TRUE((*voice)
                  ->Say("please close the door when you leave the room", 1,
                        [&samples](media::SampleSpan piece) {
                          samples.insert(samples.end(), piece.begin(), piece.end());
                          return true;
                        })
                  .ok());
  const std::string whole = WordsOf((*recognizer)->Hear(samples, [] { return false; }));
  EXPECT_NE(whole.find("door"), std::string::npos) << whole;
  for (const int most : {0, 1, 7, 20}) {
    int asked = 0;
    const auto stopped = (*recognizer)->Hear(samples, [&] { return asked++ == most; });
    EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
    EXPECT_EQ(asked, most + 1);
    ASSERT_TRUE((*recognizer)->usable());
    EXPECT_EQ(WordsOf((*recognizer)->Hear(samples, [] { return false; })), whole);
  }
  // Late, where to end the utterance takes longer than another recognizer.
  const media::Samples once = samples;
  samples.insert(samples.end(), once.begin(), once.end());
  int asked = 0;
  EXPECT_FALSE((*recognizer)->Hear(samples, [&] { return asked++ == 60; }).ok());
  EXPECT_EQ(asked, 61);
  EXPECT_FALSE((*recognizer)->usable());
}

TEST(Recognizer, HearsNothingInNoSoundAndInSilence) {
  auto recognizer = Recognizer::Load();
  if (!recognizer.ok()) GTEST_SKIP() << "the speech packages are not installed";
  for (const size_t length : {0, 1, 100, 400, 1000, 16000}) {
    const auto heard = (*recognizer)->Hear(media::Samples(length), [] { return false; });
    EXPECT_EQ(WordsOf(heard), "") << length;
    EXPECT_TRUE((*recognizer)->usable());
  }
}

}  // namespace
}  // namespace portico::pipeline
