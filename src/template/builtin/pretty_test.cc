#include <gtest/gtest.h>

#include <string>

#include "template/render_for_test.h"

namespace portico {
namespace {

std::string Pretty(const std::string& expression) { return Printed("(" + expression + ")|pprint"); }

TEST(PrettyTest, DictsComeSortedByKeyAndTypesWithoutAnOrderByName) {
  EXPECT_EQ(Pretty("{'b': 1, 'a': {'d': 2, 'c': 3}}"), "{'a': {'c': 3, 'd': 2}, 'b': 1}");
  EXPECT_EQ(Pretty("{1: 2, 'a': 3, none: 4, 2.5: 1, (1, 2): 5}"),
            "{None: 4, 1: 2, 2.5: 1, 'a': 3, (1, 2): 5}");
}

TEST(PrettyTest, WhatIsLongerThanALineGetsALineForEachItem) {
  EXPECT_EQ(Pretty("[1, 'x' * 75, (2,)]"), "[1,\n '" + std::string(75, 'x') + "',\n (2,)]");
  EXPECT_EQ(Pretty("('x' * 90,)"), "('" + std::string(90, 'x') + "',)");
  EXPECT_EQ(Pretty("{'key': ['y' * 40, 'z' * 40], 'a': none}"),
            "{'a': None,\n 'key': ['" + std::string(40, 'y') + "',\n         '" +
                std::string(40, 'z') + "']}");
}

TEST(PrettyTest, WidthsAreCountedInCharacters) {
  EXPECT_EQ(Pretty("['é' * 36, 'ü' * 36]").find('\n'), std::string::npos);
  EXPECT_NE(Pretty("['é' * 37, 'ü' * 37]").find('\n'), std::string::npos);
}

TEST(PrettyTest, LongStringsAreBrokenAtLinesAndWords) {
  EXPECT_EQ(Pretty("'abc ' * 25"), "('" +
                                       std::string("abc abc abc abc abc abc abc abc abc abc "
                                                   "abc abc abc abc abc abc abc abc abc ") +
                                       "'\n 'abc abc abc abc abc abc ')");
  std::string lines = "['one\\n'\n";
  for (int i = 0; i < 9; ++i) lines += " 'two one\\n'\n";
  EXPECT_EQ(Pretty("['one\\ntwo ' * 10]"), lines + " 'two ']");
}

}  // namespace
}  // namespace portico
