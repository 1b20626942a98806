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
  EXPECT_EQ(outline->text, R"({"n":2,"prompt":null,"stop":["x\"]","\\"],"t":{"a":[{}]},"m":null})");
}

TEST(JsonOutline, TheElementsOfAListAreCounted) {
  struct Case {
    const char* prompt;
    size_t items;
    char first;
  };
  for (const Case& c : {Case{"[]", 0, 0}, Case{"[ ]", 0, 0}, Case{"[1,2,3]", 3, '1'},
                        Case{R"([ "a,b" , "c]" ])", 2, '"'}, Case{"[[1,2],[3],[{},{}]]", 3, '['},
                        Case{R"("a,b,c")", 0, 0}, Case{R"({"a":1,"b":[2,3]})", 2, 0},
                        Case{"{ }", 0, 0}, Case{R"(["\"","\\"])", 2, '"'}}) {
    const auto outline = Outline(std::string("{\"prompt\":") + c.prompt + "}");
    ASSERT_TRUE(outline) << c.prompt;
    EXPECT_EQ(outline->text, "{\"prompt\":null}");
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
  EXPECT_EQ(outline->text, "{\"user\":null,\"n\":1}");
}

// A body was refused for a long member, though another one of that name followed it.
TEST(JsonOutline, OfDoubledMembersTheLastCountsWhetherItStaysOrNot) {
  const std::string longer = '"' + std::string(kMaxOutlinedValue, 'x') + '"';
  const std::string longest = '"' + std::string(2 * kMaxOutlinedValue, 'x') + '"';
  std::string body;
  const auto outline = [&body](std::initializer_list<std::string> values) {
    body = "{";
    for (const std::string& value : values) body += "\"a\":" + value + ",";
    body += "\"b\":2}";
    return Outline(body);
  };
  const auto stays = outline({longer, longest, "1"});
  ASSERT_TRUE(stays);
  EXPECT_EQ(stays->text, R"({"a":null,"a":1,"b":2})");
  EXPECT_TRUE(stays->left_out.empty());
  const auto is_left_out = outline({"1", longer, "2", longer, longest});
  ASSERT_TRUE(is_left_out);
  EXPECT_EQ(is_left_out->text, R"({"a":1,"a":null,"a":2,"a":null,"b":2})");
  ASSERT_EQ(is_left_out->left_out.size(), 1u);
  EXPECT_EQ(is_left_out->left_out[0].value, longest);
}

TEST(JsonOutline, ADoubledMemberMayBeSpelledWithEscapes) {
  // A long member was refused, though a short one of the same name followed it.
  const std::string longer = '"' + std::string(kMaxOutlinedValue, 'x') + '"';
  const std::string longest = '"' + std::string(2 * kMaxOutlinedValue, 'x') + '"';
  const std::string dropped = "{\"a\":" + longer + R"(,"\u0061":1})";
  const auto stays = Outline(dropped);
  ASSERT_TRUE(stays);
  EXPECT_EQ(stays->text, R"({"a":null,"\u0061":1})");
  EXPECT_TRUE(stays->left_out.empty());
  for (const std::string& body : {"{\"a\":" + longer + R"(,"\u0061":)" + longest + "}",
                                  R"({"\u0061":)" + longer + ",\"a\":" + longest + "}"}) {
    const auto is_left_out = Outline(body);
    ASSERT_TRUE(is_left_out);
    ASSERT_EQ(is_left_out->left_out.size(), 1u);
    EXPECT_EQ(is_left_out->left_out[0].name, "a");
    EXPECT_EQ(is_left_out->left_out[0].value, longest);
  }
  // What is no escape is a name of its own.
  const auto broken = Outline("{\"a\":" + longer + R"(,"\x61":1})");
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->left_out.size(), 1u);
}

TEST(JsonOutline, OfEachObjectTheLastOfDoubledMembersCounts) {
  const std::string longer = '"' + std::string(kMaxOutlinedValue, 'x') + '"';
  const auto outline = [&](const std::string& value) {
    return OutlineOfEach(value, [](std::string_view name) { return name == "n"; });
  };
  const auto stay = outline(R"([{"n":)" + longer + R"(,"x":)" + longer + R"(,"n":1,"x":2}])");
  ASSERT_TRUE(stay);
  EXPECT_EQ(stay->text, R"([{"n":1}])");
  EXPECT_TRUE(stay->left_out.empty());
  const std::string object = R"({"n":1,"x":2,"n":)" + longer + R"(,"x":)" + longer + "}";
  const auto left_out = outline("[" + object + R"(,{"n":2,"x":3},)" + object + "]");
  ASSERT_TRUE(left_out);
  EXPECT_EQ(left_out->text, R"([{},{"n":2},{}])");
  EXPECT_EQ(left_out->left_out.size(), 4u);
}

// 4,000 maps of sampling parameters were read before it was known that they cost too much: 25 ms.
TEST(JsonOutline, OfEachObjectTheMembersThatAreNeededStay) {
  struct Case {
    const char* value;
    const char* text;
  };
  for (const Case& c : {
           Case{R"( {"n": 2 , "x":[{"n":3}],"m":{"n":4}} )", R"({"n":2})"},
           Case{R"([{"n":1,"x":"]"},null, {"x":1} ,{},{"n":"2"}])",
                R"([{"n":1},null,{},{},{"n":"2"}])"},
           Case{R"({"n":1,"x":0,"n":2})", R"({"n":2})"},
           Case{"[]", "[]"},
           Case{"{}", "{}"},
           Case{R"([ 1 , "a" ])", R"([1,"a"])"},
       }) {
    const auto outline = OutlineOfEach(c.value, [](std::string_view name) { return name == "n"; });
    ASSERT_TRUE(outline) << c.value;
    EXPECT_EQ(outline->text, c.text);
    EXPECT_TRUE(outline->left_out.empty()) << c.value;
  }
}

TEST(JsonOutline, OfEachObjectLongMembersAreCounted) {
  std::string ids = "[7";
  while (ids.size() <= kMaxOutlinedValue) ids += ",7";
  const size_t items = ids.size() / 2;
  const std::string object = R"({"n":1,"ids":)" + ids + "]}";
  const auto outline = OutlineOfEach("[" + object + "," + object + "]",
                                     [](std::string_view name) { return name == "n"; });
  ASSERT_TRUE(outline);
  EXPECT_EQ(outline->text, R"([{"n":1},{"n":1}])");
  ASSERT_EQ(outline->left_out.size(), 2u);
  EXPECT_EQ(outline->left_out[1].kind, '[');
  EXPECT_EQ(outline->left_out[1].items, items);
}

TEST(JsonOutline, WhatHoldsNoObjectsHasNoneOfEach) {
  const std::string text = '"' + std::string(kMaxOutlinedValue, 'x') + '"';
  for (const std::string& value :
       {std::string(), std::string("1"), text, "[" + text + "]", std::string("[{]"),
        std::string("[{}"), std::string("[{},]"), std::string("{\"n\":1"), std::string("[1 2"),
        std::string("[null}")}) {
    EXPECT_FALSE(OutlineOfEach(value, [](std::string_view) { return true; })) << value;
  }
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
