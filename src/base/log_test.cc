#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace portico {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(Log, KnowsTheLevelsOfSglang) {
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(*ParseLogLevel("WARNING"), LogLevel::kWarning);
  EXPECT_EQ(*ParseLogLevel("critical"), LogLevel::kCritical);
  EXPECT_EQ(*ParseLogLevel("warn"), LogLevel::kWarning);
  EXPECT_EQ(*ParseLogLevel("trace"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("loud").status().code(), StatusCode::kInvalidArgument);
}

TEST(Log, DropsMessagesBelowItsLevel) {
  InitLog(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  LogInfo("quiet");
  LogWarning("loud {}", 7);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::Not(HasSubstr("quiet")));
  EXPECT_THAT(text, EndsWith("warning loud 7\n"));
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  InitLog(LogLevel::kInfo);
}

TEST(Log, KeepsAMessageWithLineFeedsOnOneLine) {
  testing::internal::CaptureStderr();
  LogError("{}", "rid a\n[forged] {} line\x1b");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              EndsWith("error rid a\\x0a[forged] {} line\\x1b\n"));
}

TEST(Log, WritesControlCharactersOfTwoBytesAsTheirBytes) {
  // U+0085 ends a line, U+009B begins what a terminal obeys; other characters of these bytes stay.
  testing::internal::CaptureStderr();
  LogError("{}",
           "a\xc2\x85[forged]\xc2\x9b"
           "31m \xc2\xa0\xc3\x85\xe2\x82\xac\xc2");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              EndsWith("error a\\xc2\\x85[forged]\\xc2\\x9b"
                       "31m \xc2\xa0\xc3\x85\xe2\x82\xac\xc2\n"));
}

}  // namespace
}  // namespace portico
