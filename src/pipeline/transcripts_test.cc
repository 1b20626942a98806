#include "pipeline/transcripts.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::pipeline {
namespace {

TEST(Transcripts, KeepsTextsUntilTheyExpire) {
  Transcripts transcripts;
  transcripts.Add("a", "Tokyo", 100);
  EXPECT_EQ(transcripts.Find("a", 99), "Tokyo");
  EXPECT_EQ(transcripts.Find("a", 100), std::nullopt);
  EXPECT_EQ(transcripts.Find("b", 0), std::nullopt);
}

TEST(Transcripts, ForgetsTheOldestOfTooManyAndOfTooLongOnes) {
  Transcripts transcripts;
  for (size_t i = 0; i <= Transcripts::kMost; ++i) transcripts.Add(std::to_string(i), "x", 100);
  EXPECT_EQ(transcripts.Find("0", 0), std::nullopt);
  EXPECT_EQ(transcripts.Find("1", 0), "x");
  transcripts.Add("long", std::string(Transcripts::kMostBytes, 'x'), 100);
  EXPECT_EQ(transcripts.Find("1", 0), std::nullopt);
  EXPECT_TRUE(transcripts.Find("long", 0).has_value());
  transcripts.Add("longer", std::string(Transcripts::kMostBytes + 1, 'x'), 100);
  EXPECT_EQ(transcripts.Find("longer", 0), std::nullopt);
  transcripts.Add("short", "y", 100);
  EXPECT_EQ(transcripts.Find("short", 0), "y");
}

}  // namespace
}  // namespace portico::pipeline
