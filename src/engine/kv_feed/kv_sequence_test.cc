#include "engine/kv_feed/kv_sequence.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

using Step = KvSequence::Step;

TEST(KvSequenceTest, BatchesAreTakenFromAnyNumberOn) {
  KvSequence sequence;
  EXPECT_EQ(sequence.OnLive(7), Step::kTake);
  EXPECT_EQ(sequence.OnLive(8), Step::kTake);
  EXPECT_EQ(sequence.next(), 9u);
}

TEST(KvSequenceTest, AGapIsFilledByAReplayAndWhatCameTwiceIsKnown) {
  KvSequence sequence;
  sequence.OnLive(3);
  EXPECT_EQ(sequence.OnLive(6), Step::kGap);
  EXPECT_EQ(sequence.next(), 4u);
  for (const uint64_t number : {4, 5, 6, 7}) EXPECT_EQ(sequence.OnReplayed(number), Step::kTake);
  EXPECT_TRUE(sequence.EndReplay());
  EXPECT_EQ(sequence.OnLive(7), Step::kKnown);
  EXPECT_EQ(sequence.OnLive(8), Step::kTake);
}

TEST(KvSequenceTest, WhatIsNotKeptAnyMoreIsAGapOfTheReplay) {
  KvSequence sequence;
  sequence.OnLive(3);
  sequence.OnLive(9);
  EXPECT_EQ(sequence.OnReplayed(5), Step::kGap);
  sequence.Adopt(5);
  EXPECT_EQ(sequence.OnReplayed(6), Step::kTake);
}

TEST(KvSequenceTest, AReplayThatBringsNothingEndsBehindWhatWasPublished) {
  KvSequence sequence;
  sequence.OnLive(3);
  EXPECT_EQ(sequence.OnLive(9), Step::kGap);
  EXPECT_FALSE(sequence.EndReplay());
  EXPECT_EQ(sequence.OnLive(10), Step::kTake);
}

TEST(KvSequenceTest, ANumberThatGoesBackIsARestart) {
  KvSequence sequence;
  sequence.OnLive(3);
  sequence.OnLive(4);
  EXPECT_EQ(sequence.OnLive(4), Step::kRestart);
  EXPECT_EQ(sequence.OnLive(0), Step::kRestart);
  sequence.Forget();
  sequence.Adopt(0);
  EXPECT_EQ(sequence.OnLive(1), Step::kTake);
  // Not after a new connection, before which numbers may have been missed.
  sequence.Connect();
  EXPECT_EQ(sequence.OnLive(0), Step::kTake);
}

TEST(KvSequenceTest, TheStateThatAReplayTellsBeginsWithWhatIsKept) {
  KvSequence sequence;
  sequence.Connect();
  EXPECT_EQ(sequence.next(), 0u);
  EXPECT_EQ(sequence.OnReplayed(5), Step::kTake);
  EXPECT_EQ(sequence.OnReplayed(6), Step::kTake);
  EXPECT_TRUE(sequence.EndReplay());
  EXPECT_EQ(sequence.OnLive(6), Step::kKnown);
  EXPECT_EQ(sequence.OnLive(7), Step::kTake);
}

}  // namespace
}  // namespace portico
