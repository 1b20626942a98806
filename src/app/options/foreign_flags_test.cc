#include "app/options/foreign_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/options/options_for_test.h"
#include "app/options/options_table.h"

namespace portico {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// docs/config.md shows the table; what it promises of a flag is what the command line says.
TEST(ForeignFlags, AreRefusedWithTheNoteOfTheTable) {
  for (const ForeignFlag& entry : ForeignFlags()) {
    for (const std::string_view name : SplitAtBars(entry.flags)) {
      const std::string flag(name);
      if (flag == "--" + std::string(entry.option)) {  // the values differ
        EXPECT_THAT(ErrorOf({flag.c_str()}), Not(HasSubstr("unknown flag"))) << flag;
        continue;
      }
      const std::string error = ErrorOf({flag.c_str(), "1"});
      EXPECT_THAT(error, StartsWith("unknown flag " + flag)) << flag;
      if (entry.option.empty()) {
        EXPECT_EQ(error, "unknown flag " + flag + ": " + std::string(entry.note));
      } else {
        EXPECT_THAT(error, HasSubstr("; did you mean --" + std::string(entry.option) + "?"));
        EXPECT_THAT(error, HasSubstr(entry.note));
      }
    }
  }
}

TEST(ForeignFlags, NameOptionsThatExist) {
  for (const ForeignFlag& entry : ForeignFlags()) {
    EXPECT_TRUE(entry.option.empty() || FindOption(entry.option) != nullptr) << entry.option;
    EXPECT_FALSE(entry.option.empty() && entry.note.empty()) << entry.flags;
    EXPECT_THAT(std::string(entry.note), Not(HasSubstr("|"))) << entry.flags;
  }
}

TEST(ForeignFlags, ThatAreCalledTheSameAreTaken) {
  constexpr std::string_view kBefore = "Called the same: ";
  std::string_view text;
  const std::string all = ForeignFlagsMarkdown();
  text = all;
  int lists = 0;
  for (size_t at = text.find(kBefore); at != text.npos; at = text.find(kBefore)) {
    text.remove_prefix(at + kBefore.size());
    std::string_view list = text.substr(0, text.find('.'));
    int flags = 0;
    for (size_t begin = list.find("`--"); begin != list.npos; begin = list.find("`--")) {
      list.remove_prefix(begin + 3);
      const std::string_view flag = list.substr(0, list.find('`'));
      EXPECT_NE(FindOption(flag), nullptr) << flag;
      ++flags;
    }
    EXPECT_GE(flags, 5);
    ++lists;
  }
  EXPECT_EQ(lists, 2);
}

}  // namespace
}  // namespace portico
