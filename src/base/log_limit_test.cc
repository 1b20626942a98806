#include "base/log_limit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace portico {
namespace {

using std::chrono::seconds;

TEST(LogLimit, LeavesOutLinesBeyondItsBoundAndSaysHowMany) {
  LogLimit limit(2, seconds(10));
  const TimePoint start = TimePoint() + seconds(100);
  EXPECT_EQ(limit.Take(start), 0u);
  EXPECT_EQ(limit.Take(start + seconds(1)), 0u);
  EXPECT_EQ(limit.Take(start + seconds(2)), std::nullopt);
  EXPECT_EQ(limit.Take(start + seconds(9)), std::nullopt);
  EXPECT_EQ(limit.Take(start + seconds(10)), 2u);
  EXPECT_EQ(limit.Take(start + seconds(11)), 0u);
  EXPECT_EQ(limit.Take(start + seconds(12)), std::nullopt);
}

TEST(LogLimit, TheEndOfALineSaysWhatIsMissing) {
  EXPECT_EQ(AndOthers(0), "");
  EXPECT_EQ(AndOthers(3), " (3 like it before are not shown)");
}

}  // namespace
}  // namespace portico
