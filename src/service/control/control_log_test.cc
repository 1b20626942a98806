#include "service/control/control_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace portico {
namespace {

TEST(ControlLog, SaysWhatOperatorsHaveDone) {
  EXPECT_EQ(DoneText(PauseControl{PauseMode::kAbort}), "generation is paused (abort)");
  EXPECT_EQ(DoneText(PauseControl{PauseMode::kRetract}), "generation is paused (retract)");
  EXPECT_EQ(DoneText(PauseControl{PauseMode::kInPlace}), "generation is paused (in_place)");
  EXPECT_EQ(DoneText(ContinueControl{}), "generation continues");
  EXPECT_EQ(DoneText(FlushCacheControl{}), "the cached prefixes are dropped");
  LoadLoraControl load;
  load.name = "a";
  EXPECT_EQ(DoneText(load), "the adapter `a` is loaded");
  // Any client may open one.
  EXPECT_EQ(DoneText(OpenSessionControl()), "");
  EXPECT_EQ(DoneText(NativeCall{}), "");
}

TEST(ControlLog, HasALineOfWhatSucceedsAloneAndNotWithoutEnd) {
  const auto log = [](const Status& status, int times) {
    testing::internal::CaptureStderr();
    int answered = 0;
    for (int i = 0; i < times; ++i) {
      WithLine("m", ContinueControl{}, [&](const Status& got) {
        EXPECT_EQ(got, status);
        ++answered;
      })(status);
    }
    EXPECT_EQ(answered, times);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(log(Error(StatusCode::kFailedPrecondition, "busy"), 1), "");
  const std::string lines = log(OkStatus(), 1000);
  EXPECT_THAT(lines, testing::HasSubstr("info model `m`: generation continues"));
  EXPECT_LT(std::count(lines.begin(), lines.end(), '\n'), 1000);
}

}  // namespace
}  // namespace portico
