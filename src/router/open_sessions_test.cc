#include "router/open_sessions.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

constexpr TimePoint kStart = TimePoint(std::chrono::hours(100));

TEST(OpenSessionsTest, TheFirstWorkerThatAnswersKeepsTheSession) {
  OpenSessions sessions;
  EXPECT_FALSE(sessions.any());
  EXPECT_EQ(sessions.WorkerOf("a"), std::nullopt);
  sessions.Bind("a", "http://a:1");
  sessions.Open("a", kStart);
  EXPECT_TRUE(sessions.any());
  EXPECT_EQ(sessions.WorkerOf("a"), "");
  sessions.Bind("a", "http://a:7@1");
  sessions.Bind("a", "http://a:8");
  EXPECT_EQ(sessions.WorkerOf("a"), "http://a:7@1");
  EXPECT_EQ(sessions.WorkerOf("b"), std::nullopt);
  sessions.Close("a");
  EXPECT_FALSE(sessions.any());
}

TEST(OpenSessionsTest, OneThatIsNotUsedIsForgotten) {
  OpenSessions sessions;
  sessions.Open("old", kStart);
  sessions.Open("used", kStart);
  const TimePoint later = kStart + OpenSessions::kIdle;
  // Only to ask for its worker is no use: requests that cannot be answered do not keep it.
  EXPECT_EQ(sessions.WorkerOf("old"), "");
  sessions.NoteUse("used", later);
  sessions.Tick(later + std::chrono::seconds(1));
  EXPECT_EQ(sessions.WorkerOf("old"), std::nullopt);
  EXPECT_EQ(sessions.WorkerOf("used"), "");
}

TEST(OpenSessionsTest, TheirNumberAndTheirIdsAreBounded) {
  OpenSessions sessions;
  sessions.Open(std::string(OpenSessions::kMaxId + 1, 'x'), kStart);
  sessions.Open("", kStart);
  EXPECT_FALSE(sessions.any());
  for (size_t i = 0; i < OpenSessions::kMaxSessions; ++i) sessions.Open(std::to_string(i), kStart);
  sessions.Open("more", kStart);
  EXPECT_EQ(sessions.WorkerOf("more"), std::nullopt);
  sessions.Open("more", kStart + OpenSessions::kIdle + std::chrono::minutes(2));
  EXPECT_EQ(sessions.WorkerOf("more"), "");
}

}  // namespace
}  // namespace portico::router
