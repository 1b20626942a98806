#include "engine/sglang/sessions.h"

#include <gtest/gtest.h>

namespace portico::sglang {
namespace {

constexpr TimePoint kStart{std::chrono::seconds(1000)};

TEST(Sessions, ARequestIsFoundByItsClientsName) {
  Sessions sessions;
  ASSERT_TRUE(sessions.Open("s", {}, kStart).ok());
  sessions.Note("s", "first", "wire-1");
  sessions.Note("s", "second", "wire-2");
  EXPECT_EQ(*sessions.WireRidOf("s", "first", kStart), "wire-1");
  EXPECT_EQ(*sessions.WireRidOf("s", "second", kStart), "wire-2");
  EXPECT_EQ(*sessions.WireRidOf("s", "", kStart), "");
  EXPECT_EQ(FieldOf(sessions.WireRidOf("s", "third", kStart).status()), "session_params");
  EXPECT_EQ(FieldOf(sessions.WireRidOf("t", "", kStart).status()), "session_params");
}

TEST(Sessions, ANameThatIsUsedAgainMeansItsLastRequest) {
  Sessions sessions;
  ASSERT_TRUE(sessions.Open("s", {}, kStart).ok());
  sessions.Note("s", "same", "wire-1");
  sessions.Note("s", "same", "wire-2");
  EXPECT_EQ(*sessions.WireRidOf("s", "same", kStart), "wire-2");
}

TEST(Sessions, OneIsOpenedOnceAndClosedOnce) {
  Sessions sessions;
  ASSERT_TRUE(sessions.Open("s", {}, kStart).ok());
  EXPECT_EQ(FieldOf(sessions.Open("s", {}, kStart)), "session_id");
  EXPECT_TRUE(sessions.Close("s").ok());
  EXPECT_EQ(sessions.Close("s").code(), StatusCode::kNotFound);
  EXPECT_TRUE(sessions.Open("s", {}, kStart).ok());
}

TEST(Sessions, OneThatHasTimedOutIsForgotten) {
  Sessions sessions;
  ASSERT_TRUE(sessions.Open("s", 10.0, kStart).ok());
  EXPECT_TRUE(sessions.WireRidOf("s", "", kStart + std::chrono::seconds(9)).ok());
  EXPECT_TRUE(sessions.WireRidOf("s", "", kStart + std::chrono::seconds(18)).ok());
  EXPECT_FALSE(sessions.WireRidOf("s", "", kStart + std::chrono::seconds(29)).ok());
  EXPECT_TRUE(sessions.Open("s", {}, kStart + std::chrono::seconds(29)).ok());
}

TEST(Sessions, BoundsHold) {
  Sessions sessions;
  for (size_t i = 0; i < Sessions::kMaxSessions; ++i) {
    ASSERT_TRUE(sessions.Open(std::to_string(i), {}, kStart).ok());
  }
  EXPECT_EQ(sessions.Open("more", {}, kStart).code(), StatusCode::kResourceExhausted);
  for (size_t i = 0; i <= Sessions::kMaxRequests; ++i) {
    sessions.Note("0", "r" + std::to_string(i), "wire");
  }
  EXPECT_FALSE(sessions.WireRidOf("0", "r0", kStart).ok());
  EXPECT_TRUE(sessions.WireRidOf("0", "r1", kStart).ok());
  sessions.Clear();
  EXPECT_TRUE(sessions.Open("more", {}, kStart).ok());
}

}  // namespace
}  // namespace portico::sglang
