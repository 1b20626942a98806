#include "router/discovery/pod.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

constexpr std::string_view kPod =
    R"({"metadata":{"uid":"u","name":"a","namespace":"n","resourceVersion":"7","annotations":)"
    R"({"sglang.ai/bootstrap-port":"9000"}},"status":{"phase":"Running","podIP":"10.0.0.1",)"
    R"("conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"}]}})";

TEST(PodTest, ReadsAPageOfAList) {
  const auto page =
      ReadPodPage(R"({"metadata":{"resourceVersion":"12","continue":"next"},"items":[)" +
                  std::string(kPod) + "]}");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->version, "12");
  EXPECT_EQ(page->more, "next");
  ASSERT_EQ(page->pods.size(), 1u);
  EXPECT_EQ(page->pods[0].ip, "10.0.0.1");
  EXPECT_TRUE(page->pods[0].ready);
  EXPECT_FALSE(page->pods[0].leaving);
  EXPECT_EQ(page->pods[0].bootstrap_port, 9000);
}

TEST(PodTest, ReadsEventsOfAWatch) {
  const auto there = ReadPodEvent(R"({"type":"MODIFIED","object":)" + std::string(kPod) + "}");
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(there->kind, PodEvent::Kind::kThere);
  EXPECT_EQ(there->version, "7");
  const auto expired =
      ReadPodEvent(R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"old"}})");
  ASSERT_TRUE(expired.ok());
  EXPECT_EQ(expired->kind, PodEvent::Kind::kExpired);
  const auto mark = ReadPodEvent(
      R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}})");
  ASSERT_TRUE(mark.ok());
  EXPECT_EQ(mark->kind, PodEvent::Kind::kBookmark);
  EXPECT_EQ(mark->version, "9");
}

TEST(PodTest, APodThatIsNotRunningOrIsBeingDeletedIsNotReady) {
  const auto page = ReadPodPage(
      R"({"items":[{"metadata":{"uid":"1"},"status":{"phase":"Pending","conditions":)"
      R"([{"type":"Ready","status":"True"}]}},{"metadata":{"uid":"2","deletionTimestamp":"t"}}]})");
  ASSERT_TRUE(page.ok());
  EXPECT_FALSE(page->pods[0].ready);
  EXPECT_TRUE(page->pods[1].leaving);
}

TEST(PodTest, WhatIsNoAnswerOfAnApiServerIsRefused) {
  for (const char* body :
       {"", "[]", "{}", R"({"items":{}})", R"({"items":[1]})", R"({"items":[{"metadata":{}}]})"}) {
    EXPECT_FALSE(ReadPodPage(body).ok()) << body;
  }
  for (const char* line : {"", "{}", R"({"type":"ADDED"})", R"({"type":"X","object":{}})"}) {
    EXPECT_FALSE(ReadPodEvent(line).ok()) << line;
  }
}

}  // namespace
}  // namespace portico::router
