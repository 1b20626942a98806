#include "message/choice_regex.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

TEST(RegexOfChoices, EscapesWhatARegexReadsOtherwise) {
  EXPECT_EQ(*RegexOfChoices(R"x(["yes", "a.b|c", "(\\)", "é\n"])x"),
            "(yes|a\\.b\\|c|\\(\\\\\\)|é\n)");
}

TEST(RegexOfChoices, RefusesWhatIsNoListOfTexts) {
  for (const char* const bad : {"", "[]", "[1]", "{}", "\"a\"", "[\"a\""}) {
    EXPECT_EQ(RegexOfChoices(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace portico
