// What the grammars of calls admit, drawn at random from their masks, is what the parsers read as calls of the schemas.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/sanitized_for_test.h"
#include "service/constraint/call_writer_for_test.h"

namespace portico {
namespace {

using Mode = ToolChoice::Mode;

constexpr char kDrawnTools[] =
    R"([{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object",)"
    R"("additionalProperties":false,"required":["s","n"],"properties":{)"
    R"("s":{"type":"string","description":"a text"},"n":{"type":"integer","minimum":0,"maximum":99},)"
    R"("e":{"enum":["red","green"]},"u":{"anyOf":[{"type":"string"},{"type":"null"}]},"y":{"type":"boolean"}}}}},)"
    R"({"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{)"
    R"("l":{"type":"array","items":{"type":"integer"}},)"
    R"("o":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}}}},)"
    R"({"type":"function","function":{"name":"h","parameters":{"type":"object"}}},)"
    R"({"type":"function","function":{"name":"i","parameters":{"type":"object","not":{"required":["q"]},)"
    R"("properties":{"s":{"type":"string"}}}}}])";

bool IsArgumentsOf(std::string_view name, const Json& arguments) {
  if (!arguments.is_object()) return false;
  const auto is = [&](const char* key, auto&& fits) {
    const Json* const value = arguments.Find(key);
    return value == nullptr || fits(*value);
  };
  const auto is_string = [](const Json& v) { return v.is_string(); };
  const auto is_integer = [](const Json& v) { return v.is_int() || v.is_big_int(); };
  if (name == "f") {
    return arguments.Find("s") != nullptr && arguments.Find("n") != nullptr && is("s", is_string) &&
           is("n",
              [](const Json& v) { return v.is_int() && v.as_int() >= 0 && v.as_int() < 100; }) &&
           is("e", [](const Json& v) { return v == Json("red") || v == Json("green"); }) &&
           is("u", [](const Json& v) { return v.is_string() || v.is_null(); }) &&
           is("y", [](const Json& v) { return v.is_bool(); });
  }
  if (name == "g") {
    return is("l",
              [&](const Json& v) {
                return v.is_array() &&
                       std::all_of(v.as_array().begin(), v.as_array().end(), is_integer);
              }) &&
           is("o", [](const Json& v) {
             const Json* const x = v.Find("x");
             return x != nullptr && x->is_string();
           });
  }
  return false;
}

bool IsCallOf(std::string_view name, const std::string& text) {
  if (name == "h" || name == "i") return text.starts_with('{');  // numbers in it may have any size
  const auto arguments = Json::Parse(text);
  return arguments.ok() && IsArgumentsOf(name, *arguments);
}

const std::vector<DrawnFamily>& DrawnFamilies() {
  static const auto* const kFamilies = new std::vector<DrawnFamily>{
      {"mimo"},
      {"hunyuan"},
      {"hunyuan", {"<tool_calls:a1>", "</tool_calls:a1>", "<tool_call:a1>", "</tool_call:a1>"}},
      {"step3"},
      {"step3", {"<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_sep｜>"}},
      {"minicpm5"},
      {"kimi_k3"},
      {"kimi_k3", {"<|open|>", "<|close|>", "<|sep|>"}},
      {"minimax-m3"},
      {"minimax-m3", {"]<]minimax[>["}},
      {"gemma4"},
      {"gemma4", {"<|tool_call>", "<tool_call|>", "<|\"|>"}},
      {"functiongemma"},
      {"muse"},
      {"beam"},
      {"beam",
       {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>",
        "<|constrain|>"}},
      {"inkling"},
      {"inkling", {"<|message_model|>", "<|content_invoke_tool_json|>", "<|end_message|>"}},
      {"qwen3_coder", {"<tool_call>", "</tool_call>"}},
      {"seed_oss", {"<seed:tool_call>", "</seed:tool_call>"}},
      {"glm45",
       {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}},
      {"minimax-m2", {"<minimax:tool_call>", "</minimax:tool_call>"}},
      {"deepseekv32", {"｜DSML｜"}},
      {"deepseekv41", {"｜DSML｜"}}};
  return *kFamilies;
}

ChatRequest Demand(bool required, bool parallel) {
  ChatRequest request;
  request.messages = Json(JsonArray{});
  request.tools = *Json::Parse(kDrawnTools);
  request.tool_choice.mode = required ? Mode::kRequired : Mode::kAuto;
  request.parallel_tool_calls = parallel;
  return request;
}

// Families without a form had a JSON list for required calls and a 400 for all else.
TEST(CallGrammars, WhatTheyAdmitIsReadAsCallsOfTheSchemas) {
  std::mt19937 random(1);
  const std::vector<DrawnFamily>& families = DrawnFamilies();
  for (size_t k = 0; k < families.size(); k += kSanitized ? 2 : 1) {
    const DrawnFamily& family = families[k];
    const CallGrammarWriter writer(family.name, family.special);
    ASSERT_NE(writer.model().output.form, nullptr) << family.name;
    for (const bool parallel : {false, true}) {
      const ChatRequest request = Demand(true, parallel);
      const auto grammar = writer.Compile(request);
      ASSERT_TRUE(grammar.ok()) << family.name << ": " << grammar.status().message();
      size_t drawn = 0;
      for (int i = 0; i < 20; ++i) {
        const std::string text = writer.Draw(*grammar, &random, "");
        if (text.empty()) continue;
        ++drawn;
        const parser::Collector got = writer.Read(text, request);
        EXPECT_EQ(got.content, "") << family.name << ": " << text;
        ASSERT_FALSE(got.calls.empty()) << family.name << ": " << text;
        EXPECT_TRUE(parallel || got.calls.size() == 1) << family.name << ": " << text;
        for (const parser::Collector::Call& call : got.calls) {
          EXPECT_TRUE(call.complete) << family.name << ": " << text;
          EXPECT_TRUE(IsCallOf(call.name, call.arguments)) << family.name << ": " << text << "\n"
                                                           << call.name << call.arguments;
        }
      }
      EXPECT_GE(drawn, 2u) << family.name;
    }
  }
}

TEST(CallGrammars, OneCallAtMostComesBehindText) {
  std::mt19937 random(2);
  for (const DrawnFamily& family : DrawnFamilies()) {
    if (std::string_view(family.name) == "beam") continue;  // has messages around its text
    const CallGrammarWriter writer(family.name, family.special);
    const ChatRequest request = Demand(false, false);
    const auto grammar = writer.Compile(request);
    ASSERT_TRUE(grammar.ok()) << family.name << ": " << grammar.status().message();
    const std::string begin = "Well: " + writer.model().output.form->begins;
    size_t drawn = 0;
    for (int i = 0; i < 10; ++i) {
      std::string text = writer.Draw(*grammar, &random, begin);
      if (text.empty()) continue;
      ++drawn;
      // The header of a message to a tool is free text.
      if (std::string_view(family.name) == "inkling") text.insert(6, "<|message_model|>");
      const parser::Collector got = writer.Read(text, request);
      EXPECT_EQ(absl::StripAsciiWhitespace(got.content), "Well:") << family.name << ": " << text;
      ASSERT_EQ(got.calls.size(), 1u) << family.name << ": " << text;
      EXPECT_TRUE(IsCallOf(got.calls[0].name, got.calls[0].arguments)) << text;
    }
    EXPECT_GE(drawn, 1u) << family.name;
  }
}

TEST(CallGrammars, StrictToolsHoldWhatTheFormCanSayOrAreRefused) {
  const CallGrammarWriter writer("gemma4", {});
  const auto compile = [&](const char* property) {
    ChatRequest request;
    request.tool_choice.mode = Mode::kAuto;
    request.tools = *Json::Parse(fmt::format(
        R"([{{"type":"function","function":{{"name":"f","strict":true,"parameters":{{"type":"object","properties":{{"a":{}}}}}}}}}])",
        property));
    return writer.Compile(request).status();
  };
  for (const char* good :
       {R"({"type":"string"})", R"({"enum":["a","b"]})", R"({"type":["string","null"]})",
        R"({"type":"array","items":{"type":"number"},"minItems":1,"maxItems":3})",
        R"({"type":"object","properties":{"b":{"type":"integer","minimum":3}},"required":["b"]})",
        R"({"anyOf":[{"type":"integer"},{"type":"null"}]})"}) {
    EXPECT_TRUE(compile(good).ok()) << good << compile(good).message();
  }
  for (const char* bad :
       {R"({"type":"string","minLength":3})", R"({"type":"string","format":"date"})",
        R"({"type":"array","uniqueItems":true})", R"({"enum":["a<|\"|>"]})",
        R"({"type":"object","maxProperties":1})", R"({"type":"integer","multipleOf":0.5})"}) {
    EXPECT_FALSE(compile(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace portico
