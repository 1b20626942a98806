#include "text/json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "text/json_writer.h"

namespace portico {
namespace {

TEST(Json, KeepsTheOrderOfMembersAndTheLastOfDoubledKeys) {
  auto json = Json::Parse(R"({"b":1,"a":2,"b":{"x":[1.5,null,true,"é"]}})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->Dump(), R"({"b":{"x":[1.5,null,true,"é"]},"a":2})");
}

TEST(Json, KeepsIntegersBeyond64Bits) {
  // Many a tokenizer_config.json says "no limit" with this number.
  const std::string text =
      R"({"model_max_length":1000000000000000019884624838656,"s":"1\"2 99999999999999999999",)"
      R"("l":[-99999999999999999999,18446744073709551615,0.5,9223372036854775807,-9223372036854775809]})";
  auto json = Json::Parse(text);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->GetDouble("model_max_length", 0), 1e30);
  EXPECT_EQ(json->Dump(), text);
  EXPECT_EQ(*json, *Json::Parse(json->Dump()));
  const JsonArray& list = json->Find("l")->as_array();
  EXPECT_TRUE(list[0].is_big_int());
  EXPECT_FALSE(list[0].is_int());
  EXPECT_EQ(list[0].as_double(), -1e20);
  EXPECT_TRUE(list[1].is_big_int());
  EXPECT_EQ(list[3].as_int(), INT64_MAX);
}

TEST(Json, GivesTheDigitsOfABigInteger) {
  const Json json = *Json::Parse("-36893488147419103236");  // -(2^65 + 4)
  const BigInteger& value = json.as_big_int().value();
  EXPECT_TRUE(value.negative);
  ASSERT_EQ(value.size, 3u);
  EXPECT_EQ(value.digits[0], 4u);
  EXPECT_EQ(value.digits[1], 0u);
  EXPECT_EQ(value.digits[2], 2u);
}

TEST(Json, RefusesIntegersThatAreTooLongOrMalformed) {
  EXPECT_TRUE(Json::Parse(std::string(JsonBigInteger::kMaxDigits, '7')).ok());
  EXPECT_FALSE(Json::Parse(std::string(JsonBigInteger::kMaxDigits + 1, '7')).ok());
  for (const char* text :
       {"012345678901234567890123", "--12345678901234567890123", "[12345678901234567890123-1]",
        "12345678901234567890123.", "+12345678901234567890123"}) {
    EXPECT_FALSE(Json::Parse(text).ok()) << text;
  }
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
  const auto refused = Json::Parse(deep + std::string(100000, ']'));
  EXPECT_EQ(MessageOf(refused.status()),
            "the JSON text is nested too deeply (more than 128 levels)");
  EXPECT_TRUE(Json::Parse(std::string(100, '[') + std::string(100, ']')).ok());
}

TEST(JsonWriter, EscapesControlsAndReplacesInvalidBytes) {
  std::string out;
  AppendJsonString("a\"\\\n\x01é\xff", &out);
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u0001é\xEF\xBF\xBD\"");
}

// Eight bytes are looked at in one step, and what is left in another.
TEST(JsonWriter, FindsWhatNeedsAnEscapeAtEveryPlaceOfTextsOfEveryLength) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\"", "\\\""},
      {"\\", "\\\\"},
      {std::string_view("\0", 1), "\\u0000"},
      {"\x1f", "\\u001f"},
      {"\x80", "\xEF\xBF\xBD"},
      {"é", "é"},
      {" ", " "},
      {"!", "!"},
      {"#", "#"},
      {"[", "["},
      {"]", "]"},
      {"\x7f", "\x7f"}};
  for (size_t size = 1; size <= 18; ++size) {
    for (size_t at = 0; at < size; ++at) {
      for (const auto& [sent, written] : cases) {
        const std::string before(at, 'a');
        const std::string behind(size - at - 1, '~');
        std::string out;
        AppendJsonEscaped(before + std::string(sent) + behind, &out);
        EXPECT_EQ(out, before + std::string(written) + behind);
      }
    }
  }
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
