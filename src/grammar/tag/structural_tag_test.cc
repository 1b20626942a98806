#include "grammar/tag/structural_tag.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "grammar/grammar_for_test.h"

namespace portico::grammar {
namespace {

// "yes", "no", or why the tag is refused.
std::string TagTakes(const std::string& format, std::string_view text) {
  const auto compiled =
      CompiledForTest({GrammarKind::kStructuralTag,
                       fmt::format(R"({{"type":"structural_tag","format":{}}})", format)});
  if (!compiled.ok()) return std::string(compiled.status().message());
  return Takes(*compiled, text) ? "yes" : "no";
}

bool Refuses(const std::string& format, std::string_view why) {
  const std::string said = TagTakes(format, "");
  EXPECT_NE(said.find(why), std::string::npos) << format << ": " << said;
  return said.find(why) != std::string::npos;
}

// The library tries every type where a format names none, and read such a schema itself: [1, 1] passed.
TEST(StructuralTag, NoSchemaPassesByTheCompiler) {
  const std::string schema = R"("json_schema":{"type":"array","uniqueItems":true})";
  EXPECT_TRUE(Refuses("{" + schema + "}", "uniqueItems"));
  EXPECT_TRUE(Refuses(R"({"type":"qwen_xml_parameter","json_schema":{"type":"object","properties":)"
                      R"({"a":{"type":"array","uniqueItems":true}}}})",
                      "uniqueItems"));
  EXPECT_TRUE(Refuses(R"({"begin":"<","end":">","content":{)" + schema + "}}", "uniqueItems"));
  EXPECT_EQ(TagTakes(R"({"begin":"<","end":">","content":{"value":"a"}})", "<a>"), "yes");
  EXPECT_EQ(TagTakes(R"({"json_schema":{"enum":[1,2]}})", "2"), "yes");
  EXPECT_EQ(TagTakes(R"({"json_schema":{"enum":[1,2]}})", "3"), "no");
}

// The library skipped an anchor inside, so that "ab" matched a$b.
TEST(StructuralTag, ARegularExpressionIsReadAsOneAlone) {
  EXPECT_TRUE(Refuses(R"({"type":"regex","pattern":"a$b"})", "format/pattern: no grammar has a $"));
  EXPECT_TRUE(Refuses(R"({"type":"regex","pattern":7})", "must be a string"));
  const std::string digits = R"({"type":"regex","pattern":"^[0-9]{2}$"})";
  EXPECT_EQ(TagTakes(digits, "12"), "yes");
  EXPECT_EQ(TagTakes(digits, "1"), "no");
}

// The library's texts end with a NUL: "a" was an answer.
TEST(StructuralTag, TextsWithNulAreRefused) {
  EXPECT_TRUE(Refuses(R"({"type":"const_string","value":"a\u0000b"})", "NUL"));
  EXPECT_TRUE(
      Refuses(R"({"type":"tag","begin":"\u0000","end":"","content":{"type":"any_text"}})", "NUL"));
  EXPECT_TRUE(Refuses(R"({"type":"grammar","grammar":"root ::= \"\\x00\""})", "NUL"));
  for (const GrammarText& text : {GrammarText{GrammarKind::kChoice, R"(["a\u0000b"])"},
                                  GrammarText{GrammarKind::kEbnf, R"(root ::= "a\x00")"}}) {
    EXPECT_EQ(CompiledForTest(text).status().code(), StatusCode::kInvalidArgument) << text.text;
  }
  EXPECT_TRUE(CompiledForTest({GrammarKind::kEbnf, R"(root ::= [^\x00-\x1f])"}).ok());
}

std::string Styled(const std::string& property, const std::string& more = "") {
  return R"({"type":"json_schema","style":"qwen_xml","json_schema":{"type":"object","properties":{"a":)" +
         property + "}" + more + "}}";
}

// In these styles the library writes the grammar, and dropped what it cannot express: a strict tool's calls broke its schema.
TEST(StructuralTag, AStyleTakesOnlyWhatTheLibraryEnforcesInIt) {
  for (const auto& [property, keyword] :
       {std::pair(R"({"type":"integer","allOf":[{"minimum":5}]})", "allOf"),
        std::pair(R"({"minimum":5,"maximum":9})", "m"),
        std::pair(R"({"anyOf":[{"type":"integer"},{"type":"null"}],"minimum":5})", "minimum"),
        std::pair(R"({"type":"integer","enum":[1,"x"]})", "enum"),
        std::pair(R"({"const":1,"enum":[1,2]})", "enum"),
        std::pair(R"({"type":"integer","if":{"minimum":5},"then":{"maximum":7}})", "if"),
        std::pair(R"({"type":"string","pattern":"^a*$","maxLength":3})", ""),
        std::pair(R"({"type":"string","format":"date"})", "format"),
        std::pair(R"({"type":"integer","multipleOf":7})", "multipleOf"),
        std::pair(R"({"type":"object","maxProperties":1})", "maxProperties"),
        std::pair(R"({"type":"integer","anyOf":[{"minimum":5},{"maximum":1}]})", "type"),
        std::pair(R"({"allOf":[{"minimum":5},{"maximum":9}]})", "allOf"),
        std::pair(R"({"anyOf":[{"type":[]},{"type":"integer"}]})", "type"),
        std::pair(R"({"type":"array","items":{"type":"integer","multipleOf":7}})", "multipleOf")}) {
    EXPECT_TRUE(Refuses(Styled(property), "#/properties/a")) << property;
    EXPECT_TRUE(Refuses(Styled(property), keyword)) << property;
  }
  EXPECT_TRUE(
      Refuses(Styled(R"({"$ref":"#/$defs/n","minimum":5})", R"(,"$defs":{"n":{"type":"integer"}})"),
              "#/properties/a: minimum"));
  for (
      const char* property :
      {R"({"type":"integer","minimum":5,"maximum":9,"description":"d","default":5})",
       R"({"type":"string","enum":["x","y"]})", R"({"type":["string","null"],"maxLength":3})",
       R"({"anyOf":[{"type":"integer"},{"type":"null"}],"default":null,"title":"A"})",
       R"({"type":"array","items":{"$ref":"#/$defs/n"},"maxItems":2})", "{}", "true",
       R"({"type":"integer","format":"int32","maxLength":3,"x-order":1})",
       R"({"properties":{"b":{"type":"integer"}}})", R"({"items":{"type":"integer"},"minimum":1})",
       R"({"allOf":[{"$ref":"#/$defs/n"}],"default":1})", R"({"type":"number","$ref":"#/$defs/n"})",
       R"({"type":"array","items":{"type":"null"},"uniqueItems":false})",
       R"({"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"],"additionalProperties":false})"}) {
    const std::string said = TagTakes(Styled(property, R"(,"$defs":{"n":{"type":"integer"}})"), "");
    EXPECT_TRUE(said == "yes" || said == "no") << property << ": " << said;
  }
}

// "</parameter>" ended the parameter that it was the value of: the call that was read had an empty text there.
TEST(StructuralTag, AStyleRefusesTextsThatLookLikeTags) {
  for (const char* property :
       {R"({"enum":["x","</parameter>"]})", R"({"const":"a<b"})", R"({"const":"<｜x"})",
        R"({"type":"string","enum":["x\n"]})", R"({"const":"\r\nx"})",
        R"({"const":{"b":["</parameter>"]}})", R"({"const":{"</b>":1}})"}) {
    EXPECT_TRUE(Refuses(Styled(property), "a text in it could not be read back")) << property;
  }
  for (const char* property :
       {R"({"enum":["<","<=",">","a < b","<3"]})", R"({"enum":[""," x "]})",
        R"({"const":"<|im_end|>"})", R"({"const":"a\nb"})", R"({"const":{"b":[1,"x"]}})"}) {
    const std::string said = TagTakes(Styled(property), "");
    EXPECT_TRUE(said == "yes" || said == "no") << property << ": " << said;
  }
  for (const char* name : {"", " a", "a\\n", "a>b", "</parameter>", R"(a\"b)"}) {
    const std::string format =
        R"({"type":"json_schema","style":"minimax_xml","json_schema":{"type":"object","properties":{")" +
        std::string(name) + R"(":{"type":"integer"}}}})";
    EXPECT_TRUE(Refuses(format, "a name in it could not be read back")) << name;
  }
}

TEST(StructuralTag, AStyleTakesASchemaThatConsistsOfAReference) {
  const std::string format =
      R"({"type":"json_schema","style":"qwen_xml","json_schema":{"$ref":"#/$defs/a","type":"object",)"
      R"("$defs":{"a":{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],)"
      R"("additionalProperties":false}}}})";
  EXPECT_EQ(TagTakes(format, "<parameter=b>7</parameter>"), "yes");
  EXPECT_EQ(TagTakes(format, "<parameter=b>x</parameter>"), "no");
}

TEST(StructuralTag, ALooseSchemaInAStyleIsTheLibrarysToEnforce) {
  std::string loose = Styled(R"({"type":"integer","multipleOf":7})");
  loose.insert(1, R"("loose":true,)");
  const std::string said = TagTakes(loose, "");
  EXPECT_TRUE(said == "yes" || said == "no") << said;
}

// In a tag, a string that holds the tag's end would end it.
TEST(StructuralTag, JsonInTagsEscapesWhatBeginsOne) {
  const auto part = [](const std::string& schema) {
    return R"({"type":"json_schema","escape_less":true,"json_schema":)" + schema + "}";
  };
  for (const auto& [schema, plain, escaped] :
       {std::tuple(R"({"type":"string"})", R"("a<b")", R"("a\u003cb")"),
        std::tuple(R"({"type":"string","maxLength":20})", R"("<")", R"("\u003c")"),
        std::tuple(R"({"type":"string","pattern":"^[<=>]{2}$"})", R"("<=")", R"("\u003c=")"),
        std::tuple(R"({"enum":["</a>",1]})", R"("</a>")", R"("\u003c/a>")"),
        std::tuple(R"({"type":"object","properties":{"<":{}},"required":["<"]})", R"({"<":1})",
                   R"({"\u003c":1})"),
        std::tuple("true", R"([{"a":"<"}])", R"([{"a":"\u003c"}])")}) {
    EXPECT_EQ(TagTakes(part(schema), plain), "no") << schema;
    EXPECT_EQ(TagTakes(part(schema), escaped), "yes") << schema;
  }
  EXPECT_EQ(TagTakes(part(R"({"type":"string"})"), R"("a=b")"), "yes");
}

// An array that cannot be enforced stood for an object.
TEST(StructuralTag, ALooseSchemaKeepsItsType) {
  const auto part = [](const std::string& schema) {
    return R"({"type":"json_schema","loose":true,"json_schema":)" + schema + "}";
  };
  const std::string list = part(R"({"type":"array","uniqueItems":true})");
  EXPECT_EQ(TagTakes(list, "[1, 1]"), "yes");
  EXPECT_EQ(TagTakes(list, "{}"), "no");
  EXPECT_EQ(TagTakes(part(R"({"uniqueItems":true})"), "7"), "yes");
  EXPECT_EQ(TagTakes(part(R"({"type":"dict"})"), "{}"), "yes");
}

}  // namespace
}  // namespace portico::grammar
