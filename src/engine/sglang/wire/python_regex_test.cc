#include "engine/sglang/wire/python_regex.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace portico::sglang {
namespace {

// A pattern that re refuses ended the whole engine.
TEST(PythonRegex, WhatReTakesIsTaken) {
  for (const char* pattern : {"",       "a",       "a|b",           "|",     "a+b*c?", "[a-z]",
                              "[^]]",   "[]a]",    "[a-]",          "[-a]",  "(a(b))", "(?:a|b)+",
                              "a(?=b)", "a(?!b)",  "\\d{3}",        "a{2,}", "a{,3}",  "a{2,3}?",
                              "x*?",    "^a$",     "\\bfoo\\b",     "\\.",   "\\[",    "[\\]\\-]",
                              "\\x41",  "\\u00e9", "[\\x41-\\x5a]", "é+",    "[à-ü]",  "終わり",
                              "\\n",    "()",      "(|a)?",         "a}",    "]",      "[a\\d]",
                              "\\{x"}) {
    EXPECT_TRUE(CheckPythonRegex(pattern, "stop_regex").ok()) << pattern;
  }
}

TEST(PythonRegex, WhatReRefusesIsRefused) {
  for (const char* pattern : {"(",       ")",        "a)",
                              "(a",      "[a",       "[",
                              "[]",      "[^]",      "*",
                              "+a",      "a**",      "a+*",
                              "a{2}{3}", "a|*",      "^*",
                              "$+",      "\\b*",     "[z-a]",
                              "[\\d-z]", "[a-\\d]",  "\\",
                              "[\\",     "\\x4",     "\\u12",
                              "\\q",     "\\1",      "a{3,2}",
                              "(?P<x",   "(?<=a*)b", "(?",
                              "(?i",     "[\\B]",    "a{5000000000}",
                              "(*a)",    "\\N"}) {
    const Status status = CheckPythonRegex(pattern, "stop_regex");
    EXPECT_EQ(FieldOf(status), "stop_regex") << pattern;
  }
}

// One request with such a pattern held up the scheduler, and so all others: 25 letters took seconds.
TEST(PythonRegex, ARepeatOfWhatMatchesInSeveralWaysIsRefused) {
  for (const char* pattern :
       {"(a+)+$", "(a|a)*$", "(a|aa)+$", "((((a*)*)*)*)*b", "(?:a?b?)*c", "(.|x)+y", "(|a)*",
        "(a|)+", "(a{1,2}){2,}", "((a|ab)c){3}", "(a{0}b|b)*c", "(?:\\x41|A)*"}) {
    EXPECT_EQ(FieldOf(CheckPythonRegex(pattern, "stop_regex")), "stop_regex") << pattern;
  }
  for (const char* pattern : {"(?:foo|bar)+", "(ab)*", "(a+b)?", "(?:\\d{3},)+", "a+b+", "(a|ab)c",
                              "(?:a|b|\n)*", "(?:\\d{3})+"}) {
    EXPECT_TRUE(CheckPythonRegex(pattern, "stop_regex").ok()) << pattern;
  }
}

// Line ends were refused, as if a text of them matched in several ways.
TEST(PythonRegex, ARepeatWhoseNextCharacterAlwaysTellsHowItGoesOnIsTaken) {
  for (const char* pattern :
       {"(\\r?\\n)+", "(?:\\w+\\s)+", "(?:[^,]*,)+", "(?:a+b?c*;)*", "(?:#|\\n)+", "(a|bc?)+",
        "(?:[a-f]|[g-z]\\d*-)*", "(?:(?:ab?)+;)+", "(?:\\x0d?\\x0a){2,}", "(?:\\S+\\s+)*end"}) {
    const Status status = CheckPythonRegex(pattern, "stop_regex");
    EXPECT_TRUE(status.ok()) << pattern << ": " << status;
  }
  for (const char* pattern :
       {"(\\r?\\s)+", "(?:\\w+\\d)+x", "(?:[^,]*,?)+", "(?:ab?b)*", "(?:\\w|\\d-)+", "(?:é|à)+",
        "(?:a+(?=b)|a)*", "(?:.\\n?\\s)*", "(?:[\\d-]-?)+", "(?:(?!x).?)*y"}) {
    EXPECT_FALSE(CheckPythonRegex(pattern, "stop_regex").ok()) << pattern;
  }
}

// Searches with these take the fourth and higher powers of the text's length, or of 2.
TEST(PythonRegex, RepeatsThatShareTextAreCounted) {
  for (const char* pattern : {"a*b", "a*a*b", "foo.*bar.*baz", "\\d+\\.?\\d*", "\\s*\\n\\s*",
                              "a*ba*ca*d", "\\w+ \\w+ \\w+ \\w+", "a?b?c?d?e?f?g?h?i?j?k?l?",
                              "a?a?a?aaa", "(?:ab|ac)(?:ab|ac)", "(?=.*x).*y", "a{1,30}a{1,30}b"}) {
    const Status status = CheckPythonRegex(pattern, "stop_regex");
    EXPECT_TRUE(status.ok()) << pattern << ": " << status;
  }
  std::string options, choices;
  for (int i = 0; i < 30; ++i) options += "a?";
  for (int i = 0; i < 30; ++i) choices += "(?:a|a)";
  for (const std::string& pattern :
       {std::string("a*a*a*b"), std::string(".*foo.*bar.*baz"),
        std::string("\\d+\\.?\\d*\\s*\\d*x"), std::string("(?:a*)(?:a+)a{5,}b"),
        std::string("(?=.*x)(?=.*y).*z"), std::string("a{1,500}a{1,500}a{1,500}b"),
        options + std::string(30, 'a'), choices + "b"}) {
    EXPECT_EQ(FieldOf(CheckPythonRegex(pattern, "stop_regex")), "stop_regex") << pattern;
  }
}

// Each of the two bounds held, and a search in 400 characters took half a minute.
TEST(PythonRegex, TheMoreRepeatsShareTextTheFewerWaysThereMayBe) {
  const auto times = [](int count, std::string_view piece) {
    std::string all;
    for (int i = 0; i < count; ++i) all += piece;
    return all;
  };
  const std::vector<std::string> refused = {
      times(10, "(?:a|a)") + "a*a*b",    times(10, "a?") + "a*a*b",
      times(4, "a?") + "a*a*b",          "a{0,8}a*a*b",
      times(7, "(?:a|a)") + "a*b",       "a{1,9}a{1,9}a*b",
      "(?=a*b)" + times(4, "a?") + "a*b"};
  for (const std::string& pattern : refused) {
    EXPECT_EQ(FieldOf(CheckPythonRegex(pattern, "stop_regex")), "stop_regex") << pattern;
  }
  const std::vector<std::string> accepted = {times(10, "(?:a|a)") + "b",
                                             times(6, "(?:a|a)") + "a*b",
                                             "a{1,8}a{1,8}a*b",
                                             times(3, "a?") + "a*a*b",
                                             "a{1,8}a*a*b",
                                             "https?://\\S+\\.(?:com|org)",
                                             "\\n\\s*(?:Human|User)\\s*:"};
  for (const std::string& pattern : accepted) {
    const Status status = CheckPythonRegex(pattern, "stop_regex");
    EXPECT_TRUE(status.ok()) << pattern << ": " << status;
  }
}

TEST(PythonRegex, DepthIsBounded) {
  EXPECT_TRUE(CheckPythonRegex(std::string(30, '(') + std::string(30, ')'), "x").ok());
  EXPECT_FALSE(CheckPythonRegex(std::string(10000, '('), "x").ok());
}

}  // namespace
}  // namespace portico::sglang
