// What models write beside their formats: one result however the text is cut, and no byte of it is lost.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "parser/collector.h"
#include "parser/odd_output_for_test.h"
#include "parser/output_parser.h"
#include "text/json.h"

namespace portico::parser {
namespace {

// CDATA was looked for at the beginning of each piece of a value, not of the value.
TEST(OddOutputs, CdataBeginsAValueOrIsAPartOfIt) {
  const std::string far(1100, ' ');
  const std::string behind_space =
      "<function name=\"f\"><param name=\"a\">" + far + "<![CDATA[x]]></param></function>";
  const std::string as_text = "|f({\"a\": \"" + far + "<![CDATA[x]]>\"})";
  ExpectAtEverySplit(
      {{"minicpm5",
        "<function name=\"f\"><param name=\"html\">Hello <![CDATA[ a < b </param> ]]></param>"
        "</function>",
        "]]></param>|f({\"html\": \"Hello <![CDATA[ a < b \"})"},
       {"minicpm5",
        "<function name=\"f\"><param name=\"a\"> <![CDATA[</param>]]></param></function>",
        "|f({\"a\": \"</param>\"})"},
       {"minicpm5", behind_space, as_text}});
}

// A fence was looked for at the beginning of each piece of the arguments.
TEST(OddOutputs, AFenceWithinArgumentsMakesThemNone) {
  constexpr std::string_view kWhole = "<｜tool▁call▁begin｜>g\n{```";
  constexpr std::string_view kOpen = "<｜tool▁call▁begin｜>g\n```json\n{\n```<｜tool▁call▁end｜>";
  ExpectAtEverySplit({{"deepseekv3", kWhole, std::string(kWhole) + "|"},
                      {"deepseekv3", kOpen, std::string(kOpen) + "|"}});
}

// White space in front of text between tags was dropped if it came alone.
TEST(OddOutputs, TextBetweenNestedTagsIsContentWithoutTheSpaceBeforeIt) {
  ExpectAtEverySplit(
      {{"minimax-m3",
        "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">\nhello "
        "you\n]<]minimax[>[<a>x]<]minimax[>[</a>\n]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
        "hello you\n|f({\"a\": \"x\"})"}});
}

// A value that ends where another begins, without a byte of its own between, ended where the text was cut.
TEST(OddOutputs, AnEndThatLooksAheadIsTheSameEverywhere) {
  const std::string begin =
      " to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name=\"a\">";
  const std::string none = begin + "<rfl:parameter name=\"</rfl:parameter>";
  const std::string two =
      begin + "x<rfl:parameter name=\"b\">y\n<rfl:parameter name=\"c\">z</rfl:parameter><|call|>";
  ExpectAtEverySplit({{"beam", none, "<rfl:parameter name=\"</rfl:parameter>|f({\"a\": \"\")…"},
                      {"beam", two, "|f({\"a\": \"x\", \"b\": \"y\", \"c\": \"z\"})"}});
}

// Null as arguments made the call, and the text behind them came out as content; other families passed null on.
TEST(OddOutputs, NullAsArgumentsIsAnEmptyObject) {
  ExpectAtEverySplit(
      {{"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": null}</tool_call>", "|f({})"},
       {"hermes", "<tool_call>{\"arguments\": null , \"name\": \"f\"}</tool_call>x", "x|f({})"},
       {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \"null\"}</tool_call>", "|f({})"},
       {"mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": null}]", "|f({})"},
       {"mistral", "[TOOL_CALLS]f[ARGS]null[TOOL_CALLS]g[ARGS]{}", "|f({})g({})"},
       {"llama3", "{\"name\": \"f\", \"parameters\": null}", "|f({})"},
       {"cohere_command4",
        "<|START_ACTION|>[{\"tool_name\": \"f\", \"parameters\": null}]<|END_ACTION|>", "|f({})"},
       {"apertus2509", "<|tools_prefix|>[{\"f\": null}, {\"g\": {}}]<|tools_suffix|>",
        "|f({})g({})"},
       {"deepseekv31", "<｜tool▁call▁begin｜>f<｜tool▁sep｜> null<｜tool▁call▁end｜>", "|f({})"},
       {"kimi_k2",
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>null<|tool_call_end|>",
        "|f({})"},
       {"gpt-oss", "<|channel|>commentary to=functions.f<|message|>null<|call|>", "|f({})"}});
}

// The text of arguments in quotes was passed on as it was, in Harmony's calls and those without an object around them.
TEST(OddOutputs, ArgumentsInQuotesAreWhatTheQuotesHold) {
  ExpectAtEverySplit(
      {{"gpt-oss", "<|channel|>commentary to=functions.f<|message|>\"{\\\"a\\\": 1}\"<|call|>",
        "|f({\"a\": 1})"},
       {"gpt-oss", "<|channel|>commentary to=functions.f<|message|>\"\"<|call|>", "|f({})"},
       {"deepseekv31",
        "<｜tool▁call▁begin｜>f<｜tool▁sep｜>\"{\\\"a\\\": \\\"x\\\"}\"<｜tool▁call▁end｜>",
        "|f({\"a\": \"x\"})"}});
}

// Text behind the arguments vanished where a marker or a quote ended them.
TEST(OddOutputs, TextBehindFinishedArgumentsIsContent) {
  ExpectAtEverySplit(
      {{"gpt-oss", "<|channel|>commentary to=functions.f<|message|>{\"a\":1} tail words <|call|>",
        "tail words |f({\"a\":1})"},
       {"gpt-oss", "<|channel|>commentary to=functions.f<|message|>\"{}\" tail<|call|>",
        "tail|f({})"},
       {"gpt-oss", "<|channel|>commentary to=functions.f<|message|>{\"a\":1}\n<|call|>",
        "|f({\"a\":1})"},
       {"hermes",
        "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1} tail "
        "words\\n\"}</tool_call>",
        "tail words\n|f({\"a\":1})"},
       {"hermes", "<tool_call>{\"arguments\":\"{\\\"a\\\":1} tail\",\"name\":\"f\"}</tool_call>",
        "tail|f({\"a\":1})"}});
}

// Words between the id's marker and the arguments' vanished.
TEST(OddOutputs, WhatIsNoIdMakesACallOfMistralText) {
  ExpectAtEverySplit({{"mistral", "[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g[CALL_ID]see below: [ARGS]{}",
                       "[TOOL_CALLS]g[CALL_ID]see below: [ARGS]{}|f({})"},
                      {"mistral", "[TOOL_CALLS]g[CALL_ID]a1b2c3d4e[ARGS]{}", "|g({})"}});
}

// A key without a value vanished.
TEST(OddOutputs, AKeyWithoutAValueHasAnEmptyOne) {
  ExpectAtEverySplit(
      {{"glm45", "<tool_call>f<arg_key>x</arg_key></tool_call>", "|f({\"x\": \"\"})"},
       {"glm45",
        "<tool_call>f<arg_key>x</arg_key><arg_key>y</arg_key><arg_value>1</arg_value></tool_call>",
        "|f({\"x\": \"\", \"y\": 1})"},
       {"hunyuan",
        "<tool_calls><tool_call>f<tool_sep><arg_key>x</arg_key> so</tool_call></tool_calls>",
        "so|f({\"x\": \"\"})"}});
}

// An object with a tool's name and other members became a call, and they vanished. smg's tests have calls of a name alone.
TEST(OddOutputs, AnObjectInPlainTextWithOtherMembersIsACallOnlyWithArguments) {
  const ToolSet tools(*Json::Parse(R"([{"function": {"name": "g"}}])"), false);
  ExpectAtEverySplit({{"json", R"({"name":"g","type":"x"})", R"({"name":"g","type":"x"}|)"},
                      {"llama3", R"(See {"id":3,"name":"g"}.)", R"(See {"id":3,"name":"g"}.|)"},
                      {"json", R"(See {"name": "g"})", "See |g({})"},
                      {"json", R"({"name":"g","type":"x","arguments":{}})", "|g({})"},
                      {"hermes", R"(<tool_call>{"name":"g"}</tool_call>)", "|g({})"}},
                     tools);
}

// What waited for more to tell what it is vanished where the length limit cut a call off.
TEST(OddOutputs, ACallThatIsCutOffHasAllThatCameOfIt) {
  const ToolSet typed(*Json::Parse(R"([{"function": {"name": "f", "parameters": {"properties": {
      "t": {"type": "boolean"}, "o": {"type": ["object", "string"]}, "s": {"type": ["string", "null"]}}}}}])"),
                      false);
  ExpectAtEverySplit(
      {{"hermes", R"(<tool_call>{"name": "f", "arguments": {"a": tru)", R"(|f({"a": tru)…)"},
       {"hermes", R"(<tool_call>{"name": "f", "arguments": {"a": Fal)", R"(|f({"a": fal)…)"},
       {"hermes", R"(<tool_call>{"name": "f", "arguments": {"a": 12, )", R"(|f({"a": 12, )…)"},
       {"hermes", R"(<tool_call>{"name": "f", "arguments": {"a": "\u00)", R"(|f({"a": "\u00)…)"},
       {"hermes", R"(<tool_call>{"name": "f", "arguments": {"a": wo)", R"(|f({"a": "wo)…)"},
       {"deepseekv31", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1", "|f({\"a\": 1)…"},
       {"gpt-oss", "<|channel|>commentary to=functions.f<|message|>{\"a\": 1", "|f({\"a\": 1)…"},
       {"qwen3_coder", "<function=f>\n<parameter=x>\n{\"big\": \"text",
        "|f({\"x\": {\"big\": \"text)…"},
       {"qwen3_coder", "<function=f>\n<parameter=x>\n\"quo\" te", "|f({\"x\": \"\\\"quo\\\" te)…"},
       {"seed_oss", "<function=f><parameter=x>12", "|f({\"x\": 12)…"},
       {"glm45", "<tool_call>f<arg_key>x</arg_key><arg_value>[1, 2", "|f({\"x\": [1, 2)…"},
       {"minimax-m2", "<minimax:tool_call><invoke name=\"f\"><parameter name=\"x\">[{\"a\": nul",
        "|f({\"x\": [{\"a\": nul)…"},
       {"step3",
        "<｜tool_calls_begin｜><steptml:invoke name=\"f\"><steptml:parameter name=\"x\">\"q",
        "|f({\"x\": \"q)…"},
       {"minimax-m3",
        "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<x>{\"a",
        "|f({\"x\": {\"a)…"},
       {"muse", "<atem:invoke name=\"f\"><atem:parameter name=\"x\">{\"a\": 1",
        "|f({\"x\": {\"a\": 1)…"},
       {"functiongemma", "<start_function_call>call:f{a:<escape>[1, 2", "|f({\"a\": [1, 2)…"},
       {"gemma4", "<|tool_call>call:f{a:12", "|f({\"a\": 12)…"},
       {"pythonic", "[f(a=Tru", "|f({\"a\": tru)…"}});
  ExpectAtEverySplit(
      {{"qwen3_coder", "<function=f><parameter=t>Tru", "|f({\"t\": tru)…"},
       {"qwen3_coder", "<function=f><parameter=o>{\"a\": 1", "|f({\"o\": {\"a\": 1)…"},
       {"qwen3_coder", "<function=f><parameter=s>nul", "|f({\"s\": \"nul)…"}},
      typed);
}

// Words in the place of a header vanished.
TEST(OddOutputs, WordsThatAreNoHeaderOfHarmonyAreText) {
  ExpectAtEverySplit(
      {{"gpt-oss", "<|channel|>The answer is <|message|>hi", "The answer ishi|"},
       {"gpt-oss", "<|start|>Well, yes.<|message|>hi<|end|>", "Well, yes.hi|"},
       {"gpt-oss", "<|channel|>analysis so I think<|message|>t", "|so I thinkt|"},
       {"gpt-oss", "<|channel|>final <|constrain|>json and more<|message|>{}", "and more{}|"},
       {"gpt-oss", "<|channel|>commentary to=functions.f now please<|message|>{}<|call|>",
        "now please|f({})"},
       {"gpt-oss",
        "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
        "|f({})"},
       {"gpt-oss", "<|start|>functions.g to=assistant<|channel|>commentary<|message|>x", "x|"},
       {"gpt-oss", "<|channel|>mood<|message|>x", "x|"}});
}

// Text behind a list or an object where the schema asks for one vanished.
TEST(OddOutputs, TextBehindAParametersObjectIsContent) {
  const ToolSet tools(*Json::Parse(R"([{"function": {"name": "f", "parameters": {"properties": {
      "l": {"type": "array"}}}}}])"),
                      false);
  ExpectAtEverySplit(
      {{"qwen3_coder", "<function=f>\n<parameter=l>\n[1] tail words\n</parameter>\n</function>",
        "tail words|f({\"l\": [1]})"},
       {"deepseekv32",
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"x\" "
        "string=\"false\">{\"a\":1} "
        "tail</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
        "tail|f({\"x\": {\"a\":1}})"},
       {"minimax-m3",
        "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<l>[2] tail"
        "]<]minimax[>[</l>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
        "tail|f({\"l\": [2]})"},
       {"functiongemma",
        "<start_function_call>call:f{l:<escape>[3] tail<escape>}<end_function_call>",
        "tail|f({\"l\": [3]})"}},
      tools);
}

// A name with a line break and an escaped one behind it was none if the text was cut within the escape.
TEST(OddOutputs, EscapedLineBreaksBehindANameMayBeCut) {
  ExpectAtEverySplit(
      {{"glm45", "<tool_call>f\n\\n<arg_key>a</arg_key><arg_value>x</arg_value></tool_call>",
        "|f({\"a\": \"x\"})"},
       {"glm45", "<tool_call>f\n\\<arg_key>", "<tool_call>f\n\\<arg_key>|"}});
}

// Parameters behind JSON that is the arguments made them two objects.
TEST(OddOutputs, ParametersBehindAJsonBodyAreContent) {
  ExpectAtEverySplit(
      {{"deepseekv4",
        "<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\">{\"a\": 1}<｜DSML｜parameter name=\"b\">x"
        "</｜DSML｜invoke></｜DSML｜tool_calls>",
        "<｜DSML｜parameter name=\"b\">x|f({\"a\": 1})"},
       {"k2_horizon",
        "<ifm|tool_call>f{\"a\": 1}<ifm|arg_key>b</ifm|arg_key><ifm|arg_value>2</ifm|arg_value>"
        "</ifm|tool_call>",
        "<ifm|arg_key>b<ifm|arg_value>2</ifm|arg_value>|f({\"a\": 1})"}});
}

// What came behind the name vanished, and a call without arguments stood in its place.
TEST(OddOutputs, AnObjectThatIsCutWithinAnotherMemberIsText) {
  ExpectAtEverySplit(
      {{"hermes", R"(<tool_call>{"name": "f", "why": "it ra)",
        R"(<tool_call>{"name": "f", "why": "it ra|)"},
       {"hermes", R"(<tool_call>{"name": "f", "wh)", R"(<tool_call>{"name": "f", "wh|)"},
       {"hermes", R"(<tool_call>{"name": "f", "arguments: {}}</tool_call>)",
        R"(<tool_call>{"name": "f", "arguments: {}}</tool_call>|)"},
       {"llama3", R"({"name": "f", "wh)", R"({"name": "f", "wh|)"},
       {"jamba", R"(<tool_calls>[{"name": "f", "arguments": {}}, {"name": "g", "x": 1)",
        R"(, {"name": "g", "x": 1|f({}))"},
       {"hermes", R"(<tool_call>{"name": "f", "argu)", "|f()…"},
       {"hermes", R"(<tool_call>{"name": "f", "id": "c1)", "|f()…"},
       {"hermes", R"(<tool_call>{"name": "f", "arguments": )", "|f()…"},
       {"hermes", R"(<tool_call>{"name": "f")", "|f()…"}});
}

// Attributes beside those that tags have vanished.
TEST(OddOutputs, AttributesThatATagDoesNotHaveAreContent) {
  ExpectAtEverySplit(
      {{"minimax-m2",
        "<minimax:tool_call>\n<invoke name=\"f\" for=\"you\" now>\n<parameter name=\"a\" "
        "lang='en'>x"
        "</parameter>\n</invoke>\n</minimax:tool_call>",
        "for=\"you\" nowlang='en'|f({\"a\": \"x\"})"},
       {"deepseekv4",
        "<｜DSML｜tool_calls><｜DSML｜invoke kind=x name=\"f\" /></｜DSML｜tool_calls>",
        "kind=x|f({})"},
       {"deepseekv32",
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" "
        "string=\"true\" so = \"b "
        "c\">5</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
        "so = \"b c\"|f({\"a\": \"5\"})"},
       {"kimi_k3",
        "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"n\" "
        "type=\"number\"<|sep|>6<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        "|f({\"n\": 6})"}});
}

// All words that began with `to=` vanished, and a recipient that is no tool.
TEST(OddOutputs, HarmonyHasOneRecipientAndOtherWordsAreText) {
  const ToolSet tools(*Json::Parse(R"([{"function": {"name": "f"}}])"), false);
  ExpectAtEverySplit(
      {{"gpt-oss", "<|channel|>commentary to=functions.f to=you<|message|>{}<|call|>",
        "to=you|f({})"},
       {"gpt-oss", "<|channel|>commentary well,to=functions.f<|message|>{}<|call|>", "|f({})"},
       {"gpt-oss", "<|start|>well, soto=functions.f<|channel|>commentary<|message|>{}<|call|>",
        "well, so|f({})"},
       {"gpt-oss", "<|channel|>commentary to=functions.f<b><|message|>{}<|call|>", "|f({})"},
       {"gpt-oss", "<|channel|>commentary json to=functions.f<b><|message|>{}<|call|>",
        "json  <b>|f({})"},
       {"gpt-oss", "<|channel|>analysis to=nobody<|message|>t", "|nobodyt|"},
       {"gpt-oss", "<|channel|>analysis to=browser.open<|message|>t", "|t|"},
       {"gpt-oss", "<|channel|>analysis to=f<|message|>{}<|call|>", "|f({})"}},
      tools);
}

// It vanished, however often it came.
TEST(OddOutputs, ASecondOpenerIsAPartOfTheReasoning) {
  for (const bool inside : {false, true}) {
    const std::string_view text = "<think>\n<think>\na</think>b";
    const ToolSet tools;
    OutputFormat format;
    format.reasoning = FindReasoning("qwen3");
    format.in_reasoning = inside;
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      Collector out;
      auto parser = OutputParser::Make(format, tools, &out);
      parser->Feed(text.substr(0, cut));
      parser->Feed(text.substr(cut));
      parser->Finish();
      EXPECT_EQ(out.reasoning, "\n<think>\na") << inside << cut;
      EXPECT_EQ(out.content, "b");
    }
  }
}

// The beginning of the name vanished.
TEST(OddOutputs, ANameBehindOtherWordsIsAnother) {
  const ToolSet tools(*Json::Parse(R"([{"function": {"name": "g"}}])"), false);
  constexpr std::string_view kKimi =
      "<|tool_call_begin|>abcfunctions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>";
  ExpectAtEverySplit(
      {{"kimi_k2", kKimi, std::string(kKimi) + "|"},
       {"kimi_k2",
        "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "|g({})"},
       {"hermes", R"(<tool_call>{"name": "tools.g", "arguments": {}}</tool_call>)", "|g({})"},
       {"hermes", R"(<tool_call>{"name": "g.g", "arguments": {}}</tool_call>)", "|g({})"},
       {"hermes", R"(<tool_call>{"name": "x.g", "arguments": {}}</tool_call>)",
        R"(<tool_call>{"name": "x.g", "arguments": {}}</tool_call>|)"}},
      tools);
}

// Of much white space at a value's end as much was kept as was left of it where the text was cut.
TEST(OddOutputs, MuchWhiteSpaceBelongsToItsValue) {
  const std::string space(5000, ' ');
  const ToolSet tools;
  for (const auto& [family, begin, end] :
       {std::tuple("dots", "<dots_function_call><invoke name=\"f\"><parameter name=\"a\">x",
                   "</parameter></invoke></dots_function_call>"),
        std::tuple(
            "beam",
            " to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name=\"a\">x",
            "</rfl:parameter><|call|>")}) {
    const std::string text = begin + space + end;
    const std::string expected = "|f({\"a\": \"x" + space + "\"})";
    const OddOutput odd = {family, text, expected};
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < text.size(); ++i) bytes.push_back(std::string_view(text).substr(i, 1));
    EXPECT_EQ(ReadOdd(odd, tools, {text}), expected) << family;
    EXPECT_EQ(ReadOdd(odd, tools, bytes), expected) << family;
  }
}

}  // namespace
}  // namespace portico::parser
