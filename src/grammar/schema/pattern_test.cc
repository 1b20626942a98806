#include "grammar/schema/pattern.h"

#include <gtest/gtest.h>

#include <string>

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
        std::tuple("a[^b]c", "a\nc", "abc"), std::tuple("a{2}", "aa", "a{2}")}) {
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

}  // namespace
}  // namespace portico::grammar
