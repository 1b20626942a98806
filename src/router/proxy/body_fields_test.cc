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
