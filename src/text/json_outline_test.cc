#include "text/json_outline.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

std::optional<JsonOutline> Outline(std::string_view body) {
  return OutlineOf(body, [](std::string_view name) { return name == "prompt"; });
}

TEST(JsonOutline, ShortMembersStayAsTheyAreWritten) {
  const auto outline = Outline(
      R"( { "n" : 2 ,"prompt":["a",[1,{"b":"]}"}]],"stop":["x\"]","\\"], "t":{"a":[{}]},"m":null} )");
  ASSERT_TRUE(outline);
  EXPECT_EQ(outline->text, R"({"n":2 ,"stop":["x\"]","\\"],"t":{"a":[{}]},"m":null})");
}

TEST(JsonOutline, TheElementsOfAListAreCounted) {
  struct Case {
    const char* prompt;
    size_t items;
    char first;
  };
  for (const Case& c :
       {Case{"[]", 0, 0}, Case{"[ ]", 0, 0}, Case{"[1,2,3]", 3, '1'},
        Case{R"([ "a,b" , "c]" ])", 2, '"'}, Case{"[[1,2],[3],[{},{}]]", 3, '['},
        Case{R"("a,b,c")", 0, 0}, Case{R"({"a":1,"b":2})", 0, 0}, Case{R"(["\"","\\"])", 2, '"'}}) {
    const auto outline = Outline(std::string("{\"prompt\":") + c.prompt + "}");
    ASSERT_TRUE(outline) << c.prompt;
    EXPECT_EQ(outline->text, "{}");
    ASSERT_EQ(outline->left_out.size(), 1u);
    EXPECT_EQ(outline->left_out[0].items, c.items) << c.prompt;
    EXPECT_EQ(outline->left_out[0].first, c.first) << c.prompt;
    EXPECT_EQ(outline->left_out[0].kind, c.prompt[0]);
  }
}

TEST(JsonOutline, ALongValueIsLeftOutWhateverItsName) {
  const auto outline =
      Outline("{\"user\":\"" + std::string(kMaxOutlinedValue, 'x') + "\",\"n\":1}");
  ASSERT_TRUE(outline);
  EXPECT_EQ(outline->text, "{\"n\":1}");
}

TEST(JsonOutline, WhatIsNoObjectHasNone) {
  for (const char* body :
       {"", "[]", "{", "{}", "{\"a\"}", "{\"a\":", "{\"a\":[1", "{\"a\":\"x", "{\"a\":1", "{a:1}",
        "{\"a\":1,}", "{\"a\":\"x\\\"}", "\"", "{\"prompt\":[\"}"}) {
    EXPECT_FALSE(Outline(body)) << body;
  }
}

}  // namespace
}  // namespace portico
