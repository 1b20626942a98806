#include "pipeline/speech/recognizer.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/speech/flite_voice.h"

namespace portico::pipeline {
namespace {

std::string WordsOf(const StatusOr<Heard>& heard) {
  if (!heard.ok()) return std::string(heard.status().message());
  std::string words;
  for (const HeardWord& word : heard->words) words += word.word + " ";
  return words;
}

media::Samples SaidBy(const FliteVoice& voice, const std::string& text) {
  media::Samples samples;
  const Status said = voice.Say(text, 1, [&samples](media::SampleSpan piece) {
    samples.insert(samples.end(), piece.begin(), piece.end());
    return true;
  });
  EXPECT_TRUE(said.ok()) << said;
  return samples;
}

bool NeverStop() { return false; }

constexpr char kSums[] =
    "#JSGF V1.0; grammar sums; <n> = one | two | three | four | five | six | seven | eight | nine;"
    " public <sum> = <n> (plus | minus) <n>;";

TEST(Recognizer, HearsNothingButWhatTheGrammarHas) {
  const auto voice = FliteVoice::Load("rms");
  auto recognizer = Recognizer::Load();
  if (!voice.ok()) GTEST_SKIP() << voice.status();
  if (!recognizer.ok()) GTEST_SKIP() << recognizer.status();
  Recognizer& ears = **recognizer;
  const media::Samples sum = SaidBy(**voice, "seven plus two");
  const media::Samples door = SaidBy(**voice, "please close the door when you leave the room");
  const std::string freely = WordsOf(ears.Hear(door, NeverStop));
  EXPECT_NE(freely.find("door"), std::string::npos) << freely;

  ASSERT_TRUE(ears.SetGrammar(kSums).ok());
  EXPECT_EQ(WordsOf(ears.Hear(sum, NeverStop)), "seven plus two ");
  EXPECT_EQ(WordsOf(ears.Hear(SaidBy(**voice, "four minus nine"), NeverStop)), "four minus nine ");
  // Another sentence becomes a sum, or nothing; the words' times are those of the sound.
  const auto forced = ears.Hear(door, NeverStop);
  EXPECT_EQ(WordsOf(forced).find("door"), std::string::npos) << WordsOf(forced);
  const auto timed = ears.Hear(sum, NeverStop);
  ASSERT_TRUE(timed.ok() && timed->words.size() == 3) << WordsOf(timed);
  double last = 0;
  for (const HeardWord& word : timed->words) {
    EXPECT_GE(word.begin, last) << word.word;
    EXPECT_GT(word.end, word.begin) << word.word;
    last = word.end;
  }
  EXPECT_LE(last, static_cast<double>(sum.size()) / Recognizer::kSampleRate + 0.05);

  // What cannot be read changes nothing.
  for (const char* bad : {"#JSGF V1.0; grammar x; public <x> = <nowhere>;",
                          "#JSGF V1.0; grammar x; public <x> = xyzzyplugh;", "no grammar"}) {
    EXPECT_EQ(ears.SetGrammar(bad).code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_TRUE(ears.usable());
    EXPECT_EQ(WordsOf(ears.Hear(sum, NeverStop)), "seven plus two ") << bad;
  }

  // Another grammar takes the first one's place, and none leaves nothing of it behind.
  ASSERT_TRUE(
      ears.SetGrammar("#JSGF V1.0; grammar doors; public <door> = please (open | close) the "
                      "(door | window) [when you leave the room];")
          .ok());
  EXPECT_EQ(WordsOf(ears.Hear(door, NeverStop)), "please close the door when you leave the room ");
  ASSERT_TRUE(ears.SetGrammar("").ok());
  EXPECT_EQ(WordsOf(ears.Hear(door, NeverStop)), freely);
}

// An aborted request had the recognizer for up to 12 s of sound.
TEST(Recognizer, StopsBetweenPiecesAndHearsTheNextUtteranceAsEver) {
  const auto voice = FliteVoice::Load("rms");
  auto recognizer = Recognizer::Load();
  if (!voice.ok() || !recognizer.ok()) GTEST_SKIP() << "the speech packages are not installed";
  media::Samples samples = SaidBy(**voice, "please close the door when you leave the room");
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
