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

// Chats write these, and 5² was said as fifty-two, 1–5 as a subtraction.
TEST(Speakable, ReadsSignsBesideNumbersAsTheyAreSaid) {
  EXPECT_EQ(Said("5\xC2\xB2 = 25"), "5 squared equals 25");
  EXPECT_EQ(Said("80 km\xC2\xB2."), "80 km squared.");
  EXPECT_EQ(Said("10\xE2\x81\xBB\xC2\xB9\xC2\xB2 m"), "10 to the power of minus 12 m");
  EXPECT_EQ(Said("Ca\xC2\xB2\xE2\x81\xBA and Cl\xE2\x81\xBB."), "Ca2 plus and Cl minus .");
  EXPECT_EQ(Said("1\xC2\xBD cups, \xC2\xBE cup"), "1 and one half cups, three quarters cup");
  EXPECT_EQ(Said("It costs \xE2\x82\xAC"
                 "3.50, not \xC2\xA3 1."),
            "It costs 3.50 euros, not 1 pound.");
  EXPECT_EQ(Said("\xE2\x82\xAC"
                 "1,200 or \xC2\xA5"
                 "5 million"),
            "1200 euros or 5 million yen");
  EXPECT_EQ(Said("a few \xE2\x82\xAC"), "a few euros");
  EXPECT_EQ(Said("1 \xC2\xBD cups, in 1999 \xC2\xBD of all"),
            "1 and one half cups, in 1999 one half of all");
  EXPECT_EQ(Said("\xE2\x82\xAC"
                 "5\xE2\x80\x93"
                 "10, \xC2\xA3"
                 "1-2 million"),
            "5 to 10 euros, 1 to 2 million pounds");
  EXPECT_EQ(Said("1939\xE2\x80\x93"
                 "1945"),
            "1939 to 1945");
  EXPECT_EQ(Said("7 \xE2\x80\x93 5"), "7 minus 5");
}

// "€5m" was said as "5 euros m", "3 1/2" as "3 1 over 2".
TEST(Speakable, ReadsShortMillionsAndMixedFractions) {
  EXPECT_EQ(Said("\xE2\x82\xAC"
                 "5m, $5bn, \xC2\xA3"
                 "10k-20k, \xE2\x82\xAC"
                 "5 m, $5, \xC2\xA3"
                 "5meal"),
            "5 million euros, $5 billion, 10 thousand to 20 thousand pounds, 5 euros m, $5, "
            "5 pounds meal");
  EXPECT_EQ(Said("3 1/2 cups and 12 3/4"), "3 and one half cups and 12 and three quarters");
  EXPECT_EQ(Said("1 1/2/2020, 1999 1/2, 3 7/9"), "1 1 2 2020, 1999 1 over 2, 3 7 over 9");
  EXPECT_EQ(Said("1\xC2\xBD\xE2\x80\x93"
                 "2\xC2\xBD, \xC2\xBD-\xC2\xBE, 1 1/2-2 1/2"),
            "1 and one half to 2 and one half, one half to three quarters, 1 and one half to 2 "
            "and one half");
}

// They were said without "minus".
TEST(Speakable, SaysMinusInFormulasWithoutBlanks) {
  EXPECT_EQ(Said("5-3=2"), "5 minus 3 equals 2");
  EXPECT_EQ(Said("2x-5 = 0, 2=5-3"), "2x minus 5 equals 0, 2 equals 5 minus 3");
  EXPECT_EQ(Said("x-5 and (y-10)"), "x minus 5 and (y minus 10)");
  const std::string others = "pages 5-10, F-16, 2020-01-05, 555-1234, COVID-19, max-5, x-5-y";
  EXPECT_EQ(Said(others), others);
  EXPECT_EQ(Said("555-1234 = home"), "555-1234 equals home");
}

// The slash was dropped.
TEST(Speakable, SaysRatesOfUnits) {
  EXPECT_EQ(Said("80 km/h, 10 m/s\xC2\xB2."), "80 km per hour, 10 m per second squared.");
  EXPECT_EQ(Said("120 mg/l, 30 tokens/s, 5/min"),
            "120 mg per liter, 30 tokens per second, 5 per minute");
  EXPECT_EQ(Said("and/or, item/s, TCP/IP, w/h"), "and or, item s, TCP IP, w h");
}

// "x ≠ 5" was said as "x equals 5", "-$5" as "five dollars", "5‰" as "five".
TEST(Speakable, KeepsSignsThatChangeTheMeaning) {
  EXPECT_EQ(Said("x \xE2\x89\xA0 5"), "x is not 5");
  EXPECT_EQ(Said("2 \xE2\x89\xAE 1"), "2 is not less than 1");
  EXPECT_EQ(Said("a profit of -$5, \xE2\x80\x93$1,200.50"), "a profit of minus $5, minus $1200.50");
  EXPECT_EQ(Said("10-$5"), "10-$5");
  EXPECT_EQ(Said("5\xE2\x80\xB0"), "5 per thousand");
  EXPECT_EQ(Said("\xE2\x82\xBF"
                 "1, 500 \xE2\x82\xA9"),
            "1 bitcoin, 500 won");
  EXPECT_EQ(Said(">= 5 and x <= 7"), "at least 5 and x at most 7");
  EXPECT_EQ(Said("a != b == c -> d"), "a is not b equals c to d");
  EXPECT_EQ(Said("> quoted"), "quoted");
  EXPECT_EQ(Said("C# and #tag"), "C sharp and tag");
  EXPECT_EQ(Said("9/11/2001, 1/2"), "9 11 2001, 1 over 2");
}

// Took the square of the text's length, on the shard's thread.
TEST(Speakable, ReadsLongRunsOfSigns) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "\xC2\xB9";
  EXPECT_TRUE(Speakable(text).ok());
}

TEST(Speakable, NamesGreekLettersThatStandAlone) {
  EXPECT_EQ(Said("\xCF\x80 = 3.14"), "pi equals 3.14");
  EXPECT_EQ(Said("2\xCF\x80r, \xCE\x94x, \xCF\x89\xC2\xB2"), "2 pi r, delta x, omega squared");
  EXPECT_EQ(Said("5 \xC2\xB5m"), "5 micro m");
  EXPECT_THAT(Said("\xCF\x80\xCF\x80"), HasSubstr("Greek letters"));
}

TEST(Speakable, TellsMultiplicationFromEmphasis) {
  EXPECT_EQ(Said("3*4"), "3 times 4");
  EXPECT_EQ(Said("(1+2) * 4"), "(1 plus 2) times 4");
  EXPECT_EQ(Said("see *4 pages*"), "see 4 pages");
  EXPECT_EQ(Said("*4 pages*"), "4 pages");
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

// "<b>" was said as "less than b greater than".
TEST(Speakable, TakesTagsOfHtmlAwayAndKeepsComparisons) {
  EXPECT_EQ(Said("<p>A <b>bo</b>ld <I>word</I>.</p>"), "A bold word.");
  EXPECT_EQ(Said("one<br/>two<BR />three"), "one two three");
  EXPECT_EQ(Said("<a href=\"http://x.y/?a=1\" class='b'>the page</a>"), "the page");
  EXPECT_EQ(Said("a < b"), "a less than b");
  EXPECT_EQ(Said("a<b and c>d"), "a less than b and c greater than d");
  EXPECT_EQ(Said("if 3 <x> 5"), "if 3 less than x greater than 5");
  EXPECT_EQ(Said("a <b"), "a less than b");
  EXPECT_EQ(Said("<br/>"), "");
}

// Each bracket was looked for its end in all of the text behind it: 0.1 s of the shard's thread, and 32 times that for a batch.
TEST(Speakable, ReadsLongRunsOfBracketsAndTags) {
  for (const std::string_view sign : {"[", "![", "<b ", "<b a='", "[a]("}) {
    std::string text;
    while (text.size() < (1 << 20)) text += sign;
    EXPECT_TRUE(Speakable(text).ok());
  }
  EXPECT_EQ(Said("[" + std::string(100, 'a') + " b](http://x.y)"),
            std::string(64, 'a') + " " + std::string(36, 'a') + " b");
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
  // Those that no table lists were dropped in silence: Ethiopic, Burmese.
  EXPECT_THAT(Said("hello \xE1\x88\xB0\xE1\x88\x8B\xE1\x88\x9D"), HasSubstr("non-Latin letters"));
  EXPECT_THAT(Said("\xE1\x80\x99"), HasSubstr("non-Latin letters"));
  EXPECT_EQ(Said("/t\xC9\x92m/ \xF0\x9F\x98\x80 \xE2\x94\x80 ok"), "t m ok");
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

TEST(ClauseSplitter, EndsSentencesOfOtherScripts) {
  const std::string text =
      "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x81\xE5\xA5\xBD\xE5\x90\x97\xEF\xBC\x9F"
      "\xE5\xA5\xBD\xE3\x80\x82";
  EXPECT_THAT(Split(text, 1),
              ElementsAre("\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x81",
                          "\xE5\xA5\xBD\xE5\x90\x97\xEF\xBC\x9F", "\xE5\xA5\xBD\xE3\x80\x82"));
  EXPECT_THAT(Split("\xD9\x83\xD9\x8A\xD9\x81\xD8\x9F ok", 2),
              ElementsAre("\xD9\x83\xD9\x8A\xD9\x81\xD8\x9F", "ok"));
}

// The sentence that ends in a link's text left half of the link to each side, and the address was read out.
TEST(ClauseSplitter, KeepsLinksWhole) {
  const std::string text =
      "Read [the page. It is good](http://x.y/a. b) today. See [1]. Or [not. Now";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EXPECT_THAT(Split(text, piece),
                ElementsAre("Read [the page. It is good](http://x.y/a. b) today.", "See [1].",
                            "Or [not.", "Now"));
  }
  EXPECT_EQ(Split(std::string(1 << 16, '['), 1000).front().size(), 200U);
}

TEST(ClauseSplitter, CutsManyShortClauses) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xE5\xA5\xBD\xE3\x80\x82\n";
  for (const size_t piece : {size_t{1}, size_t{100}, text.size()}) {
    const auto clauses = Split(text, piece);
    ASSERT_EQ(clauses.size(), 1000U);
    EXPECT_EQ(clauses.back(), "\xE5\xA5\xBD\xE3\x80\x82");
  }
}

TEST(ClauseSplitter, BoundsAClauseWithoutAnEnd) {
  const auto clauses = Split(std::string(5000, 'x'), 100);
  ASSERT_GT(clauses.size(), 10U);
  for (const std::string& clause : clauses) EXPECT_LE(clause.size(), 201U);
}

}  // namespace
}  // namespace portico::pipeline
