#include "router/open_sessions.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

constexpr TimePoint kStart = TimePoint(std::chrono::hours(100));

TEST(OpenSessionsTest, TheFirstWorkerThatAnswersKeepsTheSession) {
  OpenSessions sessions;
  EXPECT_FALSE(sessions.any());
  EXPECT_EQ(sessions.WorkerOf("a", kStart), std::nullopt);
  sessions.Bind("a", 1);
  sessions.Open("a", kStart);
  EXPECT_TRUE(sessions.any());
  EXPECT_EQ(sessions.WorkerOf("a", kStart), 0u);
  sessions.Bind("a", 7);
  sessions.Bind("a", 8);
  EXPECT_EQ(sessions.WorkerOf("a", kStart), 7u);
  EXPECT_EQ(sessions.WorkerOf("b", kStart), std::nullopt);
  sessions.Close("a");
  EXPECT_FALSE(sessions.any());
}

TEST(OpenSessionsTest, OneThatIsNotUsedIsForgotten) {
  OpenSessions sessions;
  sessions.Open("old", kStart);
  sessions.Open("used", kStart);
  const TimePoint later = kStart + OpenSessions::kIdle;
  EXPECT_EQ(sessions.WorkerOf("used", later), 0u);
  sessions.Tick(later + std::chrono::seconds(1));
  EXPECT_EQ(sessions.WorkerOf("old", later), std::nullopt);
  EXPECT_EQ(sessions.WorkerOf("used", later), 0u);
}

TEST(OpenSessionsTest, TheirNumberAndTheirIdsAreBounded) {
  OpenSessions sessions;
  sessions.Open(std::string(OpenSessions::kMaxId + 1, 'x'), kStart);
  sessions.Open("", kStart);
  EXPECT_FALSE(sessions.any());
  for (size_t i = 0; i < OpenSessions::kMaxSessions; ++i) sessions.Open(std::to_string(i), kStart);
  sessions.Open("more", kStart);
  EXPECT_EQ(sessions.WorkerOf("more", kStart), std::nullopt);
  sessions.Open("more", kStart + OpenSessions::kIdle + std::chrono::minutes(2));
  EXPECT_EQ(sessions.WorkerOf("more", kStart), 0u);
}

}  // namespace
}  // namespace portico::router
