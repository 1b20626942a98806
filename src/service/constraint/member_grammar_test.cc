// What forms that write an object's members one behind the other admit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "service/constraint/call_writer_for_test.h"

namespace portico {
namespace {

// A request that must call the tool f once, of these parameters.
ChatRequest OneCall(const std::string& parameters, bool strict) {
  ChatRequest request;
  request.messages = Json(JsonArray{});
  request.tool_choice.mode = ToolChoice::Mode::kRequired;
  request.parallel_tool_calls = false;
  request.tools = *Json::Parse(fmt::format(
      R"([{{"type":"function","function":{{"name":"f","strict":{},"parameters":{}}}}}])", strict,
      parameters));
  return request;
}

const std::vector<DrawnFamily>& QuotedFamilies() {
  static const auto* const kFamilies = new std::vector<DrawnFamily>{
      {"gemma4"}, {"gemma4", {"<|tool_call>", "<tool_call|>", "<|\"|>"}}};
  return *kFamilies;
}

// What stood behind a reference was any scalar, and an object that might be null was never one.
TEST(MemberGrammars, QuotedFormsHoldWhatReferencesSay) {
  constexpr char kParameters[] =
      R"({"type":"object","$defs":{"P":{"type":"object","title":"P","properties":{"x":{"type":"integer"},)"
      R"("c":{"$ref":"#/$defs/C"}},"required":["x"]},"C":{"enum":["red","green"],"type":"string"},)"
      R"("T":{"type":"object","properties":{"t":{"type":"array","items":{"$ref":"#/$defs/T"}}}}},)"
      R"("properties":{"l":{"type":"array","items":{"$ref":"#/$defs/P"}},)"
      R"("o":{"anyOf":[{"$ref":"#/$defs/P"},{"type":"null"}],"default":null},)"
      R"("p":{"allOf":[{"$ref":"#/$defs/P"}],"description":"a P"},"v":{}},"required":["l"]})";
  std::string tree = kParameters;
  tree.insert(tree.find(R"("v":{})"), R"("r":{"$ref":"#/$defs/T"},)");
  for (const DrawnFamily& family : QuotedFamilies()) {
    const CallGrammarWriter writer(family.name, family.special);
    for (const bool strict : {true, false}) {
      const auto grammar = writer.Compile(OneCall(kParameters, strict));
      ASSERT_TRUE(grammar.ok()) << grammar.status();
      const auto takes = [&](const std::string& arguments) {
        return writer.Takes(*grammar, "<|tool_call>call:f{" + arguments + "}<tool_call|>");
      };
      EXPECT_TRUE(takes(R"(l:[{x:1,c:<|"|>red<|"|>},{x:2}])"));
      EXPECT_TRUE(takes("l:[],o:{x:3}"));
      EXPECT_TRUE(takes("l:[],o:null,p:{x:4}"));
      EXPECT_TRUE(takes(R"(l:[],v:{a:[1.5,<|"|>a, b<|"|>,{b_1:null}]})"));
      EXPECT_TRUE(takes(R"(l:[],v:<|"|><|x<|"|>)"));
      EXPECT_FALSE(takes("l:[false,false]"));
      EXPECT_FALSE(takes("l:[{}]"));
      EXPECT_FALSE(takes(R"(l:[{x:1,c:<|"|>blue<|"|>}])"));
      EXPECT_FALSE(takes("l:[],o:{y:3}"));
      EXPECT_FALSE(takes("l:[],p:1"));
    }
    EXPECT_FALSE(writer.Compile(OneCall(tree, true)).ok());
    const auto grammar = writer.Compile(OneCall(tree, false));
    ASSERT_TRUE(grammar.ok()) << grammar.status();
    EXPECT_TRUE(
        writer.Takes(*grammar, "<|tool_call>call:f{l:[],r:{t:[{t:[{t:[]}]}]}}<tool_call|>"));
    EXPECT_FALSE(writer.Takes(*grammar, "<|tool_call>call:f{l:[],r:{t:[1]}}<tool_call|>"));
  }
}

// The library refused them, so that a tool that is not strict was a 400.
TEST(MemberGrammars, BoundsOfListsThatCannotBeHeldAreLeftOut) {
  for (const DrawnFamily& family : QuotedFamilies()) {
    const CallGrammarWriter writer(family.name, family.special);
    for (const char* bounds : {R"("minItems":3,"maxItems":1)", R"("minItems":1099511627776)",
                               R"("maxItems":100000000)", R"("minItems":1.5e9)"}) {
      const std::string parameters = fmt::format(
          R"({{"type":"object","properties":{{"a":{{"type":"array","items":{{"type":"integer"}},{}}}}}}})",
          bounds);
      EXPECT_FALSE(writer.Compile(OneCall(parameters, true)).ok()) << bounds;
      const auto grammar = writer.Compile(OneCall(parameters, false));
      ASSERT_TRUE(grammar.ok()) << bounds << ": " << grammar.status();
      EXPECT_TRUE(writer.Takes(*grammar, "<|tool_call>call:f{a:[1,2]}<tool_call|>")) << bounds;
      EXPECT_FALSE(writer.Takes(*grammar, "<|tool_call>call:f{a:[null]}<tool_call|>")) << bounds;
    }
    const auto grammar = writer.Compile(OneCall(
        R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"maxItems":1}}})",
        true));
    ASSERT_TRUE(grammar.ok()) << grammar.status();
    EXPECT_TRUE(writer.Takes(*grammar, "<|tool_call>call:f{a:[]}<tool_call|>"));
    EXPECT_TRUE(writer.Takes(*grammar, "<|tool_call>call:f{a:[1]}<tool_call|>"));
    EXPECT_FALSE(writer.Takes(*grammar, "<|tool_call>call:f{a:[1,2]}<tool_call|>"));
  }
}

// A form: what stands around one call of f, and one member of it.
struct OpenForm {
  const char* family;
  const char* begin;
  const char* member;  // K for its name, V for its value
  const char* end;
};

constexpr OpenForm kOpenForms[] = {
    {"mimo", "<tool_call>\n<function=f>\n", "<parameter=K>V</parameter>\n",
     "</function>\n</tool_call>"},
    {"gemma4", "<|tool_call>call:f{", "K:V", "}<tool_call|>"},
    {"muse", "<atem:function_calls>\n<atem:invoke name=\"f\">\n",
     "<atem:parameter name=\"K\">V</atem:parameter>\n", "</atem:invoke>\n</atem:function_calls>"},
    {"pythonic", "[f(", "K=V", ")]"}};

std::string CallOf(const OpenForm& form, const std::string& key, const std::string& value) {
  std::string member = form.member;
  member.replace(member.find('K'), 1, key);
  member.replace(member.find('V'), 1, value);
  return form.begin + member + form.end;
}

// They had no members, whatever the schema allowed; the map was as strict as it could be.
TEST(MemberGrammars, ObjectsWithoutPropertiesHaveAny) {
  for (const OpenForm& form : kOpenForms) {
    const CallGrammarWriter writer(form.family, {});
    const std::string map = R"({"type":"object","additionalProperties":{"type":"integer"}})";
    EXPECT_FALSE(writer.Compile(OneCall(map, true)).ok()) << form.family;
    for (const std::string& parameters :
         {map, std::string(R"({"type":"object"})"), std::string(R"({"properties":{}})")}) {
      const auto grammar = writer.Compile(OneCall(parameters, false));
      ASSERT_TRUE(grammar.ok()) << form.family << ": " << grammar.status();
      EXPECT_TRUE(writer.Takes(*grammar, CallOf(form, "k", "12"))) << form.family << parameters;
      EXPECT_TRUE(writer.Takes(*grammar, std::string(form.begin) + form.end)) << form.family;
    }
    const auto closed =
        writer.Compile(OneCall(R"({"type":"object","additionalProperties":false})", true));
    ASSERT_TRUE(closed.ok()) << form.family << ": " << closed.status();
    EXPECT_FALSE(writer.Takes(*closed, CallOf(form, "k", "12"))) << form.family;
    EXPECT_TRUE(writer.Takes(*closed, std::string(form.begin) + form.end)) << form.family;
  }
  const CallGrammarWriter writer("gemma4", {});
  const auto map = writer.Compile(OneCall(R"({"additionalProperties":{"type":"integer"}})", false));
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_FALSE(writer.Takes(*map, "<|tool_call>call:f{k:null}<tool_call|>"));
}

// One word that the form cannot show, or one name, made all names and values free.
TEST(MemberGrammars, WhatCannotBeWrittenLeavesTheRestAsItIs) {
  for (const OpenForm& form : kOpenForms) {
    const CallGrammarWriter writer(form.family, {});
    std::string many;
    for (int i = 0; i < 17; ++i) many += fmt::format(R"("p{}":{{"type":"boolean"}},)", i);
    for (const std::string& parameters :
         {std::string(
              R"({"propertyOrdering":["n"],"x-a":1,"properties":{"n":{"type":"integer"}}})"),
          std::string(R"({"properties":{"a b":{"type":"string"},"n":{"type":"integer"}}})"),
          std::string(R"({"not":{"required":["q"]},"properties":{"n":{"type":"integer"}}})"),
          R"({"properties":{)" + many + R"("n":{"type":"integer"}}})"}) {
      const auto grammar = writer.Compile(OneCall(parameters, false));
      ASSERT_TRUE(grammar.ok()) << form.family << ": " << grammar.status();
      EXPECT_TRUE(writer.Takes(*grammar, CallOf(form, "n", "12"))) << form.family << parameters;
      EXPECT_FALSE(writer.Takes(*grammar, CallOf(form, "n", "null"))) << form.family << parameters;
      EXPECT_FALSE(writer.Takes(*grammar, CallOf(form, "m", "12"))) << form.family << parameters;
    }
    EXPECT_TRUE(
        writer.Compile(OneCall(R"({"$comment":"c","properties":{"n":{"type":"integer"}}})", true))
            .ok());
  }
  const CallGrammarWriter writer("gemma4", {});
  const auto grammar = writer.Compile(OneCall(
      R"({"not":{"required":["q"]},"required":["l"],"properties":{"l":{"type":"array","items":{"type":"integer"}},)"
      R"("o":{"type":"object","default":{},"properties":{"x":{"type":"integer"}},"required":["x"]}}})",
      false));
  ASSERT_TRUE(grammar.ok()) << grammar.status();
  EXPECT_TRUE(writer.Takes(*grammar, "<|tool_call>call:f{o:{x:1},l:[1,2]}<tool_call|>"));
  EXPECT_FALSE(writer.Takes(*grammar, "<|tool_call>call:f{o:{y:1}}<tool_call|>"));
}

}  // namespace
}  // namespace portico
