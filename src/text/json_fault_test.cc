#include "text/json_fault.h"

#include <gtest/gtest.h>

#include <string>

#include "text/json.h"

namespace portico {
namespace {

TEST(JsonFaultTest, TheFirstWrongByteIsFound) {
  const std::pair<const char*, size_t> cases[] = {
      {"", 0},           {"{\"a\": }", 6},     {"{\"a\": [1, ]}", 10},
      {"[1 2]", 3},      {"{\"a\" 1}", 5},     {"{a: 1}", 1},
      {"[1, 2", 5},      {"[true, flase]", 8}, {"[01]", 2},
      {"[1.]", 3},       {"[\"\\x\"]", 3},     {"[\"\\u12g4\"]", 6},
      {"[\"a\nb\"]", 3}, {"{}}", 2},           {"[1,]", 3},
      {"{\"a\":1,}", 7}, {"nul", 3},           {"[1e+]", 4},
      {"{\"a\":1]", 6}};
  for (const auto& [text, offset] : cases) {
    EXPECT_EQ(JsonFaultOffset(text), offset) << text;
    EXPECT_FALSE(Json::Parse(text).ok()) << text;
  }
}

TEST(JsonFaultTest, ValidTextsHaveNone) {
  for (const char* text :
       {"0", " [ ] ", "{}", "{\"a\":[{\"b\":null},-0.5e-7,\"\\u00e9\\n\"],\"c\":false}"}) {
    EXPECT_EQ(JsonFaultOffset(text), std::string::npos) << text;
    EXPECT_EQ(TextPlace(text, JsonFaultOffset(text)), "");
  }
  EXPECT_EQ(JsonFaultOffset(std::string(1 << 20, '[')), size_t{1} << 20);
}

TEST(JsonFaultTest, APlaceCountsLinesAndCharacters) {
  EXPECT_EQ(TextPlace("abc", 0), "line 1, column 1");
  EXPECT_EQ(TextPlace("a\nb\xC3\xA9x", 5), "line 2, column 3");
}

}  // namespace
}  // namespace portico
