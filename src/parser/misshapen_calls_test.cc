// Calls that models write a little beside their formats, as the tests of SGLang and vLLM have them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "parser/core/tool_set.h"
#include "parser/json/literal_relay.h"
#include "parser/odd_output_for_test.h"
#include "text/json.h"

namespace portico::parser {
namespace {

const ToolSet& KnownTools() {
  static const auto* const kKnown = new ToolSet(*Json::Parse(R"([
      {"function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}}}},
      {"function": {"name": "g"}}])"),
                                                false);
  return *kKnown;
}

// SGLang's rules take the templates of DeepSeek V3 and R1 for V3.1's, and all calls of these models were text.
TEST(MisshapenCalls, DeepseekV31ReadsTheCallsOfV3) {
  ExpectAtEverySplit(
      {{"deepseekv31",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
        "\"x\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "|f({\"a\": \"x\"})"},
       {"deepseekv31", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"x\"}<｜tool▁call▁end｜>",
        "|f({\"a\": \"x\"})"}},
      KnownTools());
  const ToolSet named(*Json::Parse(R"([{"function": {"name": "function"}}])"), false);
  ExpectAtEverySplit(
      {{"deepseekv31", "<｜tool▁call▁begin｜>function<｜tool▁sep｜> {\"a\": 1}<｜tool▁call▁end｜>",
        "|function({\"a\": 1})"},
       {"deepseekv3",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>function\n```json\n{}\n```<｜tool▁call▁end｜>",
        "|function({})"}},
      named);
}

// vllm#51914: one wrong token in the wrapper, and the call was text.
TEST(MisshapenCalls, AnInvocationOfDeepseekNeedsNoWrapper) {
  const std::string invoke =
      "<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" "
      "string=\"true\">x</｜DSML｜parameter>\n"
      "</｜DSML｜invoke>";
  const std::string bare = invoke + "\n</｜DSML｜tool_calls>";
  const std::string wrong = "<｜DSML｜toolcalls>\n" + invoke + "</｜DSML｜tool_calls> so";
  constexpr std::string_view kUnknown =
      "<｜DSML｜invoke name=\"h\"></｜DSML｜invoke></｜DSML｜tool_calls>";
  ExpectAtEverySplit({{"deepseekv4", bare, "|f({\"a\": \"x\"})"},
                      {"deepseekv4", wrong, "<｜DSML｜toolcalls>\n so|f({\"a\": \"x\"})"},
                      {"deepseekv4", kUnknown, std::string(kUnknown) + "|"}},
                     KnownTools());
}

// smg's and SGLang's tests have Inkling's calls without their header.
TEST(MisshapenCalls, InklingsHeaderMayBeMissingAndIsAName) {
  constexpr std::string_view kMangled =
      "<|message_model|>f{nvoke_tool_json|>{\"a\"}<|message_model|>g<|content_invoke_tool_json|>{"
      "\"name\":\"g\",\"args\":{}}<|end_message|>";
  ExpectAtEverySplit(
      {{"inkling",
        "So.<|content_invoke_tool_json|>{\"name\":\"f\",\"args\":{\"a\":\"x\"}}<|end_message|>",
        "So.|f({\"a\":\"x\"})"},
       {"inkling",
        "<|content_invoke_tool_json|>no<|end_message|><|message_model|><|content_text|>b<|end_"
        "message|><|content_invoke_tool_json|>{\"name\":\"g\",\"args\":{}}<|end_message|>",
        "<|content_invoke_tool_json|>nob|g({})"},
       {"inkling", kMangled, "<|message_model|>f{nvoke_tool_json|>{\"a\"}|g({})"}},
      KnownTools());
}

// Gemma 4 leaves the opener out behind its reasoning, or writes a colon behind it (vLLM's tests).
TEST(MisshapenCalls, GemmasCallsNeedNoOpenerInFrontOfAllText) {
  ExpectAtEverySplit(
      {{"gemma4", "call:f{a:<|\"|>x<|\"|>}", "|f({\"a\": \"x\"})"},
       {"gemma4", "<|tool_call>:call:f{a:<|\"|>x<|\"|>}<tool_call|>", "|f({\"a\": \"x\"})"},
       {"gemma4", "See call:f{a:<|\"|>x<|\"|>}", "See call:f{a:<|\"|>x<|\"|>}|"},
       {"gemma4", "call:h{a:1} it is", "call:h{a:1} it is|"}},
      KnownTools());
}

// The text between a key's quote and its colon vanished.
TEST(MisshapenCalls, TextBehindAQuotedKeyIsContent) {
  ExpectAtEverySplit(
      {{"gemma4", "<|tool_call>call:f{<|\"|>a<|\"|> so :1}<tool_call|>", "so|f({\"a\": 1})"}},
      KnownTools());
}

// Qwen's small models write two objects, a fence or doubled braces between the markers.
TEST(MisshapenCalls, ObjectsOfHermesMayStandInFencesInBracesAndTogether) {
  ExpectAtEverySplit(
      {{"hermes", "<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n{\"name\":\"g\"}\n</tool_call>",
        "|f({})g({})"},
       {"hermes", "<tool_call>\n```json\n{\"name\":\"f\",\"arguments\":{}}\n```\n</tool_call>",
        "|f({})"},
       {"hermes", "<tool_call>\n{{\"name\":\"f\",\"arguments\":{\"n\":1}}}\n</tool_call>",
        "|f({\"n\":1})"},
       {"hermes", "<tool_call>{\"name\":\"f\"}{\"x\":1}</tool_call>",
        "{\"x\":1}</tool_call>|f({})"}},
      KnownTools());
}

// Half of such an object became a call, and the other half text. vLLM's and SGLang's arguments are the string.
TEST(MisshapenCalls, ArgumentsInQuotesWithoutAnObjectAreAString) {
  ExpectAtEverySplit(
      {{"hermes", R"(<tool_call>{"name":"f","arguments":"hello \"world\"\n"}</tool_call>)",
        R"(|f("hello \"world\"\n"))"},
       {"hermes", R"(<tool_call>{"arguments":"null and void","name":"f"}</tool_call>)",
        R"(|f("null and void"))"},
       {"hermes", R"(<tool_call>{"name":"f","arguments":"nu"}</tool_call>)", R"(|f("nu"))"},
       {"hermes", R"(<tool_call>{"name":"f","arguments":" "}</tool_call>)", "|f({})"},
       {"hermes", R"(<tool_call>{"name":"f","arguments":"\ud83d\ude00 \ud83d"}</tool_call>)",
        "|f(\"😀 \xEF\xBF\xBD\")"},
       {"hermes", R"(<tool_call>{"name":"f","arguments":"hel)", R"(|f("hel)…)"},
       {"hermes", R"(<tool_call>{"name":"f","arguments":"hel\ud83d\u00)", R"(|f("hel\ud83d\u00)…)"},
       // The digits that were missing were taken from behind the string.
       {"hermes", R"(<tool_call>{"name":"f","arguments":"a\u12"}</tool_call>)", R"(|f("a\\u12"))"},
       {"hermes", R"(<tool_call>{"name":"f","arguments":"hello" so}</tool_call>)",
        R"(so}</tool_call>|f("hello"))"},
       {"gpt-oss", R"(<|channel|>commentary to=functions.f<|message|>"hello"<|call|>)",
        R"(|f("hello"))"}},
      KnownTools());
}

TEST(MisshapenCalls, ArgumentsThatAreNeitherObjectNorInQuotesMakeNoCall) {
  for (const OddOutput& odd :
       {OddOutput{"hermes", R"(<tool_call>{"name":"f","arguments":5}</tool_call>)", ""},
        OddOutput{"hermes", R"(<tool_call>{"name":"f","arguments":hel)", ""},
        OddOutput{"mistral", "[TOOL_CALLS]f[ARGS]hello", ""}}) {
    const std::string expected = std::string(odd.text) + "|";
    ExpectAtEverySplit({{odd.family, odd.text, expected}}, KnownTools());
  }
}

// A call of Kimi without its number was text.
TEST(MisshapenCalls, AToolsNameOfKimiNeedsNoNumber) {
  constexpr std::string_view kOther =
      "<|tool_call_begin|>call_1a<|tool_call_argument_begin|>{}<|tool_call_end|>";
  ExpectAtEverySplit(
      {{"kimi_k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        "|f({})"},
       {"kimi_k2", kOther, std::string(kOther) + "|"}},
      KnownTools());
}

// Each of these is what some release of the model writes; vLLM's parser of Granite takes a list without its marker.
TEST(MisshapenCalls, FamiliesReadTheOtherFormsOfTheirModels) {
  ExpectAtEverySplit(
      {{"granite", "[{\"name\": \"f\", \"arguments\": {\"n\": 1}}]", "|f({\"n\": 1})"},
       {"phi4_mini_json", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]<|/tool_call|>",
        "|f({})"},
       {"qwen3_coder", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>",
        "|f({\"n\": 1})"},
       {"qwen3_coder", "<function=f>{\"n\": 1}</function>\n</tool_call> so", " so|f({\"n\": 1})"},
       {"llama4_pythonic", "<|python_start|>{\"name\": \"f\", \"parameters\": {}}<|python_end|>",
        "|f({})"}},
      KnownTools());
}

// Shell commands have quotes like the ones around them: the call ended at the first, and the rest was text. vLLM's and
// SGLang's tests of LFM2 have the commands.
TEST(MisshapenCalls, QuotesWithinPythonsStringsAreKept) {
  ExpectAtEverySplit(
      {{"lfm2", "<|tool_call_start|>[f(a='sed -n '360,450p' /t/a.py', n=07)]<|tool_call_end|>",
        "|f({\"a\": \"sed -n '360,450p' /t/a.py\", \"n\": 7})"},
       {"lfm2",
        "<|tool_call_start|>[f(a='python3 -c \"print(latex(3*x, mul_symbol='\\,'))\"')]<|tool_call_"
        "end|>",
        "|f({\"a\": \"python3 -c \\\"print(latex(3*x, mul_symbol='\\\\,'))\\\"\"})"},
       {"lfm2", "<|tool_call_start|>[f(a='x' y<|tool_call_end|> so", " so|f({\"a\": \"x' y\"})"},
       {"lfm2", "<|tool_call_start|>[f(a='x'<|tool_call_end|>", "|f({\"a\": \"x\"})"},
       {"lfm2", "<|tool_call_start|>[f(a='x'], g(]<|tool_call_end|>",
        ", g(]<|tool_call_end|>|f({\"a\": \"x\"})"},
       {"pythonic", "[f(a='Martha's Vineyard'), f(a='dogs' bones'), g(b=['it's', 'x'])]",
        "|f({\"a\": \"Martha's Vineyard\"})f({\"a\": \"dogs' bones\"})g({\"b\": [\"it's\", "
        "\"x\"]})"},
       {"pythonic", "[f(a=\"x\" , n = 1)]", "|f({\"a\": \"x\", \"n\": 1})"},
       {"pythonic", "[f(a='x', n=\n)]", "|f({\"a\": \"x\", \"n\": null})"},
       {"olmo3", "<function_calls>f(a='dogs' bones')\ng()</function_calls>",
        "|f({\"a\": \"dogs' bones\"})g({})"}},
      KnownTools());
}

// Where no schema gives the type, a list became an object with one key several times.
TEST(MisshapenCalls, ItemsOfMinimaxM3MakeAListWithoutASchemaToo) {
  constexpr std::string_view kNested =
      "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"g\">]<]minimax[>[<l>]<]minimax[>[<item>1"
      "]<]minimax[>[</item>]<]minimax[>[<item>]<]minimax[>[<k>x]<]minimax[>[</k>]<]minimax[>[</"
      "item>"
      "]<]minimax[>[</l>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>";
  ExpectAtEverySplit({{"minimax-m3", kNested, "|g({\"l\": [1, {\"k\": \"x\"}]})"}}, KnownTools());
}

// simdjson and serde_json refuse them: the client could not send such a call back.
TEST(MisshapenCalls, HalfPairsOfSurrogatesAreReplaced) {
  const std::string text =
      R"(<tool_call>{"name":"f","arguments":{"a":"\ud83d\ude00 \ud83dx \ude00 \ud83d\ud83d\ude00\ud83d\n\ud83d"}}</tool_call>)";
  const std::string arguments =
      R"({"a":"\ud83d\ude00 \ufffdx \ufffd \ufffd\ud83d\ude00\ufffd\n\ufffd"})";
  EXPECT_TRUE(IsJson(arguments));
  ExpectAtEverySplit(
      {{"hermes", text, "|f(" + arguments + ")"},
       {"hermes", R"(<tool_call>{"name":"f","arguments":{"a":"\ud83d)", R"(|f({"a":"\ud83d)…)"},
       {"pythonic", R"([f(a='\ud83d'), f(a='\u12')])", R"(|f({"a": "\ufffd"})f({"a": "\\u12"}))"}},
      KnownTools());
}

// The first byte of a character was replaced, and the others were no character.
TEST(MisshapenCalls, BrokenArgumentsKeepTheirCharacters) {
  ExpectAtEverySplit(
      {{"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"x\"｜é</tool_call>",
        "|f({\"a\":\"x\",\"｜é\":null})"},
       {"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\" ｜}</tool_call>",
        "|f({\"a\" :\"｜}\"})"}},
      KnownTools());
}

// The marker became a part of the arguments, and so did all that followed.
TEST(MisshapenCalls, AMarkerOutsideOfStringsEndsArgumentsWithoutTheirBrackets) {
  ExpectAtEverySplit(
      {{"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"n\":1</tool_call> so",
        " so|f({\"n\":1})"},
       {"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"</tool_call>\"</tool_call>",
        "|f({\"a\":\"</tool_call>\"})"},
       {"hermes",
        "<tool_call>{\"name\":\"f\",\"arguments\":{\"n\":1\n<tool_call>{\"name\":\"g\"}</"
        "tool_call>",
        "|f({\"n\":1\n})g({})"},
       {"hermes",
        "<tool_call>{\"name\":\"f\",\"arguments\":{\"n\":1},\"id\":\"<tool_call>\"</tool_call>",
        "|f({\"n\":1})"},
       {"hermes",
        "<tool_call>{\"name\":\"h\",\"arguments\":{\"n\":1</tool_call><tool_call>{\"name\":\"g\"}",
        "<tool_call>{\"name\":\"h\",\"arguments\":{\"n\":1</tool_call>|g({})"},
       {"mistral", "[TOOL_CALLS]f[ARGS]{\"b\":[[\"x\"]][TOOL_CALLS]g[ARGS]{}",
        "|f({\"b\":[[\"x\"]]})g({})"},
       {"jamba", "<tool_calls>[{\"name\":\"f\",\"arguments\":{\"n\":1}</tool_calls> so",
        " so|f({\"n\":1})"},
       {"qwen3_coder", "<function=f>{\"n\": 1</function>", "|f({\"n\": 1})"},
       {"deepseekv4", "<｜DSML｜invoke name=\"f\">{\"n\": [1</｜DSML｜invoke>", "|f({\"n\": [1]})"},
       {"k2_horizon", "<ifm|tool_call>f{\"n\": 1</ifm|tool_call>", "|f({\"n\": 1})"}},
      KnownTools());
}

// Such a call was text, as all calls behind one without a name in the same section were.
TEST(MisshapenCalls, ACallInTagsNeedsNoSection) {
  constexpr std::string_view kMark = "]<]minimax[>[";
  const std::string m3_call = std::string(kMark) + "<invoke name=\"f\">" + std::string(kMark) +
                              "<a>x" + std::string(kMark) + "</a>" + std::string(kMark) +
                              "</invoke>";
  const std::string m3_nameless = std::string(kMark) + "<tool_call>" + std::string(kMark) +
                                  "<invoke>" + std::string(kMark) + "<a>x" + std::string(kMark) +
                                  "</a>" + std::string(kMark) + "</invoke>";
  const std::string m3_both = m3_nameless + m3_call + std::string(kMark) + "</tool_call>";
  const std::string m3_other =
      "See " + std::string(kMark) + "<invoke> and " + std::string(kMark) + "<invoke name=\"h\">x";
  ExpectAtEverySplit(
      {{"minimax-m2", "So:\n<invoke name=\"f\">\n<parameter name=\"a\">x</parameter>\n</invoke>",
        "So:\n|f({\"a\": \"x\"})"},
       {"minimax-m2", "<invoke name=\"g\"></invoke>\n</minimax:tool_call>", "|g({})"},
       {"minimax-m2", "An <invoke name=\"h\"><parameter name=\"a\">1</parameter></invoke>",
        "An <invoke name=\"h\"><parameter name=\"a\">1</parameter></invoke>|"},
       {"minimax-m2",
        "<minimax:tool_call><invoke><parameter name=\"a\">1</parameter></invoke><invoke "
        "name=\"g\"></invoke></minimax:tool_call>",
        "<minimax:tool_call><invoke><parameter name=\"a\">1</parameter></invoke>|g({})"},
       {"dots",
        "<dots_function_call><invoke></invoke><invoke name=\"g\"></invoke></dots_function_call>",
        "<dots_function_call><invoke></invoke>|g({})"},
       {"step3",
        "<steptml:invoke name=\"f\"><steptml:parameter "
        "name=\"a\">x</steptml:parameter></steptml:invoke>",
        "|f({\"a\": \"x\"})"},
       {"kimi_k3", "<|open|>call tool=\"g\" index=\"1\"<|sep|><|close|>call<|sep|>", "|g({})"},
       {"minimax-m3", m3_call, "|f({\"a\": \"x\"})"},
       {"minimax-m3", m3_both, m3_nameless + "|f({\"a\": \"x\"})"},
       {"minimax-m3", m3_other, m3_other + "|"}},
      KnownTools());
}

}  // namespace
}  // namespace portico::parser
