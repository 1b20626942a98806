#include "parser/declared/declared_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "parser/collector.h"

namespace portico::parser {
namespace {

using Pieces = std::vector<std::string_view>;

constexpr char kTools[] = R"([{"name": "f", "parameters": {"properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}}}}, {"name": "g"}])";

// Qwen's, as checkpoints declare it.
constexpr char kQwen[] =
    R"json({"defaults": {"role": "assistant"}, "start_anchor": "<|im_start|>assistant\n", "fields": {
    "thinking": {"open": "<think>", "close": "</think>"}, "content": {},
    "tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "repeats": true, "content": "json",
                   "transform": {"type": "function", "function": {
                       "name": "{content.name}", "arguments": "{content.arguments}"}}}}})json";
// Gemma's: a name in the pattern, quotes and keys of its own.
constexpr char kGemma[] =
    R"json({"start_anchor": "<start_of_turn>model\n", "fields": {"content": {},
    "tool_calls": {"open_pattern": "<\\|tool_call>call:(?P<name>\\w+)", "close": "<tool_call|>", "content": "json",
                   "content_args": {"unquoted_keys": true, "string_delims": [["<|\"|>", "<|\"|>"]]},
                   "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}}})json";
// Mistral's: a list of calls.
constexpr char kMistral[] = R"json({"start_anchor": "[/INST]", "fields": {"content": {},
    "tool_calls": {"open": "[TOOL_CALLS]", "close": "</s>", "content": "json", "transform_each": true,
                   "transform": {"function": {"name": "{name}", "arguments": "{arguments}"}}}}})json";
constexpr char kLines[] = R"json({"start_anchor": "A:", "fields": {"content": {},
    "tool_calls": {"open_pattern": "CALL (?P<name>\\w+)\n", "close": "END", "content": "kv-lines",
                   "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}}})json";

std::string Read(const char* format, const Pieces& pieces) {
  Collector out;
  const ToolSet tools(*Json::Parse(kTools), false);
  DeclaredParser parser(*ResponseTemplate::Load(*Json::Parse(format)), {}, tools, &out);
  for (std::string_view piece : pieces) parser.Feed(piece);
  parser.Finish();
  std::string text = out.content + "|" + out.reasoning + "|";
  for (const Collector::Call& call : out.calls) {
    text += call.name + "(" + call.arguments + ")" + (call.complete ? "" : "…");
  }
  return text;
}

TEST(DeclaredParserTest, WhatACheckpointDeclaresIsReadTheSameHoweverItIsCut) {
  const struct {
    const char* format;
    const char* text;
    const char* expected;
  } kCases[] = {
      {kQwen,
       "<think>\nt</think>Hi <tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": "
       "\"</tool_call>\"}}\n</tool_call>\n<tool_call>{\"name\": \"g\", \"arguments\": "
       "{}}</tool_call>",
       "Hi |\nt|f({\"city\": \"</tool_call>\"})g({})"},
      {kQwen, "<tool_call>{\"name\": \"nobody\", \"arguments\": {}}</tool_call> x",
       "<tool_call>{\"name\": \"nobody\", \"arguments\": {}}</tool_call> x||"},
      {kQwen, "<tool_call>{\"name\": \"f\", \"arguments\": {\"city\": \"Co",
       "||f({\"city\": \"Co)…"},
      {kQwen, "<tool_call>no JSON</tool_call>", "<tool_call>no JSON</tool_call>||"},
      {kQwen, "plain <tool", "plain <tool||"},
      {kGemma,
       "ok<|tool_call>call:f{city:<|\"|>a\"{b:<|\"|>,days:3,o:{k:[1,<|\"|>x<|\"|>]}}<tool_call|>",
       "ok||f({\"city\":\"a\\\"{b:\",\"days\":3,\"o\":{\"k\":[1,\"x\"]}})"},
      {kGemma, "<|tool_call>call:h{city:<|\"|>a<|\"|>}<tool_call|>",
       "<|tool_call>call:h{city:<|\"|>a<|\"|>}<tool_call|>||"},
      {kMistral,
       "x [TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"city\": \"[]\"}}, {\"name\": \"g\", "
       "\"arguments\": {}}]</s>",
       "x ||f({\"city\": \"[]\"})g({})"},
      {kLines, "CALL f\ncity: Rome: old\ndays: 4\nEND",
       "||f({\"city\": \"Rome: old\", \"days\": 4})"},
      {kLines, "CALL f\ndays: 4\ncity: Ro", "||f({\"days\": 4, \"city\": \"Ro)…"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.text);
    const std::string_view text = c.text;
    EXPECT_EQ(Read(c.format, {text}), c.expected);
    Pieces bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      bytes.push_back(text.substr(i, 1));
      EXPECT_EQ(Read(c.format, {text.substr(0, i), text.substr(i)}), c.expected) << i;
    }
    EXPECT_EQ(Read(c.format, bytes), c.expected);
  }
}

TEST(DeclaredParserTest, ALongTextTakesLinearTime) {
  for (const char* format : {kQwen, kGemma, kMistral, kLines}) {
    for (const char* piece :
         {"<tool_call>", "<|tool_call>call:", "CALL ", "<think>", "{", " ", "\""}) {
      std::string text;
      while (text.size() < 256 << 10) text += piece;
      EXPECT_FALSE(Read(format, {text}).empty());
    }
  }
}

TEST(DeclaredParserTest, WhatCannotBeReadIsRefusedWithItsPlace) {
  const struct {
    const char* format;
    const char* place;
  } kCases[] = {
      {R"([])", "must be an object"},
      {R"({"start_anchor": "x"})", "fields"},
      {R"({"fields": {"content": {}}})", "start_anchor"},
      {R"({"version": 2, "start_anchor": "x", "fields": {"content": {}}})", "version"},
      {R"({"start_anchor": "x", "fields": {"mood": {}}})", "fields.mood"},
      {R"({"start_anchor": "x", "fields": {"content": {"closes": "y"}}})", "`closes`"},
      {R"({"start_anchor": "x", "fields": {"content": {"open": ""}}})", "none of them empty"},
      {R"({"start_anchor": "x", "fields": {"content": {"open_pattern": "("}}})",
       "no regular expression"},
      {R"({"start_anchor": "x", "fields": {"content": {}, "thinking": {}}})", "no `open`"},
      {R"({"start_anchor": "x", "fields": {"content": {"content": "json"}}})", "must be text"},
      {R"({"start_anchor": "x", "fields": {"tool_calls": {"content": "json"}}})", "calls need"},
      {R"({"start_anchor": "x", "fields": {"tool_calls": {"open": "y", "content": "xml-inline",
           "content_args": {"tag_pattern": "<(?P<key>.)>"}}}})",
       "tag_pattern"},
      {R"({"start_anchor": "x", "fields": {"tool_calls": {"open": "y", "content": "json",
           "transform": {"function": {"name": "{who}", "arguments": "{content}"}}}}})",
       "{who}"},
  };
  for (const auto& c : kCases) {
    const auto loaded = ResponseTemplate::Load(*Json::Parse(c.format));
    ASSERT_FALSE(loaded.ok()) << c.format;
    EXPECT_NE(MessageOf(loaded.status()).find(c.place), std::string_view::npos)
        << MessageOf(loaded.status());
  }
}

// PCRE2 takes no expression of that length, and the program ended.
TEST(DeclaredParserTest, ATextThatIsTooLongToBeLookedForIsRefused) {
  const Json field = Json(JsonObject{{"content", Json(JsonObject{})}});
  const auto loaded = ResponseTemplate::Load(
      Json(JsonObject{{"start_anchor", Json(std::string(70000, 'x'))}, {"fields", field}}));
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(MessageOf(loaded.status()).find("`start_anchor`"), std::string_view::npos);
  EXPECT_LT(MessageOf(loaded.status()).size(), 1000u);
}

}  // namespace
}  // namespace portico::parser
