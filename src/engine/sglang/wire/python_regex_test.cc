#include "engine/sglang/wire/python_regex.h"

#include <gtest/gtest.h>

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
  for (const char* pattern :
       {"(?:foo|bar)+", "(ab)*", "(a+b)?", "(?:\\d{3},)+", "a+b+", "(a|ab)c", "(?:a|b|\n)*"}) {
    EXPECT_TRUE(CheckPythonRegex(pattern, "stop_regex").ok()) << pattern;
  }
}

TEST(PythonRegex, DepthIsBounded) {
  EXPECT_TRUE(CheckPythonRegex(std::string(30, '(') + std::string(30, ')'), "x").ok());
  EXPECT_FALSE(CheckPythonRegex(std::string(10000, '('), "x").ok());
}

}  // namespace
}  // namespace portico::sglang
