#include "parser/core/tool_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "parser/core/call_writer.h"
#include "parser/odd_output_for_test.h"

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

// Nobody says which tools there are.
const ToolSet& NoList() {
  static const auto* const kNone = new ToolSet(Json(), false);
  return *kNone;
}

// A call began at any name, and was half a call at the end; the other projects read a whole text so.
TEST(ToolSets, WithoutAListACallThatIsNotFinishedIsText) {
  std::vector<OddOutput> outputs;
  for (const auto& [family, text] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"hermes", "So: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"x"},
           {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call> so"},
           {"json", "{\"name\": \"f\", \"arguments\": {\"a\": \"x}}"},
           {"json", "{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1"},
           {"mistral", "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}"},
           {"mistral", "[TOOL_CALLS]f[ARGS]{\"a\": 1"},
           {"qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>x</parameter>"},
           {"qwen3_coder", "<tool_call><function=f> so <parameter=a>1</parameter> and "},
           {"deepseekv4", "<｜DSML｜invoke name=\"f\" for=\"you\"><｜DSML｜parameter name=\"a\">x"},
           {"deepseekv3",
            "So: <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
            "{\"a\": so}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
           {"kimi_k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_"
            "begin|>{\"a\""},
           {"glm45", "<tool_call>f so <arg_key>a</arg_key><arg_value>x</arg_value>"},
           {"gemma4", "<|tool_call>call:f{a:<|\"|>x<|\"|><tool_call|>"},
           {"gemma4", "<|tool_call>call:f{a:<|\"|>x<|\"|> so,b:1"},
           {"pythonic", "[f(a=\"x\", b=[1"},
           {"minimax-m3",
            "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\"> so ]<]minimax[>[<a>x"},
           {"beam", " to=f<|channel|>analysis<|message|>so<rfl:parameter name=\"a\">x"},
           {"gpt-oss", "<|channel|>commentary to=functions.f so<|message|>{\"a\": 1<|call|>"}}) {
    outputs.push_back({family, text, {}});
  }
  std::vector<std::string> expected;
  for (const OddOutput& odd : outputs) expected.push_back(std::string(odd.text) + "|");
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].expected = expected[i];
  ExpectAtEverySplit(outputs, NoList());
}

TEST(ToolSets, WithoutAListACallThatIsFinishedIsOne) {
  ExpectAtEverySplit(
      {{"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>",
        "|f({\"a\": 1})"},
       {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {}}\nso", "\nso|f({})"},
       {"mistral", "[TOOL_CALLS][{\"name\": \"f\"}, {\"name\": \"g\", \"arguments\": {\"a",
        ", {\"name\": \"g\", \"arguments\": {\"a|f({})"},
       {"qwen3_coder",
        "<tool_call><function=f> so "
        "<parameter=a>1</parameter>\n</tool_call><tool_call><function=g>",
        "so <tool_call><function=g>|f({\"a\": 1})"},
       {"gpt-oss", "<|channel|>commentary to=functions.f so it<|message|>{\"a\": 1}",
        "so it|f({\"a\": 1})"}},
      NoList());
}

// SGLang's and smg's qwen want the end marker; hermes, in SGLang and vLLM, does not.
TEST(ToolSets, WithoutAListQwensCallNeedsItsEndMarker) {
  constexpr std::string_view kOpen = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}";
  const std::string behind = std::string(kOpen) + "\nso";
  const std::string closed = std::string(kOpen) + "\n</tool_call>so";
  ExpectAtEverySplit({{"qwen", kOpen, std::string(kOpen) + "|"},
                      {"qwen25", behind, behind + "|"},
                      {"qwen", closed, "so|f({})"}},
                     NoList());
  ExpectAtEverySplit({{"qwen", behind, "\nso|f({})"}},
                     ToolSet(*Json::Parse(R"([{"name": "f"}])"), false));
}

// With a list, or where calls of unknown tools are passed on, a name makes the call.
TEST(ToolSets, AKnownNameMakesTheCallWhateverFollows) {
  constexpr std::string_view kCut = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x";
  ExpectAtEverySplit({{"hermes", kCut, "|f({\"a\": \"x)…"}}, ToolSet(Json(), true));
  ExpectAtEverySplit({{"hermes", kCut, "|f({\"a\": \"x)…"}},
                     ToolSet(*Json::Parse(R"([{"name": "f"}])"), false));
}

// Memory is bounded: beyond what may be held a call is one.
TEST(ToolSets, WithoutAListACallThatIsTooLongToBeHeldIsOne) {
  for (const size_t bytes : {CallWriter::kMaxHeldBytes / 2, CallWriter::kMaxHeldBytes}) {
    const std::string begin = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"";
    const std::string text = begin + std::string(bytes, 'x');
    const std::string expected = bytes < CallWriter::kMaxHeldBytes
                                     ? text + "|"
                                     : "|f({\"a\": \"" + std::string(bytes, 'x') + ")…";
    std::vector<std::string_view> pieces;
    for (std::string_view rest = text; !rest.empty();) {
      pieces.push_back(rest.substr(0, 4000));
      rest.remove_prefix(std::min<size_t>(rest.size(), 4000));
    }
    const OddOutput odd = {"hermes", text, expected};
    EXPECT_EQ(ReadOdd(odd, NoList(), {text}) == expected, true) << bytes;
    EXPECT_EQ(ReadOdd(odd, NoList(), pieces) == expected, true) << bytes << " in pieces";
  }
}

}  // namespace
}  // namespace portico::parser
