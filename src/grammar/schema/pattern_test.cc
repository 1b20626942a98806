#include "grammar/schema/pattern.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "grammar/expanded_for_test.h"
#include "grammar/grammar_for_test.h"

namespace portico::grammar {
namespace {

// "yes", "no", or why the regex is refused.
std::string RegexTakes(std::string_view regex, std::string_view text) {
  const auto compiled = CompiledForTest({GrammarKind::kRegex, std::string(regex)});
  if (!compiled.ok()) return std::string(compiled.status().message());
  return Takes(*compiled, text) ? "yes" : "no";
}

TEST(Regex, MatchesTheWholeText) {
  for (const auto& [regex, good, bad] :
       {std::tuple("a|bc", "bc", "abc"), std::tuple("^a+$", "aa", "ba"),
        std::tuple("^x$|^y$", "y", "xy"), std::tuple("(?:ab){2,3}?", "ababab", "ab"),
        std::tuple("(?<n>\\d)\\.\\/", "7./", "7x/"), std::tuple("[^a-c]", "d", "b"),
        std::tuple("\\u00e9\\x41\\t", "éA\t", "eA\t"), std::tuple("\"[\\\\]\"", "\"\\\"", "\"a\""),
        std::tuple("", "", "a"), std::tuple("a.c", "a c", "a\nc"),
        std::tuple("a[^b]c", "a\nc", "abc"), std::tuple("a{2}", "aa", "a{2}"),
        std::tuple("\\x00{0,20}a", "a", "aa")}) {
    EXPECT_EQ(RegexTakes(regex, good), "yes") << regex;
    EXPECT_EQ(RegexTakes(regex, bad), "no") << regex;
  }
}

// xgrammar's reader skips these with a warning, so that the answer does not match.
TEST(Regex, RefusesAnchorsAndEscapesThatItCannotKeep) {
  for (const char* const regex :
       {"a^b",   "a$b",    "(^a)|b",   "\\Aa", "a\\z",  "\\ba",        "(?=a)b",       "(a)\\1",
        "(?i)a", "\\p{L}", "[a",       "(a",   "a)",    "*a",          "a**",          "a{3,2}",
        "[b-a]", "\\",     "a{99999}", "[]",   "a{,2}", "[[:alpha:]]", "(a{100}){300}"}) {
    const std::string refused = RegexTakes(regex, "a");
    EXPECT_NE(refused, "yes") << regex;
    EXPECT_NE(refused, "no") << regex;
  }
}

std::string RepeatedText(int count, std::string_view text) {
  std::string made;
  for (int i = 0; i < count; ++i) made += text;
  return made;
}

// The core repeats automata up to sixteen times as states, and others by a count.
TEST(Regex, GroupsComeAsOftenAsTheirCountsSay) {
  for (const auto& [regex, part, least, most] :
       {std::tuple("([a-z]{1,3} ){20}", "ab ", 20, 20), std::tuple("(ab|c){17,19}", "c", 17, 19),
        std::tuple("(é[0-9]?){200}", "é", 200, 200), std::tuple("(?:[^x]y){0,130}", "ay", 0, 130),
        std::tuple("((a|b)c){16}", "bc", 16, 16), std::tuple("(a?b){15,40}", "b", 15, 40),
        std::tuple("(a|bb){3}", "bb", 3, 3), std::tuple("(a[0-9]{1,90}){1,200}", "a12", 1, 200)}) {
    EXPECT_EQ(RegexTakes(regex, RepeatedText(least, part)), "yes") << regex;
    EXPECT_EQ(RegexTakes(regex, RepeatedText(most, part)), "yes") << regex;
    EXPECT_EQ(RegexTakes(regex, RepeatedText((least + most) / 2, part)), "yes") << regex;
    if (least > 0) {
      EXPECT_EQ(RegexTakes(regex, RepeatedText(least - 1, part)), "no") << regex;
    }
    EXPECT_EQ(RegexTakes(regex, RepeatedText(most + 1, part)), "no") << regex;
    const std::string schema = R"({"type":"string","pattern":"^)" + std::string(regex) + "$\"}";
    EXPECT_EQ(SchemaTakes(schema, '"' + RepeatedText(most, part) + '"'), "yes") << regex;
    EXPECT_EQ(SchemaTakes(schema, '"' + RepeatedText(most + 1, part) + '"'), "no") << regex;
  }
  for (const auto& [regex, good, bad] :
       {std::tuple("(a?){20}", "aaa", "aaaaaaaaaaaaaaaaaaaaa"),
        std::tuple("(a|b)*c", "abbac", "ac "), std::tuple("((a|bc)+d){2,}", "abcdad", "abcd"),
        std::tuple("(()|a){3}", "aa", "aaaa"), std::tuple("((a*b)?){2}", "bab", "ba"),
        std::tuple("((ab*)?c)+", "abbccac", "bc"), std::tuple("(a|bc*){2,}", "abcc", "bcaac"),
        std::tuple("((bc*|a){2,}d)+", "aadbcad", "aacd"), std::tuple("(\\\\|\")+", "\"\\", "\\n"),
        std::tuple("([é-ü]|[a-é]|😀)+", "zéü😀", "z "),
        std::tuple("([\\x00-\\uffff]a)*", "éaza", "éaz")}) {
    EXPECT_EQ(RegexTakes(regex, good), "yes") << regex;
    EXPECT_EQ(RegexTakes(regex, bad), "no") << regex;
  }
}

// A regular expression, what it matches, and texts of that.
struct Sampled {
  std::string regex;
  Expanded::Part same;
  std::vector<std::string> texts;
};

Sampled RepeatedRegex(const Sampled& part, std::mt19937* draw) {
  const auto [quantifier, least, most] =
      std::vector<std::tuple<const char*, int, int>>{{"*", 0, -1},    {"+", 1, -1},
                                                     {"?", 0, 1},     {"{2}", 2, 2},
                                                     {"{0,3}", 0, 3}, {"{2,}", 2, -1}}[(*draw)() %
                                                                                       6];
  Sampled made{"(" + part.regex + ")" + quantifier, Times(part.same, least, most), {}};
  for (int times = least; times <= (most < 0 ? 3 : most); ++times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part.texts[(*draw)() % part.texts.size()];
    made.texts.push_back(std::move(text));
  }
  return made;
}

Sampled DrawnRegex(int depth, std::mt19937* draw) {
  if (depth == 0) {
    return std::vector<Sampled>{{"a", Literal("a"), {"a"}},
                                {"[ab]", Bytes({{'a', 'b'}}), {"a", "b"}},
                                {"ba", Literal("ba"), {"ba"}},
                                {" ", Literal(" "), {" "}}}[(*draw)() % 4];
  }
  const Sampled first = DrawnRegex(depth - 1, draw);
  const Sampled second = DrawnRegex(depth - 1, draw);
  switch ((*draw)() % 3) {
    case 0: {
      Sampled made{"(" + first.regex + "|" + second.regex + ")", OneOf({first.same, second.same}),
                   first.texts};
      made.texts.insert(made.texts.end(), second.texts.begin(), second.texts.end());
      return made;
    }
    case 1: {
      Sampled made{first.regex + second.regex, AllOf({first.same, second.same}), {}};
      for (const std::string& one : first.texts) {
        made.texts.push_back(one + second.texts[(*draw)() % second.texts.size()]);
      }
      return made;
    }
    default:
      return RepeatedRegex(first, draw);
  }
}

TEST(Regex, DrawnGroupsMatchAsTheirExpandedAutomataDo) {
  std::mt19937 draw(5);
  for (int round = 0; round < 150; ++round) {
    const Sampled sampled = RepeatedRegex(DrawnRegex(3, &draw), &draw);
    Expanded same(sampled.same);
    const auto compiled = CompiledForTest({GrammarKind::kRegex, sampled.regex});
    ASSERT_TRUE(compiled.ok()) << sampled.regex << compiled.status();
    for (std::string text : sampled.texts) {
      EXPECT_TRUE(Takes(*compiled, text)) << sampled.regex << " of " << text;
      for (int i = 0; i < 4; ++i) {
        const size_t at = draw() % (text.size() + 1);
        if (draw() % 2 == 0 || at == text.size()) {
          text.insert(at, 1, "ab "[draw() % 3]);
        } else {
          text.erase(at, 1);
        }
        EXPECT_EQ(Takes(*compiled, text), same.IsEnd(same.Behind(same.start(), text)))
            << sampled.regex << " of " << text;
      }
    }
  }
}

}  // namespace
}  // namespace portico::grammar
