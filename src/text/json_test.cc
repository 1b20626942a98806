#include "text/json.h"

#include <gtest/gtest.h>

#include "text/json_writer.h"

namespace portico {
namespace {

TEST(Json, KeepsTheOrderOfMembersAndTheLastOfDoubledKeys) {
  auto json = Json::Parse(R"({"b":1,"a":2,"b":{"x":[1.5,null,true,"é"]}})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->Dump(), R"({"b":{"x":[1.5,null,true,"é"]},"a":2})");
}

TEST(Json, IntegersBeyond64BitsBecomeDoubles) {
  // Many a tokenizer_config.json says "no limit" with this number.
  auto json = Json::Parse(R"({"model_max_length": 1000000000000000019884624838656, "s": "1\"2",
      "l": [-99999999999999999999, 18446744073709551615, 12345678901234567890.5]})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->GetDouble("model_max_length", 0), 1e30);
  EXPECT_EQ(json->Find("l")->as_array()[0].as_double(), -1e20);
  EXPECT_EQ(json->GetString("s"), "1\"2");
}

TEST(Json, RefusesWhatIsNotStrictJson) {
  for (const char* text :
       {"", "{", "NaN", "1e400", "[1,]", "{\"a\":1} x", "\"\xff\"", "'a'", "\"\\ud800\""}) {
    EXPECT_FALSE(Json::Parse(text).ok()) << text;
  }
}

TEST(Json, RefusesDeepNestingWithoutACrash) {
  std::string deep(100000, '[');
  EXPECT_FALSE(Json::Parse(deep).ok());
  EXPECT_FALSE(Json::Parse(deep + std::string(100000, ']')).ok());
  EXPECT_TRUE(Json::Parse(std::string(100, '[') + std::string(100, ']')).ok());
}

TEST(JsonWriter, EscapesControlsAndReplacesInvalidBytes) {
  std::string out;
  AppendJsonString("a\"\\\n\x01é\xff", &out);
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u0001é\xEF\xBF\xBD\"");
}

TEST(JsonWriter, PutsCommasBetweenMembersOnly) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject().Key("a").BeginArray().Int(1).Int(2).EndArray().Key("b").Double(2).Key("c");
  w.BeginObject().EndObject().EndObject();
  EXPECT_EQ(out, R"({"a":[1,2],"b":2.0,"c":{}})");
}

}  // namespace
}  // namespace portico
