#include "router/proxy/sse_frames.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

TEST(SseFramesTest, PassesWholeEventsOnAtOnce) {
  SseFrames frames;
  EXPECT_EQ(frames.Take("data: 1\n\ndata: 2\n\n"), "data: 1\n\ndata: 2\n\n");
  EXPECT_EQ(frames.rest(), "");
}

TEST(SseFramesTest, HoldsAnEventBackUntilItsEndHasComeAtEveryCut) {
  for (const std::string& text :
       {std::string("data: a\n\ndata: b\n\n"), std::string("data: a\r\n\r\ndata: b\r\n\r\n"),
        std::string("data: a\r\rdata: b\r\r")}) {
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      SseFrames frames;
      std::string out(frames.Take(text.substr(0, cut)));
      EXPECT_TRUE(out.empty() || LastEventEnd(out) == out.size()) << cut;
      out += frames.Take(text.substr(cut));
      EXPECT_EQ(out, text) << cut;
    }
  }
}

TEST(SseFramesTest, ALongEventThatComesByteByByteIsLookedAtOnce) {
  // All of it was searched and copied again with each byte: the square of its length.
  SseFrames frames;
  const std::string event = "data: " + std::string(SseFrames::kMaxEvent - 100, 'x');
  for (const char c : event) ASSERT_EQ(frames.Take({&c, 1}), "");
  EXPECT_EQ(frames.Take("\n"), "");
  EXPECT_EQ(frames.Take("\ndata"), event + "\n\n");
  EXPECT_EQ(frames.rest(), "data");
}

TEST(SseFramesTest, SeesTheEndMark) {
  SseFrames frames;
  frames.Take("data: {\"x\":\"[DONE]\"}\n\n");
  EXPECT_FALSE(frames.done());
  frames.Take("data: [DO");
  EXPECT_FALSE(frames.done());
  frames.Take("NE]\n\n");
  EXPECT_TRUE(frames.done());
}

TEST(SseFramesTest, TellsAHalfEventFromOneWhoseEmptyLineIsMissing) {
  const auto half = [](std::string_view text) {
    SseFrames frames;
    frames.Take("data: 1\n\n");
    frames.Take(text);
    return frames.half();
  };
  for (const char* text :
       {"d", "data: {\"a", "data: 1\r\ndata: 2", "event: error\n", "id: 1\r", ": a comm"}) {
    EXPECT_TRUE(half(text)) << text;
  }
  for (const char* text : {"", "data: 2\n", "event: x\r\ndata: 2\r\n", "data: [DONE]",
                           "data: [DONE]\n", ": comment\n", "\n", "data: 2\n\n"}) {
    EXPECT_FALSE(half(text)) << text;
  }
}

TEST(SseFramesTest, DoesNotHoldAnEndlessEventBack) {
  SseFrames frames;
  size_t passed = 0;
  for (int i = 0; i < 64; ++i) passed += frames.Take(std::string(64 << 10, 'x')).size();
  EXPECT_GE(passed + SseFrames::kMaxEvent + (64 << 10), size_t{64} * (64 << 10));
}

TEST(SseFramesTest, KnowsThatAnEventIsOpenOfWhichAPartHasBeenPassedOn) {
  // It ended without its rest, which counted as an end between events: nothing was held back.
  SseFrames frames;
  EXPECT_FALSE(frames.within_event());
  frames.Take("data: " + std::string(SseFrames::kMaxEvent, 'x'));
  EXPECT_TRUE(frames.within_event());
  EXPECT_TRUE(frames.half());
  frames.Take("xx\n\ndata: 2\n\n");
  EXPECT_FALSE(frames.within_event());
  EXPECT_FALSE(frames.half());
}

}  // namespace
}  // namespace portico::router
