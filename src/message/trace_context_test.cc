#include "message/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace portico {
namespace {

constexpr std::string_view kHeader = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContextTest, ReadsAndWritesAHeader) {
  const auto trace = ParseTraceparent(kHeader);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace_high, 0x4bf92f3577b34da6u);
  EXPECT_EQ(trace->trace_low, 0xa3ce929d0e0e4736u);
  EXPECT_EQ(trace->parent, 0x00f067aa0ba902b7u);
  EXPECT_TRUE(trace->sampled());
  EXPECT_EQ(FormatTraceparent(*trace), kHeader);
}

TEST(TraceContextTest, IgnoresWhatTheStandardCallsInvalid) {
  const std::string good(kHeader);
  std::string upper = good;
  upper[3] = 'A';
  std::string dash = good;
  dash[35] = '_';
  std::string no_version = good;
  no_version.replace(0, 2, "ff");
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "-00", upper, dash, no_version,
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01" + std::string(),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01" + std::string()}) {
    EXPECT_FALSE(ParseTraceparent(bad)) << bad;
  }
}

TEST(TraceContextTest, ALaterVersionMayGoOn) {
  std::string later(kHeader);
  later.replace(0, 2, "01");
  EXPECT_TRUE(ParseTraceparent(later + "-more"));
  EXPECT_FALSE(ParseTraceparent(later + "more"));
}

}  // namespace
}  // namespace portico
