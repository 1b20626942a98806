#include "api/gateway/united_answers.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::api {
namespace {

std::string United(std::string_view path, const std::vector<std::string_view>& answers) {
  std::string text;
  JsonWriter writer(&text);
  writer.BeginObject();
  WriteUnited(path, answers, &writer);
  writer.EndObject();
  return text;
}

TEST(UnitedAnswersTest, TheWorkersArePausedIfEachOfThemSaysSo) {
  EXPECT_EQ(United("/is_paused", {R"({"is_paused":true})", R"({"is_paused":true})"}),
            R"({"is_paused":true})");
  for (const char* other : {R"({"is_paused":false})", "{}", "[]", "", R"({"is_paused":1})"}) {
    EXPECT_EQ(United("/is_paused", {R"({"is_paused":true})", other}), R"({"is_paused":false})")
        << other;
  }
  EXPECT_EQ(United("/is_sleeping", {R"({"is_sleeping":true})"}), R"({"is_sleeping":true})");
}

TEST(UnitedAnswersTest, TheWorldIsAsLargeAsThoseOfAllWorkersTogether) {
  EXPECT_EQ(United("/get_world_size", {R"({"world_size":4})", R"({"world_size":8})"}),
            R"({"world_size":12})");
  for (const char* other : {"{}", "x", R"({"world_size":"4"})", R"({"world_size":-1})",
                            R"({"world_size":9223372036854775807})", R"({"world_size":0.5})"}) {
    EXPECT_EQ(United("/get_world_size", {R"({"world_size":4})", other}), R"({"world_size":null})")
        << other;
  }
}

TEST(UnitedAnswersTest, TheLoadIsThatOfAllServersTogether) {
  EXPECT_EQ(United("/load", {R"({"server_load":3})", R"({"server_load":0})"}),
            R"({"server_load":3})");
  EXPECT_EQ(United("/load", {R"({"server_load":3})", "{}"}), R"({"server_load":null})");
}

TEST(UnitedAnswersTest, TheResultsOfACallOfAllRanksAreThoseOfEachServerInOrder) {
  EXPECT_EQ(United("/collective_rpc", {R"({"results":[1,{"a":null}]})", R"({"results":[null]})"}),
            R"({"results":[1,{"a":null},null]})");
  // vLLM's answer to a call that returns nothing has no body.
  EXPECT_EQ(United("/collective_rpc", {R"({"results":[1]})", ""}), R"({"results":null})");
}

TEST(UnitedAnswersTest, TheVersionOfTheWeightsIsOneIfAllHaveIt) {
  EXPECT_EQ(
      United("/weight_info", {R"({"weight_version":"7"})", R"({"weight_version":"7","a":1})"}),
      R"({"weight_version":"7"})");
  EXPECT_EQ(United("/weight_info", {R"({"weight_version":"7"})", R"({"weight_version":"8"})"}),
            R"({"weight_version":null})");
  EXPECT_EQ(United("/weight_info", {R"({"weight_version":"7"})", "{}"}),
            R"({"weight_version":null})");
}

TEST(UnitedAnswersTest, WeightsMatchIfTheyMatchOnEachWorkerThatHasComparedThem) {
  EXPECT_EQ(United("/weight_checker", {R"({"match":true})", R"({"match":true})"}),
            R"({"match":true})");
  EXPECT_EQ(United("/weight_checker", {R"({"match":true})", R"({"match":false})"}),
            R"({"match":false})");
  EXPECT_EQ(United("/weight_checker", {R"({"checksums":{}})", R"({"status":"reset"})"}), "{}");
  EXPECT_EQ(United("/flush_cache", {R"({"match":true})"}), "{}");
}

std::string Flushed(int64_t done, int64_t all) {
  std::string text;
  JsonWriter writer(&text);
  writer.BeginObject();
  WriteFlushed(done, all, &writer);
  writer.EndObject();
  return text;
}

TEST(UnitedAnswersTest, AFlushHasTheFieldsOfOtherGateways) {
  EXPECT_EQ(
      Flushed(2, 2),
      R"({"status":"success","message":"Successfully flushed cache on all 2 workers","workers_flushed":2,"total_workers":2})");
  EXPECT_EQ(
      Flushed(1, 2),
      R"({"status":"partial_success","message":"Flushed cache on 1 of 2 workers","workers_flushed":1,"total_workers":2})");
  EXPECT_EQ(
      Flushed(0, 1),
      R"({"status":"error","message":"Flushed cache on 0 of 1 worker","workers_flushed":0,"total_workers":1})");
}

}  // namespace
}  // namespace portico::api
