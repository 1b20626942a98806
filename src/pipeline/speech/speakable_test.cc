#include "pipeline/speech/speakable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace portico::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Said(std::string_view text) {
  auto said = Speakable(text);
  return said.ok() ? *said : std::string(said.status().message());
}

TEST(Speakable, NamesSymbolsThatTheVoiceIsSilentAbout) {
  EXPECT_EQ(Said("7 + 5 = 12"), "7 plus 5 equals 12");
  EXPECT_EQ(Said("3 * 4"), "3 times 4");
  EXPECT_EQ(Said("7 - 5"), "7 minus 5");
  EXPECT_EQ(Said("-5 degrees"), "minus 5 degrees");
  EXPECT_EQ(Said("20\xC2\xB0"), "20 degrees");
  EXPECT_EQ(Said("salt & pepper"), "salt and pepper");
  EXPECT_EQ(Said("1/2"), "1 over 2");
  EXPECT_EQ(Said("well-known"), "well-known");
}

TEST(Speakable, ReadsLargeNumbersAsOne) { EXPECT_EQ(Said("1,234,567 people"), "1234567 people"); }

TEST(Speakable, FoldsAccentsAndQuotes) {
  EXPECT_EQ(Said("Caf\xC3\xA9 M\xC3\xBCller"), "Cafe Muller");
  EXPECT_EQ(Said("\xE2\x80\x9CYes\xE2\x80\x9D"), "\"Yes\"");
  EXPECT_EQ(Said("stra\xC3\x9F"
                 "e"),
            "strasse");
}

TEST(Speakable, TakesMarkdownAway) {
  EXPECT_EQ(Said("## **Bold** and _thin_"), "Bold and thin");
  EXPECT_EQ(Said("- see [the page](http://x.y)"), "see the page");
  EXPECT_EQ(Said("use `ls` now"), "use ls now");
}

TEST(Speakable, IsEmptyWhereNothingHasASound) {
  EXPECT_EQ(Said("...."), "");
  EXPECT_EQ(Said("\xF0\x9F\x98\x80"), "");
  EXPECT_EQ(Said("   "), "");
}

TEST(Speakable, NamesTheScriptItCannotSay) {
  EXPECT_THAT(Said("\xE4\xBD\xA0\xE5\xA5\xBD"), HasSubstr("Chinese"));
  EXPECT_THAT(Said("\xD0\xBF\xD1\x80\xD0\xB8"), HasSubstr("Cyrillic"));
  EXPECT_EQ(FieldOf(Speakable("\xE4\xBD\xA0").status()), "input");
}

TEST(ThinkFilter, DropsThoughtsAtEverySplit) {
  const std::string text = "<think>no one hears</think>Hello <b>you";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ThinkFilter filter;
    std::string out = filter.Feed(std::string_view(text).substr(0, cut));
    out += filter.Feed(std::string_view(text).substr(cut));
    out += filter.Finish();
    EXPECT_EQ(out, "Hello <b>you") << cut;
  }
}

std::vector<std::string> Split(std::string_view text, size_t piece, bool clauses = false) {
  ClauseSplitter splitter(clauses);
  std::vector<std::string> out;
  const auto take = [&] {
    for (std::string clause = splitter.Next(); !clause.empty(); clause = splitter.Next()) {
      out.push_back(clause);
    }
  };
  for (size_t at = 0; at < text.size(); at += piece) {
    splitter.Feed(text.substr(at, piece));
    take();
  }
  splitter.Finish();
  take();
  return out;
}

TEST(ClauseSplitter, StartsWithTheFirstClauseAndGoesOnInSentences) {
  const std::string text =
      "Before the rain came, we walked. Dr. Smith paid 3.50 for bread, milk, and cheese. Good!";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EXPECT_THAT(Split(text, piece),
                ElementsAre("Before the rain came,", "we walked.",
                            "Dr. Smith paid 3.50 for bread, milk, and cheese.", "Good!"));
  }
}

TEST(ClauseSplitter, BoundsAClauseWithoutAnEnd) {
  const auto clauses = Split(std::string(5000, 'x'), 100);
  ASSERT_GT(clauses.size(), 10U);
  for (const std::string& clause : clauses) EXPECT_LE(clause.size(), 201U);
}

}  // namespace
}  // namespace portico::pipeline
