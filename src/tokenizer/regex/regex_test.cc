// Patterns mean what they mean to Oniguruma 6.9.10, or, where said, to the regex crate.
#include "tokenizer/regex/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace portico::tokenizer {
namespace {

// The text with each match as "<match>".
std::string Marked(const std::string& pattern, const std::string& text,
                   Regex::Syntax syntax = Regex::Syntax::kOniguruma) {
  auto regex = Regex::Compile(pattern, syntax);
  if (!regex.ok()) return "refused: " + std::string(MessageOf(regex.status()));
  std::string out;
  const StatusOr<std::vector<Match>> matches = (*regex)->FindMatches(text);
  if (!matches.ok()) return "failed: " + std::string(MessageOf(matches.status()));
  for (const Match& match : *matches) {
    const std::string part = text.substr(match.begin, match.end - match.begin);
    out += match.is_match ? "<" + part + ">" : part;
  }
  return out;
}

TEST(RegexTest, AScriptIsItsOwnCharactersWithoutThoseThatItShares) {
  EXPECT_EQ(Marked(R"(\p{Hiragana}+)", "の、カー。の"), "<の>、カー。<の>");
  EXPECT_EQ(Marked(R"(\p{Katakana}+)", "の、カー。"), "の、<カ>ー。");
  EXPECT_EQ(Marked(R"(\p{Han}+)", "々中、〇"), "<々中>、<〇>");
  EXPECT_EQ(Marked(R"(\p{Cyrl}\P{Cyrillic})", "жa"), "<жa>");
  EXPECT_EQ(Marked(R"(\p{In_Hiragana}\p{^InHiragana})", "゛゠"), "<゛゠>");
}

TEST(RegexTest, PropertiesHaveLongAndShortNames) {
  EXPECT_EQ(Marked(R"(\p{Uppercase_Letter}\p{lowercase letter}\p{Nd}\p{Emoji})", "Éa٣😀"),
            "<Éa٣😀>");
  EXPECT_EQ(Marked(R"(\p{Punct}+|\p{Alnum}+)", "a+½-٣ⅷ"), "<a>+½<-><٣ⅷ>");
  EXPECT_THAT(Marked(R"(\p{Klingon})", "a"), testing::HasSubstr(R"(\p{Klingon})"));
}

TEST(RegexTest, PosixClassesAreOfUnicodeExceptInTheRegexCrate) {
  EXPECT_EQ(Marked("[[:alpha:]]+", "aéⅷ1"), "<aéⅷ>1");
  EXPECT_EQ(Marked("[[:punct:][:^print:]]+", "$+-a\x01"), "<$+->a<\x01>");
  EXPECT_EQ(Marked("[[:alpha:]]+", "aé", Regex::Syntax::kFancyRegex), "<a>é");
}

TEST(RegexTest, ClassesHoldOtherClassesAndIntersections) {
  EXPECT_EQ(Marked("[a-c[x-z]]+", "abyd"), "<aby>d");
  EXPECT_EQ(Marked("[^[a-c]x]+", "abydx"), "ab<yd>x");
  EXPECT_EQ(Marked(R"([\w&&[^\d]&&[^_]]+)", "a1_b"), "<a>1_<b>");
  EXPECT_EQ(Marked("[^a-z&&[^aeiou]]+", "abe5"), "<a>b<e5>");
  EXPECT_EQ(Marked("[a-z&&aeiou]", "ab"), "<a>b");
  EXPECT_EQ(Marked("[]a]+[^]]", "]ab"), "<]ab>");
}

TEST(RegexTest, TheRegexCrateHasDifferencesAndNamesOfProperties) {
  constexpr auto kFancy = Regex::Syntax::kFancyRegex;
  EXPECT_EQ(Marked(R"([\p{Lo}&&[^\p{Han}]]+)", "中कख中", kFancy), "中<कख>中");
  EXPECT_EQ(Marked("[a-z--[aeiou]--b]+", "abcd", kFancy), "ab<cd>");
  EXPECT_EQ(Marked("[a-c~~b-d]+", "abcd", kFancy), "<a>bc<d>");
  EXPECT_EQ(Marked("[--/]+", "a-./"), "a<-./>");
  EXPECT_EQ(Marked(R"(\p{Script=Greek}\p{gc=Nd}\p{General_Category=Lu})", "α1Z", kFancy), "<α1Z>");
  EXPECT_THAT(Marked(R"(\p{scx=Greek})", "a", kFancy), testing::StartsWith("refused"));
}

TEST(RegexTest, CaseIsIgnoredInBracketsButNotInProperties) {
  EXPECT_EQ(Marked(R"((?i:\p{Lu}))", "Aa"), "<A>a");
  EXPECT_EQ(Marked(R"((?i:[\p{Lu}]))", "Aa"), "<A><a>");
  EXPECT_EQ(Marked(R"((?i:[^k]))", "kKa"), "kK<a>");
  EXPECT_EQ(Marked(R"((?i:\p{Lu}))", "Aa", Regex::Syntax::kFancyRegex), "<A><a>");
}

TEST(RegexTest, CharactersThatAreSeveralWithoutCaseMatchThem) {
  EXPECT_EQ(Marked("(?i:[ßa])x", "SSx ẞx ssx sx ax"), "<SSx> <ẞx> <ssx> sx <ax>");
  EXPECT_EQ(Marked(R"((?i:ß|\x{fb01})x)", "ssx FIx"), "<ssx> <FIx>");
  EXPECT_EQ(Marked(R"((?i:[\p{L}])x)", "ffix ʼnx ἀιx"), "<ffix> <ʼnx> <ἀιx>");
  EXPECT_EQ(Marked(R"((?i:[^a]|\p{L}|\w|.)x)", "ssx"), "s<sx>");
  EXPECT_EQ(Marked("(?i:[ﬀﬃ])", "ffi"), "<ff>i");
  EXPECT_EQ(Marked("(?i:[ß])x", "ssx", Regex::Syntax::kFancyRegex), "ssx");
}

TEST(RegexTest, LettersNewerThanPcre2HaveCase) {
  for (auto syntax : {Regex::Syntax::kOniguruma, Regex::Syntax::kFancyRegex}) {
    EXPECT_EQ(Marked("(?i:ƛ)(?i:[Ɤa])(?i:[^\u1c89])", "\ua7dcɤ\u1c8a\ua7dcɤb", syntax),
              "\ua7dcɤ\u1c8a<\ua7dcɤb>");
    EXPECT_EQ(Marked("(?i:[\U00010d50-\U00010d52])+", "\U00010d71\U00010d50\U00010d73", syntax),
              "<\U00010d71\U00010d50>\U00010d73");
    EXPECT_EQ(Marked("(?i:ﬅ)", "ﬆ", syntax), "<ﬆ>");
  }
}

TEST(RegexTest, FlagsAloneHoldTheAlternativesBehindThem) {
  EXPECT_EQ(Marked("a(?i)b|c", "aBaCc"), "<aB><aC>c");
  EXPECT_EQ(Marked("(?:a(?i)b|c)d", "aCdaCD"), "<aCd>aCD");
  EXPECT_EQ(Marked("a(?i)b|c", "aBC", Regex::Syntax::kFancyRegex), "<aB><C>");
}

TEST(RegexTest, WhatIsRepeatedCanBeRepeated) {
  EXPECT_EQ(Marked("a{1,2}+b", "aaab"), "<aaab>");
  EXPECT_EQ(Marked("a{2}?", "aaa"), "<aa>a<>");
  EXPECT_EQ(Marked("a{2,3}?", "aaa"), "<aa>a");
  EXPECT_EQ(Marked("x{1,2}{3}", "xxxxxxx"), "<xxxxxx>x");
  EXPECT_EQ(Marked("a+*b", "aab"), "<aab>");
  EXPECT_EQ(Marked("a{,2}b{}", "aab{}"), "<aab{}>");
  EXPECT_EQ(Marked("a{2}??b", "aab"), "<aab>");
  EXPECT_EQ(Marked("a{2}+?b?", "aaaab"), "<aa><aab>");
  EXPECT_EQ(Marked("a{1}?+b", "aaab"), "aa<ab>");
  EXPECT_EQ(Marked("a{3,1}b?|b", "aaaab"), "<aaa><ab>");
  EXPECT_EQ(Marked("a{3,1}?.", "aaaa"), "<aaaa>");
  EXPECT_EQ(Marked("(a{2}){2}(b{2}{2}){2}", "aaaabbbbbbbb"), "<aaaabbbbbbbb>");
  std::string many = "a";
  for (int i = 0; i < 100'000; ++i) many += "{2}";
  EXPECT_THAT(Marked(many, "a"), testing::HasSubstr("too many quantifiers of one thing"));
}

// Of each two of these, around a letter: what (?:a<first>)<second>b? matches first in "aaab".
TEST(RegexTest, TwoQuantifiersAreReadAsOniguruma) {
  const std::vector<std::string> kinds = {"?", "*", "+", "??", "*?", "+?"};
  const std::vector<std::vector<size_t>> lengths = {{1, 4, 4, 0, 0, 1}, {4, 4, 4, 0, 0, 4},
                                                    {4, 4, 4, 0, 0, 4}, {0, 0, 0, 0, 0, 0},
                                                    {0, 0, 0, 0, 0, 0}, {1, 4, 4, 0, 0, 1}};
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (size_t j = 0; j < kinds.size(); ++j) {
      for (const char* group : {"(?:a", "(a", "((?<n>(a"}) {
        std::string pattern = group + kinds[i];
        pattern.append(static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '(')), ')');
        pattern += kinds[j] + "b?";
        auto regex = Regex::Compile(pattern);
        ASSERT_TRUE(regex.ok()) << pattern;
        const Match first = (*regex)->FindMatches("aaab")->front();
        EXPECT_TRUE(first.is_match) << pattern;
        EXPECT_EQ(first.end, lengths[i][j]) << pattern;
      }
    }
  }
}

TEST(RegexTest, NothingAndPlacesCannotBeRepeated) {
  for (const char* pattern : {"*a", "a|+", "(?:*b)", "a*(?:*b)", "(?i)*a", "{2}", "(?#x)*"}) {
    EXPECT_THAT(Marked(pattern, "a"), testing::HasSubstr("a quantifier of nothing")) << pattern;
  }
  for (const char* pattern :
       {"^*a", "$+", "(?=a)*", "(?<!b)?a", R"(\b+a)", R"(\A{2})", "(?:^)*a", "(?:a|(?:b|$))+"}) {
    EXPECT_THAT(Marked(pattern, "a"), testing::HasSubstr("a quantifier of a place")) << pattern;
  }
  EXPECT_EQ(Marked("(^)*(?:^b|a|b$)(?#x)+", "aa"), "<aa>");
}

TEST(RegexTest, LazyRepeatsInAtomicGroupsFindTheirMatches) {
  EXPECT_EQ(Marked("(?>.+?)[a-z]", "xéab"), "x<éa>b");
  EXPECT_EQ(Marked("(?:.+?){1}+[a-z]", "xéab", Regex::Syntax::kFancyRegex), "x<éa>b");
}

TEST(RegexTest, CharactersAreNamedByNumberToo) {
  EXPECT_EQ(Marked(R"(\x41\x{1F600}\u00e9\012[\101\cA\b])", "A😀é\nA"), "<A😀é\nA>");
  EXPECT_THAT(Marked(R"(\xE9)", "é"), testing::HasSubstr("a number that is no character"));
  EXPECT_EQ(Marked(R"(\xE9)", "é", Regex::Syntax::kFancyRegex), "<é>");
}

TEST(RegexTest, LineEndsAreOneAndNamesAndCommentsNothing) {
  EXPECT_EQ(Marked(R"(\R)", "\r\n\n\r"), "<\r\n><\n><\r>");
  EXPECT_EQ(Marked(R"((?<name>a)(?#why)(?'n'b)\O\N)", "ab\nc"), "<ab\nc>");
}

// As Oniguruma: `\w` alone has them, a class does not.
TEST(RegexTest, FractionsAreWordCharactersOnlyOutsideOfClasses) {
  EXPECT_EQ(Marked(R"(\w+|[^\w\s]+)", "½a"), "<½a>");
  EXPECT_EQ(Marked(R"(\w+|[^\w\s]+)", "!½"), "<!½>");
  EXPECT_EQ(Marked(R"([\w]+)", "½a"), "½<a>");
}

TEST(RegexTest, WhatCannotBeCarriedOverIsRefused) {
  for (const char* pattern : {R"((a)\1)",
                              R"(\G)",
                              R"(a\Kb)",
                              "(?~a)",
                              "[a",
                              "(a",
                              "a)",
                              "[]",
                              R"([\d-a])",
                              R"([a-\d])",
                              "[z-a]",
                              R"(\pL)",
                              R"(\x{110000})",
                              R"(\x{D800})",
                              R"(\)",
                              "[[:none:]]",
                              "(?<n",
                              "(?i",
                              "(?#",
                              R"(\p{)",
                              "*a"}) {
    EXPECT_THAT(Marked(pattern, "a"), testing::StartsWith("refused: the pattern")) << pattern;
  }
  EXPECT_THAT(Marked(std::string(1000, '['), "a"), testing::HasSubstr("too deeply"));
}

TEST(RegexTest, MoreClassesThanPcre2HoldsAreWrittenOnce) {
  std::string many = "(?:";
  for (int i = 0; i < 30; ++i) many += R"(\w[\p{L}x])";
  many += "){0}";
  EXPECT_EQ(Marked(many + R"((?i:[\p{Lu}]\p{Lu})[\p{Lu}])", "aBCabC"), "<aBC>abC");
  EXPECT_EQ(Marked(many + R"((?<=\p{L})\p{N}+|\b\w{2,}\b|[^\w\s])", "a12 bc!"), "<a12> <bc><!>");
  EXPECT_EQ(Marked(many + R"((?i:[^\p{L}k])+)", "1Ka"), "<1>Ka");
}

TEST(RegexTest, APatternOfTooManyClassesIsRefusedSoon) {
  std::string words, sets;
  for (int i = 0; i < 20000; ++i) words += R"(\w)";
  for (int i = 0; i < 1500; ++i)
    sets += "[\\w" + std::string("!\"#$%\'*").substr(i % 8, 1) + "\\x{" + "1F6" +
            std::to_string(10 + i % 90) + "}]";
  EXPECT_THAT(Marked(words, "a"), testing::HasSubstr("…' has classes of too many characters"));
  EXPECT_THAT(Marked(sets, "a"), testing::HasSubstr("too many characters"));
}

TEST(RegexTest, APatternThatTriesForeverGivesUp) {
  const std::string text = std::string(64, 'a') + ' ';
  EXPECT_THAT(Marked("(?:a|aa)+[bc]", text), testing::StartsWith("failed: a pattern"));
  EXPECT_EQ(Marked("(?:a|aa)+ ", text), "<" + text + ">");
  const std::string long_text(1'000'000, 'x');
  EXPECT_EQ(Marked("(?:[^ab] ?)+", long_text), "<" + long_text + ">");
}

}  // namespace
}  // namespace portico::tokenizer
