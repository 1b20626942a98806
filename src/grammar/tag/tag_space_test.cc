#include "grammar/tag/tag_space.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::grammar {
namespace {

SpaceRule RuleOf(const std::string& format) {
  return SpaceRuleOfTag(R"({"type":"structural_tag","format":)" + format + "}");
}

const std::string kSchema =
    R"({"type":"json_schema","json_schema":{"properties":{"grammar":{"type":"any_text","pattern":" "},"triggers":{}}}})";

TEST(TagSpace, JsonAndFixedTextAreJson) {
  for (
      const std::string& format :
      {kSchema, R"({"begin":"<f>","end":"</f>","content":)" + kSchema + "}",
       R"({"type":"or","elements":[{"type":"const_string","value":"a"},{"type":"star","content":)" +
           kSchema + "}]}"}) {
    EXPECT_EQ(RuleOf(format), SpaceRule::kJson) << format;
  }
}

TEST(TagSpace, OtherTextBesideItAndStylesAreNarrow) {
  for (const std::string& format :
       {std::string(R"({"type":"json_schema","style":"glm_xml","json_schema":{}})"),
        std::string(R"({"type":"qwen_xml_parameter","json_schema":{}})"),
        R"({"type":"sequence","elements":[{"type":"any_text"},)" + kSchema + "]}",
        R"({"type":"dispatch","rules":[["<f>",)" + kSchema + "]]}",
        R"({"type":"sequence","elements":[{"type":"regex","pattern":"[0-9]{1,4}"},)" + kSchema +
            "]}"}) {
    EXPECT_EQ(RuleOf(format), SpaceRule::kNarrow) << format;
  }
  EXPECT_EQ(SpaceRuleOfTag(R"({"structures":[{"begin":"<f>","schema":{"pattern":" "},"end":""}],)"
                           R"("triggers":["<f"]})"),
            SpaceRule::kNarrow);
}

TEST(TagSpace, WhatTheClientsOwnGrammarTakesIsFree) {
  for (const std::string& format :
       {std::string(R"({"type":"regex","pattern":"a\\s*b"})"),
        std::string(R"({"type":"regex","pattern":"[^a]*"})"),
        std::string(R"({"type":"regex","pattern":"a b"})"),
        R"({"type":"sequence","elements":[{"type":"grammar","grammar":"root ::= [ ]*"},)" +
            kSchema + "]}",
        std::string("{")}) {
    EXPECT_EQ(RuleOf(format), SpaceRule::kFree) << format;
  }
}

}  // namespace
}  // namespace portico::grammar
