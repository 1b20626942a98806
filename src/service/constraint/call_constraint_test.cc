#include "service/constraint/call_constraint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "service/idle_engine_for_test.h"
#include "service/output/output_plan.h"

namespace portico {
namespace {

constexpr char kTools[] =
    R"([{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"integer"}}}}},)"
    R"({"type":"function","function":{"name":"g"}}])";

class CallConstraintTest : public testing::Test {
 protected:
  CallConstraintTest() { Model("hermes", "qwen3", true); }

  void Model(std::string tools, std::string reasoning, bool grammars) {
    EngineInfo info;
    info.vocab_size = 8;
    info.context_length = 20;
    info.can.compiles_grammars = grammars;
    model_.engine = std::make_unique<IdleEngine>(std::move(info));
    std::string added;
    for (const auto& [id, text, special] :
         {std::tuple(4, "<think>", false), std::tuple(5, "</think>", false),
          std::tuple(6, "<|tool_calls_section_begin|>", true),
          std::tuple(7, "<|tool_call_begin|>", true)}) {
      added += fmt::format(
          R"({}{{"id":{},"content":"{}","special":{},"single_word":false,"lstrip":false,)"
          R"("rstrip":false,"normalized":false}})",
          added.empty() ? "" : ",", id, text, special);
    }
    model_.tokenizer = *Tokenizer::FromJson(
        R"({"version":"1.0","truncation":null,"padding":null,"normalizer":null,)"
        R"("post_processor":null,"decoder":null,"added_tokens":[)" +
        added +
        R"(],"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"u","vocab":{"u":0,"a":1,"b":2,"c":3}}})");
    OutputFormatSource source;
    source.tool_call_parser = std::move(tools);
    source.reasoning_parser = std::move(reasoning);
    model_.output = *MakeOutputFormat(source, *model_.tokenizer);
  }

  static ChatRequest Ask(ToolChoice::Mode mode, const char* tools = kTools) {
    ChatRequest request;
    request.tools = *Json::Parse(tools);
    request.tool_choice.mode = mode;
    return request;
  }
  static std::shared_ptr<const Constraint> Schema() {
    Constraint constraint;
    constraint.text = R"({"type":"object"})";
    constraint.field = "response_format";
    return std::make_shared<const Constraint>(constraint);
  }
  StatusOr<std::shared_ptr<const Constraint>> Make(
      const ChatRequest& request, std::shared_ptr<const Constraint> answer = nullptr,
      ReasoningStart start = ReasoningStart::kNone) {
    return ChatConstraint(model_, request, start, std::move(answer));
  }
  // The constraint's text, or the field that is refused.
  std::string TextOf(const ChatRequest& request,
                     std::shared_ptr<const Constraint> answer = nullptr) {
    auto made = Make(request, std::move(answer));
    if (!made.ok()) return std::string(FieldOf(made.status()));
    return *made == nullptr ? "none" : (*made)->text;
  }

  ServingModel model_;
};

using Mode = ToolChoice::Mode;

TEST_F(CallConstraintTest, ToolsThatMayBeCalledMakeNoConstraint) {
  EXPECT_EQ(TextOf(Ask(Mode::kAuto)), "none");
  EXPECT_EQ(TextOf(Ask(Mode::kNone)), "none");
  ChatRequest without;
  without.parallel_tool_calls = false;
  EXPECT_EQ(TextOf(without), "none");
}

TEST_F(CallConstraintTest, ARequiredCallHasTheFormOfTheFamily) {
  const std::string text = TextOf(Ask(Mode::kRequired));
  EXPECT_NE(text.find(R"(<tool_call>\n{\"name\": \"f\", \"arguments\": )"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("star")"), std::string::npos);
  EXPECT_NE(text.find(R"("integer")"), std::string::npos);
  EXPECT_NE(text.find(R"("closed":true,"loose":true)"), std::string::npos);
}

TEST_F(CallConstraintTest, ANamedCallComesOnceAndIsNoOther) {
  ChatRequest request = Ask(Mode::kRequired);
  request.tool_choice.name = "g";
  request.tool_choice.allowed = {"g"};
  const std::string text = TextOf(request);
  EXPECT_EQ(text.find(R"(\"f\")"), std::string::npos);
  EXPECT_NE(text.find(R"(\"g\")"), std::string::npos);
  EXPECT_EQ(text.find(R"("star")"), std::string::npos);
}

TEST_F(CallConstraintTest, OneCallAtMostLeavesTextInFrontOfIt) {
  ChatRequest request = Ask(Mode::kAuto);
  request.parallel_tool_calls = false;
  const std::string text = TextOf(request);
  EXPECT_NE(text.find(R"({"type":"dispatch","rules":[["<tool_call>",)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("loop":false)"), std::string::npos);
}

TEST_F(CallConstraintTest, StrictToolsHoldWhereTheModelCallsThem) {
  const std::string text = TextOf(Ask(
      Mode::kAuto,
      R"([{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object"}}}])"));
  EXPECT_NE(text.find(R"("loop":true)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("closed":true,"loose":false)"), std::string::npos);
}

TEST_F(CallConstraintTest, SpecialTokensStandAsTokens) {
  Model("kimi_k2", "none", true);
  const std::string text = TextOf(Ask(Mode::kRequired));
  EXPECT_NE(text.find(R"({"type":"token","token":6})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"([0-9]{1,4})"), std::string::npos);
  ChatRequest one = Ask(Mode::kAuto);
  one.parallel_tool_calls = false;
  EXPECT_NE(TextOf(one).find(R"({"type":"token_dispatch","rules":[[6,)"), std::string::npos);
}

// `parallel_tool_calls: false` and strict tools were a 400.
TEST_F(CallConstraintTest, AFamilyWithoutAFormWritesAJsonList) {
  model_.output.form = nullptr;
  const ChatRequest request = Ask(Mode::kRequired);
  EXPECT_NE(TextOf(request).find(R"("[")"), std::string::npos);
  EXPECT_TRUE(CallsAsJsonList(model_.output, request));
  EXPECT_FALSE(CallsAsJsonList(model_.output, Ask(Mode::kAuto)));
  ChatRequest one = Ask(Mode::kAuto);
  one.parallel_tool_calls = false;
  EXPECT_NE(TextOf(one).find(R"("[{\"name\": \"f\", \"parameters\": ")"), std::string::npos)
      << TextOf(one);
  EXPECT_TRUE(CallsAsJsonList(model_.output, one));
}

TEST_F(CallConstraintTest, KeywordArgumentsHoldTheirSchemas) {
  Model("pythonic", "none", true);
  const std::string text = TextOf(Ask(Mode::kRequired));
  EXPECT_NE(text.find(R"("value":"f(")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("value":"a=")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("json_schema":{"type":"integer"},"style":"json")"), std::string::npos);
  EXPECT_EQ(text.find("python"), std::string::npos) << text;  // engines know no such style
  EXPECT_FALSE(CallsAsJsonList(model_.output, Ask(Mode::kRequired)));
}

// A list's bracket stands in text too: one that began every call made each "[1]" of an answer a call.
TEST_F(CallConstraintTest, ABracketInTextIsNoCallBeforeAKnownName) {
  Model("pythonic", "none", true);
  ChatRequest one = Ask(Mode::kAuto);
  one.parallel_tool_calls = false;
  const std::string text = TextOf(one);
  EXPECT_NE(text.find(R"({"type":"dispatch","rules":[["[f(",)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(["[g(",)"), std::string::npos) << text;
}

// The definitions stood beside each member: a request of 660 kB made 4 GB of them.
TEST_F(CallConstraintTest, DefinitionsThatArgumentsRepeatTooOftenLeaveThemUnconstrained) {
  const auto tools = [](size_t members, bool strict) {
    std::string names;
    std::string properties;
    for (size_t i = 0; i < members; ++i) {
      const char* const comma = i == 0 ? "" : ",";
      names += fmt::format(R"({}"k{}")", comma, i);
      properties += fmt::format(R"({}"k{}":{{"$ref":"#/$defs/d"}})", comma, i);
    }
    return fmt::format(
        R"([{{"type":"function","function":{{"name":"f","strict":{},"parameters":{{"$defs":{{"d":{{"const":"{}"}}}},)"
        R"("required":[{}],"properties":{{{}}}}}}}}}])",
        strict, std::string(10000, 'x'), names, properties);
  };
  for (const char* family : {"pythonic", "lfm2", "mimo", "hunyuan", "step3", "minicpm5", "kimi_k3",
                             "minimax-m3", "gemma4", "functiongemma", "muse"}) {
    Model(family, "none", true);
    EXPECT_LT(TextOf(Ask(Mode::kRequired, tools(2000, false).c_str())).size(), size_t{3} << 20)
        << family;
    EXPECT_EQ(TextOf(Ask(Mode::kAuto, tools(2000, true).c_str())), "tools[0].function.strict")
        << family;
  }
  Model("pythonic", "none", true);
  EXPECT_GT(TextOf(Ask(Mode::kRequired, tools(20, false).c_str())).size(), 200000u);
  EXPECT_NE(TextOf(Ask(Mode::kRequired, tools(2000, false).c_str())).find("{0,63}="),
            std::string::npos);
}

// 55 kB of them took 22 s and 4.5 GB: each list wrote its item twice, and each item all values.
TEST_F(CallConstraintTest, ListsInListsMakeNoConstraintOfAnyLength) {
  std::string values;
  for (int i = 0; i < 3000; ++i) values += fmt::format(R"({}"value {}")", i == 0 ? "" : ",", i);
  for (const char* strict : {"false", "true"}) {
    std::string schema = fmt::format(R"({{"type":"string","enum":[{}]}})", values);
    for (int i = 0; i < 10; ++i) schema = R"({"type":"array","items":)" + schema + "}";
    const std::string tools = fmt::format(
        R"([{{"type":"function","function":{{"name":"f","strict":{},"parameters":{{"type":"object","properties":{{"a":{}}}}}}}}}])",
        strict, schema);
    for (const char* family : {"gemma4", "functiongemma"}) {
      Model(family, "none", true);
      const std::string text = TextOf(Ask(Mode::kRequired, tools.c_str()));
      EXPECT_LT(text.size(), size_t{3} << 20) << family;
      EXPECT_EQ(text == "tools[0].function.strict", std::string_view(strict) == "true") << family;
    }
  }
}

// Each call stood with all of them behind it, so that the constraint grew with the square of their number.
TEST_F(CallConstraintTest, ToolsThatStandBehindEachOtherTooOftenAreRefused) {
  Model("pythonic", "none", true);
  const auto tools = [](size_t count) {
    std::string list;
    for (size_t i = 0; i < count; ++i) {
      list += fmt::format(
          R"({}{{"type":"function","function":{{"name":"f{}","strict":true,"parameters":{{"required":["a"],"properties":{{"a":{{}}}}}}}}}})",
          i == 0 ? "" : ",", i);
    }
    return "[" + list + "]";
  };
  EXPECT_EQ(TextOf(Ask(Mode::kAuto, tools(1000).c_str())), "tools[0].function.strict");
  EXPECT_GT(TextOf(Ask(Mode::kAuto, tools(20).c_str())).size(), 20000u);
  EXPECT_GT(TextOf(Ask(Mode::kRequired, tools(1000).c_str())).size(), 20000u);
}

TEST_F(CallConstraintTest, AStrictSchemaThatKeywordArgumentsCannotExpressIsRefused) {
  Model("pythonic", "none", true);
  for (const char* parameters :
       {R"({"type":"object","maxProperties":1})", R"({"type":"object","properties":{"a b":{}}})",
        R"({"anyOf":[{"type":"object"}]})", R"({"type":"object","required":["x-y"]})"}) {
    const std::string tools = fmt::format(
        R"([{{"type":"function","function":{{"name":"f","strict":{{}},"parameters":{}}}}}])",
        parameters);
    std::string strict = tools;
    strict.replace(strict.find("{}"), 2, "true");
    EXPECT_EQ(TextOf(Ask(Mode::kAuto, strict.c_str())), "tools[0].function.strict") << strict;
    std::string loose = tools;
    loose.replace(loose.find("{}"), 2, "false");
    EXPECT_NE(TextOf(Ask(Mode::kRequired, loose.c_str())).find("{0,63}="), std::string::npos);
  }
}

// A required call of such a tool was a text that looked like one.
TEST_F(CallConstraintTest, ArgumentsAreObjectsWhateverTypeTheParametersHave) {
  for (const char* type : {R"("string")", R"(["string","null"])"}) {
    const std::string tool = fmt::format(
        R"([{{"type":"function","function":{{"name":"f","parameters":{{"type":{},"minimum":1}},"strict":)",
        type);
    EXPECT_EQ(TextOf(Ask(Mode::kAuto, (tool + "true}}]").c_str())), "tools[0].function.strict");
    const std::string text = TextOf(Ask(Mode::kRequired, (tool + "false}}]").c_str()));
    EXPECT_NE(text.find(R"("json_schema":{"type":"object","minimum":1})"), std::string::npos)
        << text;
  }
  const char* nullable =
      R"([{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":["object","null"]}}}])";
  EXPECT_NE(TextOf(Ask(Mode::kAuto, nullable)).find(R"("json_schema":{"type":"object"})"),
            std::string::npos);
}

// They stood for any object, without a word.
TEST_F(CallConstraintTest, ConstrainedToolsHaveSchemas) {
  for (const char* family : {"hermes", "pythonic", "gemma4", "qwen3_coder"}) {
    Model(family, "none", true);
    for (const auto& [parameters, why] :
         {std::pair(R"({"type":"dict"})", R"(#: type: unknown type "dict")"),
          std::pair(R"({"type":null})", "#: type: "),
          std::pair(R"({"properties":{"a":{"properties":[]}}})", "#/properties/a: properties: "),
          std::pair(R"({"properties":{"a":{"items":{"minLength":"1"}}}})",
                    "#/properties/a/items: minLength: "),
          std::pair(R"({"properties":{"a":7}})", "#: properties: "),
          std::pair(R"({"required":"a"})", "#: required: "),
          std::pair(R"({"$defs":{"x":{"enum":1}}})", "#/$defs/x: enum: "),
          std::pair(R"({"properties":{"a":{"$ref":"#/$defs/b"}}})",
                    "#/properties/a: $ref: #/$defs/b points to nothing")}) {
      const std::string tool =
          fmt::format(R"([{{"type":"function","function":{{"name":"g"}}}},)"
                      R"({{"type":"function","function":{{"name":"f","parameters":{}}}}}])",
                      parameters);
      EXPECT_EQ(TextOf(Ask(Mode::kAuto, tool.c_str())), "none") << parameters;
      ChatRequest request = Ask(Mode::kRequired, tool.c_str());
      const Status status = Make(request).status();
      EXPECT_EQ(FieldOf(status), "tools[1].function.parameters") << parameters;
      EXPECT_NE(MessageOf(status).find(why), std::string_view::npos) << status;
      request.tool_choice.allowed = {"g"};
      EXPECT_TRUE(Make(request).ok());
    }
    for (const char* good :
         {R"({"properties":{"a":{"$ref":"http://x/y"}}})", R"({"x-order":7})",
          R"({"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"uniqueItems":true}}})"}) {
      const std::string tool =
          fmt::format(R"([{{"type":"function","function":{{"name":"f","parameters":{}}}}}])", good);
      EXPECT_TRUE(Make(Ask(Mode::kRequired, tool.c_str())).ok()) << good;
    }
  }
}

// A required call of such a tool was a text that looked like one.
TEST_F(CallConstraintTest, ANameThatTheFormOfCallsCannotHoldIsRefused) {
  const auto tool = [](std::string_view name) {
    return fmt::format(R"([{{"type":"function","function":{{"name":"{}"}}}}])", name);
  };
  const auto takes = [&](std::string_view name) {
    const std::string required = TextOf(Ask(Mode::kRequired, tool(name).c_str()));
    ChatRequest one = Ask(Mode::kAuto, tool(name).c_str());
    one.parallel_tool_calls = false;
    EXPECT_EQ(TextOf(one) == "tools", required == "tools") << name;
    EXPECT_EQ(TextOf(Ask(Mode::kAuto, tool(name).c_str())), "none");
    return required != "tools";
  };
  for (const auto& [family, refused] :
       {std::pair("seed_oss", "a>b"), std::pair("qwen3_coder", "</b"), std::pair("glm45", "a b"),
        std::pair("minimax-m2", R"(a\"b)"), std::pair("deepseekv32", R"(a\"b)"),
        std::pair("kimi_k2", "a<b"), std::pair("deepseekv31", "a b"), std::pair("pythonic", "a/b"),
        std::pair("gemma4", "a>b"), std::pair("kimi_k3", R"(a\"b)"),
        std::pair("minimax-m3", "a>b")}) {
    Model(family, "none", true);
    EXPECT_FALSE(takes(refused)) << family;
    for (const char* name : {"a", "a-b", "A_1", "a.b"}) {
      EXPECT_TRUE(takes(name)) << family << " " << name;
    }
  }
  for (const char* family : {"hermes", "llama3"}) {  // names are JSON
    Model(family, "none", true);
    const std::string text = TextOf(Ask(Mode::kRequired, tool(R"(a>\"b)").c_str()));
    EXPECT_NE(text.find("a>"), std::string::npos) << family << " " << text;
  }
}

TEST_F(CallConstraintTest, AnAnswerOfAFormOrCallsIsAChoice) {
  const std::string text = TextOf(Ask(Mode::kAuto), Schema());
  EXPECT_NE(text.find(R"("type":"or","elements":[{"type":"json_schema")"), std::string::npos)
      << text;
  EXPECT_NE(text.find("<tool_call>"), std::string::npos);
  EXPECT_EQ(TextOf(Ask(Mode::kRequired), Schema()), "response_format");
}

TEST_F(CallConstraintTest, AnEngineWithoutGrammarsRefusesByTheField) {
  Model("hermes", "qwen3", false);
  EXPECT_EQ(TextOf(Ask(Mode::kRequired)), "tool_choice");
  ChatRequest one = Ask(Mode::kAuto);
  one.parallel_tool_calls = false;
  EXPECT_EQ(TextOf(one), "parallel_tool_calls");
  EXPECT_EQ(
      TextOf(Ask(Mode::kAuto, R"([{"type":"function","function":{"name":"f","strict":true}}])")),
      "tools[0].function.strict");
}

// vllm 44012: no schema behind reasoning.
TEST_F(CallConstraintTest, TheConstraintStandsBehindReasoning) {
  auto inside = Make(Ask(Mode::kNone), Schema(), ReasoningStart::kInside);
  ASSERT_TRUE(inside.ok());
  EXPECT_EQ((*inside)->think_end, 5);
  EXPECT_EQ((*inside)->think_start, -1);
  auto may = Make(Ask(Mode::kRequired), nullptr, ReasoningStart::kMayBegin);
  ASSERT_TRUE(may.ok());
  EXPECT_EQ((*may)->think_end, 5);
  EXPECT_EQ((*may)->think_start, 4);
  auto none = Make(Ask(Mode::kNone), Schema());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ((*none)->think_end, -1);
}

TEST_F(CallConstraintTest, ReasoningWhoseEndIsNoTokenCannotComeFirst) {
  Model("hermes", "kimi", true);
  EXPECT_EQ(FieldOf(Make(Ask(Mode::kNone), Schema(), ReasoningStart::kInside).status()),
            "response_format");
}

}  // namespace
}  // namespace portico
