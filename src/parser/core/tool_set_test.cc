#include "parser/core/tool_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace portico::parser {
namespace {

// 30 kB of references that refer to each other were followed on all ways: 400 to the power of four.
TEST(ToolSets, ReferencesThatMakeManySchemasOfFewAreNotAllFollowed) {
  const auto many = [](char next) {
    std::string refs;
    for (int i = 0; i < 400; ++i) {
      refs += fmt::format(R"({}{{"$ref":"#/$defs/{}"}})", i == 0 ? "" : ",", next);
    }
    return refs;
  };
  std::string definitions = R"("e":{"type":"string"})";
  for (const char name : {'a', 'b', 'c', 'd'}) {
    definitions +=
        fmt::format(R"(,"{}":{{"anyOf":[{}]}})", name, many(static_cast<char>(name + 1)));
  }
  const auto tools = Json::Parse(fmt::format(
      R"([{{"name":"f","parameters":{{"$defs":{{{}}},"properties":{{"x":{{"$ref":"#/$defs/a"}},"y":{{"type":"integer"}}}}}}}},)"
      R"({{"name":"g","parameters":{{"properties":{{"x":{{"type":"boolean"}}}}}}}}])",
      definitions));
  ASSERT_TRUE(tools.ok()) << tools.status();
  const ToolSet set(*tools, false);
  EXPECT_TRUE(set.Takes("f"));
  EXPECT_TRUE(set.Takes("g"));
}

TEST(ToolSets, TypesStandBehindReferences) {
  const auto tools = Json::Parse(
      R"([{"name":"f","parameters":{"$defs":{"a":{"type":"integer"}},"properties":{"x":{"$ref":"#/$defs/a"},)"
      R"("y":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}}])");
  const ToolSet set(*tools, false);
  EXPECT_EQ(set.Arguments("f")->Find("x")->types, kIntegerType);
  EXPECT_EQ(set.Arguments("f")->Find("y")->types, kIntegerType | kNullType);
}

}  // namespace
}  // namespace portico::parser
