#include "router/proxy/body_fields.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

Status Check(std::string_view text) {
  simdjson::ondemand::parser parser;
  std::string body(text);
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  return CheckFields(parser, body, kPairFields);
}

TEST(BodyFieldsTest, FieldsGoInFrontAndTheRestStaysByteByByte) {
  EXPECT_EQ(InsertFields(R"( {"n": 1.0e0,"x":{}})", R"("a":1)"), R"( {"a":1,"n": 1.0e0,"x":{}})");
  EXPECT_EQ(InsertFields("{ }", R"("a":1)"), R"({"a":1 })");
  EXPECT_EQ(InsertFields("{}", R"("a":1)"), R"({"a":1})");
}

TEST(BodyFieldsTest, AClientCannotSetWhatTheGatewaySets) {
  EXPECT_TRUE(Check(R"({"prompt":"bootstrap_room","x":{"bootstrap_host":"nested"}})").ok());
  const Status named = Check(R"({"prompt":"x","bootstrap_host":"10.0.0.9"})");
  EXPECT_NE(MessageOf(named).find("bootstrap_host"), std::string_view::npos);
  EXPECT_FALSE(Check(R"({"bootstrap\u005froom":7})").ok()) << "an escaped name is the same name";
}

TEST(BodyFieldsTest, CountsTheAnswersThatARequestAsksFor) {
  const auto rooms = [](std::string_view text, bool ok = true) {
    simdjson::ondemand::parser parser;
    std::string body(text);
    body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
    int64_t count = 0;
    EXPECT_EQ(CheckFields(parser, body, kPairFields, &count).ok(), ok) << text;
    return count;
  };
  EXPECT_EQ(rooms(R"({"messages":[{"content":"x"},{"content":"y"}]})"), 1);
  EXPECT_EQ(rooms(R"({"n":3,"messages":[]})"), 3);
  EXPECT_EQ(rooms(R"({"prompt":["a","b"],"n":2,"best_of":4.0})"), 8);
  EXPECT_EQ(rooms(R"({"prompt":[5,6,7]})"), 1) << "the ids of one prompt";
  EXPECT_EQ(rooms(R"({"input_ids":[[5,6],[7]],"sampling_params":{"top_k":1,"n":2}})"), 4);
  EXPECT_EQ(rooms(R"({"text":["a","b"],"sampling_params":[{"n":2},{"n":5},{}]})"), 10);
  for (const char* odd : {R"({"n":null})", R"({"n":-4})", R"({"n":"9"})", R"({"text":[]})",
                          R"({"n":1e999})", R"({"sampling_params":7})", R"({"text":{"a":1}})"}) {
    EXPECT_EQ(rooms(odd), 1) << odd;
  }
  EXPECT_EQ(rooms(R"({"n":1e300,"text":["a","b"]})"), kMaxPairRooms);
  // What is looked into must not hide what stands behind it.
  for (const char* before :
       {R"("n":"x")", R"("n":1e999)", R"("text":[[1,[2]],"b"])", R"("text":[1,2])",
        R"("sampling_params":{"a":{"n":1},"n":[2]})", R"("sampling_params":[{"a":[{}]},3])"}) {
    rooms(std::string("{") + before + R"(,"bootstrap_room":1})", false);
  }
}

TEST(BodyFieldsTest, WhatCannotBeReadHidesNothingThatStandsBehindIt) {
  // Python's reader takes half of a surrogate pair in a name; here it ended the search, and the client
  // chose where the cache is fetched from.
  EXPECT_TRUE(Check(R"({"\ud800":1,"prompt":"\ud800"})").ok());
  EXPECT_FALSE(Check(R"({"\ud800":1,"bootstrap_host":"10.0.0.9"})").ok());
  for (const char* body : {R"({"a":1 "bootstrap_room":2})", R"({"a" 1,"bootstrap_room":2})",
                           R"({"a":1,,"bootstrap_room":2})", R"({"a":1,7:2})"}) {
    EXPECT_FALSE(Check(body).ok()) << body;
  }
}

TEST(BodyFieldsTest, OnlyAnObjectCanTakeFields) {
  for (const char* body : {"", "[]", "7", "nonsense", "[{}]"}) EXPECT_FALSE(Check(body).ok());
}

TEST(BodyFieldsTest, NamesThePrefillWorkerAndARoomOfItsRank) {
  WorkerSpec spec = *ParseWorkerUrl("http://[::1]:30000");
  EXPECT_EQ(PairFields(spec, 9),
            R"("bootstrap_host":"::1","bootstrap_port":null,"bootstrap_room":9)");
  spec.bootstrap_port = 8998;
  spec.dp_rank = 1;
  spec.dp_size = 4;
  EXPECT_EQ(PairFields(spec, 11),
            R"("bootstrap_host":"::1","bootstrap_port":8998,"bootstrap_room":9,)"
            R"("disagg_prefill_dp_rank":1)");
  EXPECT_EQ(RankField(spec), R"("data_parallel_rank":1)");
}

}  // namespace
}  // namespace portico::router
