#include "grammar/schema/json_schema.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "grammar/grammar_for_test.h"

namespace portico::grammar {
namespace {

void Expect(std::string_view schema, std::string_view text, std::string_view wanted) {
  EXPECT_EQ(SchemaTakes(schema, text), wanted) << schema << " " << text;
}

TEST(JsonSchema, KeywordsHoldWithoutAType) {
  constexpr std::string_view kSchema = R"({"minimum":3})";
  Expect(kSchema, "3", "yes");
  Expect(kSchema, "2.9", "no");
  Expect(kSchema, R"("any")", "yes");
  Expect(kSchema, R"({"a":[null,true]})", "yes");
}

// xgrammar 858: siblings of $ref, const, enum, anyOf, oneOf and allOf were dropped without a word.
TEST(JsonSchema, SiblingsOfReferencesAndCombinatorsHold) {
  constexpr std::string_view kRef =
      R"({"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n","minimum":5})";
  Expect(kRef, "7", "yes");
  Expect(kRef, "4", "no");
  constexpr std::string_view kAll =
      R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],
          "allOf":[{"properties":{"b":{"type":"string"}},"required":["b"]}]})";
  Expect(kAll, R"({"a":1,"b":"x"})", "yes");
  Expect(kAll, R"({"a":1})", "no");
  Expect(kAll, R"({"b":"x"})", "no");
  constexpr std::string_view kAny =
      R"({"anyOf":[{"type":"integer"},{"type":"string"}],"minLength":2})";
  Expect(kAny, "1", "yes");
  Expect(kAny, R"("x")", "no");
  Expect(kAny, R"("xy")", "yes");
  Expect(R"({"enum":[1,"a",null],"type":"string"})", "1", "no");
  Expect(R"({"enum":[1,"a",null],"type":"string"})", R"("a")", "yes");
}

TEST(JsonSchema, NumbersKeepTheirBounds) {
  constexpr std::string_view kInteger =
      R"({"type":"integer","minimum":-12,"exclusiveMaximum":105})";
  for (int i = -130; i <= 1200; ++i) {
    Expect(kInteger, std::to_string(i), i >= -12 && i < 105 ? "yes" : "no");
  }
  constexpr std::string_view kNumber =
      R"({"type":"number","exclusiveMinimum":0.25,"maximum":10.5})";
  for (const char* const good : {"0.251", "0.3", "1", "9.99999", "10", "10.0", "10.5", "10.500"}) {
    Expect(kNumber, good, "yes");
  }
  for (const char* const bad : {"0", "0.25", "0.250", "0.2", "10.51", "11", "-1", "1e5", "10.6"}) {
    Expect(kNumber, bad, "no");
  }
  Expect(R"({"type":"integer","multipleOf":7})", "5005", "yes");
  Expect(R"({"type":"integer","multipleOf":7})", "5006", "no");
  Expect(R"({"minimum":5,"maximum":4,"type":"integer"})", "4",
         "#: minimum: nothing can satisfy it");
}

TEST(JsonSchema, StringsKeepLengthsAndPatterns) {
  constexpr std::string_view kShort = R"({"type":"string","minLength":2,"maxLength":3})";
  Expect(kShort, R"("a")", "no");
  Expect(kShort, R"("äö\n")", "yes");
  Expect(kShort, R"("abcd")", "no");
  constexpr std::string_view kTwenty = R"({"type":"string","maxLength":20})";
  Expect(kTwenty, R"("aaaaaaaaaaaaaaaaaaaa")", "yes");
  Expect(kTwenty, R"("aaaaaaaaaaaaaaaaaaaaa")", "no");
  // One character is one, in however many bytes or as an escape.
  constexpr std::string_view kFive = R"({"type":"string","minLength":5,"maxLength":5})";
  Expect(kFive, R"("日本語é😀")", "yes");
  Expect(kFive, R"x("\n\"\\\u001f😀")x", "yes");
  Expect(kFive, R"("日本語é")", "no");
  Expect(kFive, R"x("\n\"\\\u001f")x", "no");
  Expect(kFive, R"("日本語é😀!")", "no");
  Expect(kFive, R"x("\n\"\\\u001f😀\t")x", "no");
  for (const auto& [least, good, bad] :
       {std::tuple("1", R"("é")", R"("")"), std::tuple("2", R"x("\u000a\n")x", R"x("\u000a")x"),
        std::tuple("30", R"x("123456789 123456789 123456789\"")x",
                   R"x("123456789 123456789 12345678\"")x")}) {
    const std::string schema = R"({"type":"string","minLength":)" + std::string(least) + "}";
    Expect(schema, good, "yes");
    Expect(schema, bad, "no");
    const std::string list = R"({"type":"array","items":)" + schema + "}";
    Expect(list, "[" + std::string(good) + ", " + good + "]", "yes");
    Expect(list, "[" + std::string(good) + ", " + bad + "]", "no");
    const std::string names = R"({"type":"object","propertyNames":)" + schema + "}";
    Expect(names, "{" + std::string(good) + ": 1}", "yes");
    Expect(names, "{" + std::string(bad) + ": 1}", "no");
  }
  // A pattern is a search, and quotes in it are those of the value.
  Expect(R"({"type":"string","pattern":"b+"})", R"("abba")", "yes");
  Expect(R"({"type":"string","pattern":"b+"})", R"("aa")", "no");
  Expect(R"({"type":"string","pattern":"^a.b$"})", R"x("a\"b")x", "yes");
  Expect(R"({"type":"string","pattern":"^a.b$"})", "\"a\"b\"", "no");
  Expect(R"x({"type":"string","pattern":"^(?=a)"})x", "\"a\"", "#: pattern: look-around");
  // More repetitions than the least match nothing more where any characters may be next to them.
  Expect(R"({"type":"string","pattern":"^a{2,3}"})", R"("aaaaa")", "yes");
  Expect(R"({"type":"string","pattern":"b{1,2}$"})", R"("bbb")", "yes");
  Expect(R"({"type":"string","pattern":"b{1,2}$"})", R"("bba")", "no");
  Expect(R"({"type":"string","pattern":"^a{0,3}"})", R"("")", "yes");
  Expect(R"({"type":"string","pattern":".{20,}","maxLength":30})", R"("abc")",
         "#: maxLength: is not supported beside pattern with several parts of variable length; say "
         "it in a pattern");
  Expect(R"({"type":"string","pattern":"^.{3,}","maxLength":4})", R"("abcd")", "yes");
  Expect(R"({"type":"string","pattern":"^.{3,}","maxLength":4})", R"("abcde")", "no");
  // Each character may be the first of one.
  Expect(R"({"type":"string","pattern":"a.{120}b"})", R"("a")", "no");
  Expect(
      R"({"type":"string","pattern":"a.{200}b"})", R"("a")",
      "#: pattern: more than 128 characters in a pattern that may begin anywhere: begin it with ^");
  Expect(
      R"({"type":"string","pattern":"a|b.{200}c"})", R"("a")",
      "#: pattern: more than 128 characters in a pattern that may begin anywhere: begin it with ^");
  Expect(R"({"type":"string","pattern":"^a.{200}b"})", R"("a")", "no");
  Expect(R"({"type":"string","pattern":"b{1,3}c?","maxLength":3})", R"("abc")",
         "#: maxLength: is not supported beside pattern with several parts of variable length; say "
         "it in a pattern");
  Expect(R"({"type":"string","pattern":"^a*$","minLength":3000000000})", R"("a")",
         "#: minLength: is greater than 100000");
  Expect(R"({"type":"string","pattern":"^(ab)*$","minLength":9223372036854775807})", R"("a")",
         "#: minLength: is greater than 100000");
  Expect(R"({"type":"string","pattern":"^a*$","maxLength":100001})", R"("a")",
         "#: maxLength: is greater than 100000");
  Expect(R"({"type":"string","format":"date"})", R"("2024-02-28")", "yes");
  Expect(R"({"type":"string","format":"date"})", R"("2024-13-01")", "no");
  Expect(R"({"type":"string","format":"email"})", R"("a@so-many-hyphens-in--one-label.xn--p1ai")",
         "yes");
  Expect(R"({"type":"string","format":"email"})", R"("a@b-.c")", "no");
  Expect(R"({"type":"string","format":"hostname"})", R"("a-b-c-d-e-f.internationalization-x")",
         "yes");
  Expect(R"({"type":"string","format":"hostname"})", '"' + std::string(61, 'a') + '"', "no");
  Expect(R"({"type":"string","format":"colour"})", "\"red\"",
         R"(#: format: the format "colour" is not supported)");
}

TEST(JsonSchema, ObjectsHaveDeclaredMembersFirstAndOthersOnlyAsAllowed) {
  constexpr std::string_view kOpen =
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b"]})";
  Expect(kOpen, R"({"b":1})", "yes");
  Expect(kOpen, R"({ "a" : 1 , "b" : 2 , "c" : [] })", "yes");
  Expect(kOpen, R"({"a":1})", "no");
  Expect(kOpen, R"({"b":1,"a":"x"})", "no");
  // An escape is no way around a declared name.
  Expect(kOpen, R"({"b":1,"\u0061":"x"})", "no");
  Expect(kOpen, R"({"b":1,"ab":"x"})", "yes");
  EXPECT_EQ(SchemaTakes(kOpen, R"({"b":1,"c":1})", /*closed_objects=*/true), "no");
  constexpr std::string_view kTyped =
      R"({"type":"object","additionalProperties":{"type":"boolean"}})";
  Expect(kTyped, R"({"x":true,"y":false})", "yes");
  Expect(kTyped, R"({"x":1})", "no");
  constexpr std::string_view kMost =
      R"({"type":"object","properties":{"a":true,"b":true,"c":true},"maxProperties":2,"additionalProperties":false})";
  Expect(kMost, R"({"a":1,"c":1})", "yes");
  Expect(kMost, R"({"a":1,"b":1,"c":1})", "no");
}

// propertyNames that no string satisfies made names that are no strings: `{ 1 : null }`.
TEST(JsonSchema, NamesAreStringsWhateverTheirRulesAllow) {
  for (const char* const rule : {R"({"enum":[1]})", R"({"const":2})", R"({"type":"boolean"})",
                                 R"({"type":"integer","minimum":3})", "false"}) {
    const std::string schema =
        std::string(R"({"type":"object","propertyNames":)") + rule + R"(,"minProperties":1})";
    Expect(schema, R"({"a":null})", "#: minProperties: nothing can satisfy it");
    const std::string empty = std::string(R"({"type":"object","propertyNames":)") + rule + "}";
    Expect(empty, "{}", "yes");
    Expect(empty, "{1:null}", "no");
    Expect(empty, R"({"a":null})", "no");
  }
  constexpr std::string_view kSome =
      R"({"type":"object","propertyNames":{"enum":[1,"x"]},"minProperties":1})";
  Expect(kSome, R"({"x":null})", "yes");
  Expect(kSome, "{1:null}", "no");
  // A rule that says nothing keeps the types of declared names.
  for (const char* const rule : {"true", "{}", R"({"type":"string"})"}) {
    const std::string schema =
        std::string(R"({"type":"object","properties":{"a":{"type":"null"}},"propertyNames":)") +
        rule + "}";
    Expect(schema, R"({"a":null,"b":1})", "yes");
    Expect(schema, R"({"a":1})", "no");
  }
}

// A format was dropped without a word beside enum and const.
TEST(JsonSchema, FormatsHoldBesideConstants) {
  constexpr std::string_view kAddresses = R"({"enum":["no","1.2.3.4"],"format":"ipv4"})";
  Expect(kAddresses, R"("1.2.3.4")", "yes");
  Expect(kAddresses, R"("no")", "no");
  Expect(R"({"const":"no","format":"uuid"})", R"("no")", "#: const: nothing can satisfy it");
  Expect(R"({"enum":["2024-02-28",7],"format":"date"})", "7", "yes");
  Expect(R"({"enum":["2024-02-29"],"format":"date"})", R"("2024-02-29")",
         R"(#: format: whether "2024-02-29" has the format "date" cannot be decided)");
  Expect(R"({"properties":{"a":{"const":"red","format":"colour"}}})", "{}",
         R"(#/properties/a: format: the format "colour" is not supported)");
}

TEST(JsonSchema, ArraysHavePrefixesAndCounts) {
  constexpr std::string_view kPair =
      R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":1})";
  Expect(kPair, "[1]", "yes");
  Expect(kPair, R"([1,"x"])", "yes");
  Expect(kPair, R"([1,"x",2])", "no");
  Expect(kPair, "[]", "no");
  constexpr std::string_view kCount =
      R"({"type":"array","items":{"type":"null"},"minItems":2,"maxItems":3})";
  Expect(kCount, "[null]", "no");
  Expect(kCount, "[null, null]", "yes");
  Expect(kCount, "[null,null,null,null]", "no");
  Expect(R"({"type":"array","uniqueItems":true})", "[]",
         "#: uniqueItems: is not supported for more than one item");
}

TEST(JsonSchema, ChoicesAreExactOrRefused) {
  constexpr std::string_view kOne =
      R"({"oneOf":[{"type":"integer","minimum":5},{"type":"integer","maximum":9}]})";
  Expect(kOne, "3", "yes");
  Expect(kOne, "7", "no");
  Expect(kOne, "12", "yes");
  constexpr std::string_view kIf =
      R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"n":{"type":"integer"}},"required":["kind"],
          "if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["n"]},"additionalProperties":false})";
  Expect(kIf, R"({"kind":"b"})", "yes");
  Expect(kIf, R"({"kind":"a"})", "no");
  Expect(kIf, R"({"kind":"a","n":2})", "yes");
  Expect(R"({"not":{"type":"string"}})", R"("x")", "no");
  Expect(R"({"not":{"type":"string"}})", "1", "yes");
  // What is longer has a length that overflowed.
  constexpr std::string_view kLongest =
      R"({"anyOf":[{"type":"integer"},{"not":{"maxLength":9223372036854775807}}]})";
  Expect(kLongest, "1", "yes");
  Expect(kLongest, R"("x")", "no");
  constexpr std::string_view kNeeds = R"({"type":"object","dependentRequired":{"a":["b"]}})";
  Expect(kNeeds, R"({"x":1})", "yes");
  Expect(kNeeds, R"({"a":1})", "no");
  Expect(kNeeds, R"({"a":1,"b":1})", "yes");
}

TEST(JsonSchema, RecursionNeedsALevelOfItsOwn) {
  constexpr std::string_view kTree =
      R"({"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false})";
  Expect(kTree, R"({"next":{"next":{}}})", "yes");
  Expect(kTree, R"({"next":1})", "no");
  Expect(R"({"$ref":"#"})", "1", "#: $ref: consists of itself, without end");
  Expect(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "{}",
         "#/properties/a: $ref: nothing can satisfy it");
}

// A class may match no character: a counted piece of it ended the process that compiles.
TEST(JsonSchema, ClassesThatMatchNothingDoNotRepeat) {
  for (const char* const pattern :
       {"^[^\\\\s\\\\S]{0,20}$", "^[^\\\\s\\\\S]*$", "^(?:[^\\\\s\\\\S]{0,20}|b)$"}) {
    const std::string schema =
        R"({"type":"string","pattern":")" + std::string(pattern) + R"(","maxLength":30})";
    Expect(schema, R"("")", "yes");
    Expect(schema, R"("a")", "no");
  }
  Expect(R"({"type":"string","pattern":"^a[^\\s\\S]{0,20}$"})", R"("a")", "yes");
  Expect(R"({"type":"string","pattern":"^[^\\s\\S]{3,20}$"})", R"("")",
         "#: pattern: nothing can satisfy it");
  Expect(R"({"type":"object","patternProperties":{"^[^\\s\\S]{0,30}$":{}},
             "additionalProperties":false})",
         R"({"": 1})", "yes");
}

// The error said neither which schema nor which keyword.
TEST(JsonSchema, WhatAllowsNothingIsNamed) {
  Expect(R"({"type":"object","properties":{"a":{"type":"array","minItems":1,
             "items":{"minLength":3,"maxLength":2,"type":"string"}}},"required":["a"]})",
         "{}", "#/properties/a/items: minLength: nothing can satisfy it");
  Expect(R"({"anyOf":[{"const":1,"type":"string"},{"enum":["b"],"pattern":"^a"}]})", "1",
         "#/anyOf/0: const: nothing can satisfy it");
  Expect(R"({"allOf":[{"type":"string"},{"type":"integer"}]})", "1",
         "#: allOf: nothing can satisfy it");
}

TEST(JsonSchema, SpecialTokensHaveNoPlaceInStrings) {
  const auto compiled = CompiledForTest({GrammarKind::kJsonObject, ""});
  ASSERT_TRUE(compiled.ok());
  xgrammar::GrammarMatcher matcher(*compiled);
  for (const char c : std::string_view("{\"a")) {
    ASSERT_TRUE(matcher.AcceptToken(static_cast<unsigned char>(c)));
  }
  EXPECT_FALSE(matcher.AcceptToken(kTestMarker));
  EXPECT_FALSE(matcher.AcceptToken(kTestEnd));
}

// The bound counted levels of JSON, of which a member of an object takes two, and the words were those of the JSON reader.
TEST(JsonSchema, SchemasMayBeNestedAsDeepAsTheBoundSays) {
  const auto members = [](int depth) {
    std::string schema = R"({"type":"null"})";
    for (int i = 0; i < depth; ++i) {
      schema = R"({"type":"object","required":["a"],"properties":{"a":)" + schema + "}}";
    }
    return schema;
  };
  const auto value = [](int depth) {
    std::string text = "null";
    for (int i = 0; i < depth; ++i) text = R"({"a":)" + text + "}";
    return text;
  };
  Expect(members(64), value(64), "yes");
  Expect(members(64), value(63), "no");
  Expect(members(65), value(65), "its schemas are nested more than 64 deep");
  Expect(members(2000), "{}", "the JSON text is nested too deeply (more than 192 levels)");
}

TEST(JsonSchema, WhatIsNoSchemaIsRefusedByName) {
  EXPECT_EQ(SchemaTakes(R"({"properties":{"a/b":{"minLength":"x"}}})", "1"),
            "#/properties/a~1b: minLength: this value is not one that JSON Schema allows here");
  EXPECT_EQ(SchemaTakes("[1]", "1"), "it must be an object or a boolean");
  EXPECT_EQ(SchemaTakes(R"({"type":"text"})", "1"), R"(#: type: unknown type "text")");
}

// The number was read as a schema, by a call that throws.
TEST(JsonSchema, AReferenceToWhatIsNoSchemaIsRefused) {
  for (const char* schema : {R"({"const":{"a":1},"properties":{"a":{"$ref":"#/const/a"}}})",
                             R"({"not":{"$ref":"#/examples/0"},"examples":[1]})"}) {
    const std::string why = SchemaTakes(schema, "1");
    EXPECT_NE(why.find("must be an object or a boolean"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace portico::grammar
