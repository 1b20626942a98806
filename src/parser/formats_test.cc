// Every format: what one text of it gives, whole, at every two-way split and byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "parser/collector.h"
#include "parser/output_parser.h"

namespace portico::parser {
namespace {

struct Case {
  const char* tools;      // a tool parser's name, or ""
  const char* reasoning;  // a reasoning parser's name, or ""
  bool inside;
  const char* text;
  const char* expected;  // content | reasoning | name(arguments)…; `…` behind an incomplete call
};

// Unnamed raw strings keep the texts as models write them.
const Case kCases[] = {
    {"hermes", "", false,
     "Hi.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
     "1}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
     "Hi.\n||f({\"a\": 1})g({})"},
    {"hermes", "", false,
     "<tool_call>{\"arguments\": {\"x\": \"</tool_call>\"}, \"name\": \"f\"}</tool_call> bye",
     " bye||f({\"x\": \"</tool_call>\"})"},
    {"hermes", "qwen3", true, "a</think><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
     "|a|f({})"},
    {"qwen25", "", false, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x",
     "||f({\"a\": \"x)…"},
    {"trinity", "deepseek_r1", true,
     "p<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>q</think>r", "r|pq|f({})"},
    {"longcat", "", false,
     "<longcat_tool_call>{\"name\":\"f\",\"arguments\":{}}</longcat_tool_call>", "||f({})"},
    {"ernie45", "ernie45", true, "t\n</think>\n\n<response>\nyes\n</response>\n", "\n\nyes|t\n|"},
    {"mistral", "", false,
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}, {\"name\": \"g\", "
     "\"arguments\": {}}]",
     "||f({\"a\": [1, 2]})g({})"},
    {"mistral", "mistral", false,
     "[THINK]t[/THINK][TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}",
     "|t|f({\"a\": 1})g({})"},
    {"llama3", "", false,
     "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"a\": \";\"}};{\"name\": \"g\", "
     "\"arguments\": {}}",
     "||f({\"a\": \";\"})g({})"},
    {"json", "", false,
     "See: [{\"name\": \"f\", \"arguments\": {}}, {\"function\": \"g\", \"parameters\": {\"b\": "
     "null}}] ok {\"x\": 1}",
     "See:  ok {\"x\": 1}||f({})g({\"b\": null})"},
    {"deepseekv3", "", false,
     "a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
     "\"b\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n``"
     "`<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "a||f({\"a\": \"b\"})g({})"},
    {"deepseekv31", "deepseek-v3", false,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": "
     "1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "||f({\"a\": 1})"},
    {"kimi_k2", "kimi_k2", true,
     "t<|tool_calls_section_begin|><|tool_call_begin|>functions.f-x.y:0<|tool_call_argument_begin|>"
     "{\"a\": "
     "1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_"
     "end|><|tool_calls_section_end|>",
     "|t|f-x.y({\"a\": 1})g({})"},
    {"interns1", "", false,
     "<|action_start|> <|plugin|>\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|action_end|>",
     "||f({\"a\": 1})"},
    {"granite", "granite", false,
     "Here's my thought process: t Here is my response: <|tool_call|>[{\"name\": \"f\", "
     "\"arguments\": {}}]",
     "| t |f({})"},
    {"granite-20b-fc", "", false,
     "<function_call> {\"name\": \"f\", \"arguments\": {}} <function_call> {\"name\": \"g\", "
     "\"arguments\": {}}",
     "||f({})g({})"},
    {"jamba", "", false, "<tool_calls>[{\"name\": \"f\", \"arguments\": {}}]</tool_calls>",
     "||f({})"},
    {"phi4_mini_json", "", false, "functools[{\"name\": \"f\", \"arguments\": {}}]", "||f({})"},
    {"xlam", "", false, "```json\n[{\"name\": \"f\", \"arguments\": {}}]\n```", "||f({})"},
    {"cohere_command4", "cohere_command4", true,
     "t<|END_THINKING|><|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"f\", "
     "\"parameters\": {\"a\": 1}}\n]<|END_ACTION|>",
     "|t|f({\"a\": 1})"},
    {"cohere_command4", "cohere_command4", true,
     "t<|END_THINKING|><|START_RESPONSE|>hi<|END_RESPONSE|>", "hi|t|"},
    {"apertus2509", "apertus2509", false,
     "<|inner_prefix|>t<|tools_prefix|>[{\"f\": {\"a\": 1}}, {\"g\": "
     "{}}]<|tools_suffix|>u<|inner_suffix|>v",
     "v|tu|f({\"a\": 1})g({})"},
    {"gigachat3", "", false,
     "hi<|message_sep|>\nfunction call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {}}</s>",
     "hi\n||f({})"},
    {"inkling", "inkling", false,
     "<|message_model|><|content_thinking|>t<|end_message|><|message_model|><|content_text|>hi<|"
     "end_message|><|message_model|>f<|content_invoke_tool_json|>{\"name\":\"f\",\"args\":{\"a\":1}"
     "}<|end_message|>",
     "hi|t|f({\"a\":1})"},
    {"plamo3", "plamo3", true,
     "t<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_"
     "name:plamo|>f<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:"
     "constrain|>json<|plamo:msg|>{\"a\": "
     "1}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_"
     "requests:plamo|>",
     "|t|f({\"a\": 1})"},
    {"glm45", "glm45", false,
     "<think>t</think>\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x "
     "\"y\"</arg_value>\n<arg_key>n</arg_key>\n<arg_value>4.5</arg_value>\n</tool_call>",
     "|t|f({\"a\": \"x \\\"y\\\"\", \"n\": 4.5})"},
    {"glm47", "", false,
     "<tool_call>f<arg_key>a</arg_key><arg_value>{\"b\": "
     "[1]}</arg_value></tool_call><tool_call>g</tool_call>",
     "||f({\"a\": {\"b\": [1]}})g({})"},
    {"iquest_q1", "", false,
     "<iquest_tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></iquest_tool_call>",
     "||f({\"a\": \"x\"})"},
    {"hunyuan", "hunyuan", true,
     "t</think:6124c78e><tool_calls:6124c78e>\n<tool_call:6124c78e>f<tool_sep:6124c78e>\n"
     "<arg_key:6124c78e>a</arg_key:6124c78e>\n<arg_value:6124c78e>x: </b></arg_value:6124c78e>\n"
     "</tool_call:6124c78e>\n</tool_calls:6124c78e>",
     "|t|f({\"a\": \"x: </b>\"})"},
    {"hunyuan", "hunyuan", false, "<think:a>t</think:a>see <tool_calls: > and <tool_calls:",
     "see <tool_calls: > and <tool_calls:|t|"},
    {"hunyuan", "hunyuan", true,
     "t</think><tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>a</arg_key>\n<arg_value>x</"
     "arg_value>\n</tool_call>\n<tool_call>g<tool_sep>\n</tool_call>\n</tool_calls>",
     "|t|f({\"a\": \"x\"})g({})"},
    {"k2_horizon", "k2_horizon", true,
     "t</ifm|think><ifm|tool_calls><ifm|tool_call>f<ifm|arg_key>a</"
     "ifm|arg_key><ifm|arg_type>string</ifm|arg_type><ifm|arg_value>5</ifm|arg_value></"
     "ifm|tool_call></ifm|tool_calls>",
     "|t|f({\"a\": \"5\"})"},
    {"qwen3_coder", "qwen3", true,
     "t</think>\n\nOk.\n<tool_call>\n<function=f>\n<parameter=a>\nx\n\n</"
     "parameter>\n<parameter=n>\n12\n</parameter>\n</function>\n</tool_call>",
     "\n\nOk.\n|t|f({\"a\": \"x\\n\", \"n\": 12})"},
    {"mimo", "", false,
     "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>",
     "||f({\"a\": \"\\nx\\n\"})"},
    {"seed_oss", "seed_oss", true,
     "t</seed:think><seed:tool_call>\n<function=f>\n<parameter=a>1</parameter>\n</function>\n</"
     "seed:tool_call>",
     "|t|f({\"a\": 1})"},
    {"deepseekv32", "", false,
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" "
     "string=\"true\">5</｜DSML｜parameter>\n<｜DSML｜parameter name=\"b\" string=\"false\">[1, "
     "2]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "||f({\"a\": \"5\", \"b\": [1, 2]})"},
    {"deepseekv4", "", false,
     "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">{\"a\": "
     "1}</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\" />\n</｜DSML｜tool_calls>",
     "||f({\"a\": 1})g({})"},
    {"deepseekv41", "", false,
     "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" "
     "string=\"true\">x</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
     "||f({\"a\": \"x\"})"},
    {"gigachat35", "", false,
     "<｜GCML｜tool_calls><｜GCML｜invoke name=\"f\"></｜GCML｜invoke></｜GCML｜tool_calls>",
     "||f({})"},
    // Cut in a parameter's tag: its beginning was lost.
    {"minimax-m2", "", false,
     "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x</parameter>\n<parameter "
     "name=\"b",
     "<parameter name=\"b||f({\"a\": \"x\")…"},
    {"minimax-m2", "", false, "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter",
     "<parameter||f()…"},
    {"qwen3_coder", "", false, "<tool_call>\n<function=f>\n<parameter=ci", "<parameter=ci||f()…"},
    {"qwen3_coder", "", false,
     "<tool_call>\n<function=f>\n<parameter=a\nx</parameter>\n</function>\n</tool_call>",
     "<parameter=a\nx</parameter>\n||f({})"},
    {"minimax-m2", "minimax", true,
     "t</think><minimax:tool_call>\n<invoke name='f'>\n<parameter name=\"a\">x & "
     "y</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
     "|t|f({\"a\": \"x & y\"})g({})"},
    {"dots", "", false,
     "<dots_function_call>\n<invoke name=\"f\">\n<parameter "
     "name=\"a\">\nx\n</parameter>\n</invoke>\n</dots_function_call>",
     "||f({\"a\": \"x\"})"},
    {"muse", "muse", false,
     " to=self<|message|>t<|eom|><|start|>assistant to=user<|message|>hi<|eot|>", "hi|t|"},
    {"muse", "muse", false,
     " to=self<|message|>t<|eom|><|start|>assistant "
     "to=f<|message|><atem:function_calls>\n<atem:invoke name=\"f\">\n<atem:parameter "
     "name=\"a\">x\n</atem:parameter>\n<atem:parameter "
     "name=\"n\">[1]</atem:parameter>\n</atem:invoke>\n<atem:invoke "
     "name=\"g\">\n</atem:invoke>\n</atem:function_calls><|eom|>",
     "|t|f({\"a\": \"x\\n\", \"n\": [1]})g({})"},
    {"xlam", "", false, "a</think>\n[{\"name\": \"f\", \"arguments\": {}}]", "a||f({})"},
    {"xlam", "", false, "a</think>\nNo call", "a</think>\nNo call||"},
    {"step3", "step3", true,
     "t</think><｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
     "name=\"f\"><steptml:parameter "
     "name=\"a\">x</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
     "|t|f({\"a\": \"x\"})"},
    {"minicpm5", "", false,
     "<function name=\"f\"><param name=\"a\"><![CDATA[<b>]]></param></function>",
     "||f({\"a\": \"<b>\"})"},
    {"minimax-m3", "minimax-m3", false,
     "<mm:think>t</mm:think>]<]minimax[>[<tool_call>]<]minimax[>[<invoke "
     "name=\"f\">]<]minimax[>[<a>x]<]minimax[>[</a>]<]minimax[>[<o>]<]minimax[>[<p>1]<]minimax[>[</"
     "p>]<]minimax[>[</o>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
     "|t|f({\"a\": \"x\", \"o\": {\"p\": 1}})"},
    {"pythonic", "", false,
     "Ok: [f(a=\"x\", b=[1, {'c': None}], d=True), g()] and [link] é[h(x=-1.5)]",
     "Ok:  and [link] é||f({\"a\": \"x\", \"b\": [1, {\"c\": null}], \"d\": true})g({})h({\"x\": "
     "-1.5})"},
    {"llama4_pythonic", "", false,
     "<|python_start|>[f(city='Martha\\'s', m='\\\"u\\\"')]<|python_end|>",
     "||f({\"city\": \"Martha's\", \"m\": \"\\\"u\\\"\"})"},
    {"lfm2", "", false,
     "<|tool_call_start|>[f(a=1)]<|tool_call_end|><|tool_call_start|>[{\"name\": \"g\", "
     "\"arguments\": {}}]<|tool_call_end|>",
     "||f({\"a\": 1})g({})"},
    {"olmo3", "olmo3", true, "t</think><function_calls>\nf(a=null)\ng(b=true)\n</function_calls>",
     "|t|f({\"a\": null})g({\"b\": true})"},
    {"sarashina", "", false, "<|tool_calls|>[{'name': 'f', 'arguments': {'a': True}}]",
     "||f({\"a\": true})"},
    {"gemma4", "gemma4", false,
     "<|channel>thought\nt<channel|>a<|tool_call>call:f{k:<|\"|>x}\"<|\"|>,n:42,o:{b:true},l:[1,<|"
     "\"|>y<|\"|>]}<tool_call|>b",
     "ab|t|f({\"k\": \"x}\\\"\", \"n\": 42, \"o\": {\"b\": true}, \"l\": [1, \"y\"]})"},
    // A colon within a key in quotes, also where the quote behind it has not come yet.
    {"gemma4", "", false, "<|tool_call>call:f{<|\"|>a:b<|\"|>:1,<|\"|>:<|\"|>:2}<tool_call|>",
     "||f({\"a:b\": 1, \":\": 2})"},
    {"functiongemma", "", false,
     "<start_function_call>call:f{a:<escape>x<escape>,n:<escape>3<escape>}<end_function_call>",
     "||f({\"a\": \"x\", \"n\": 3})"},
    {"kimi_k3", "kimi_k3", true,
     "t<|close|>think<|sep|><|open|>response<|sep|>hi<|close|>response<|sep|><|open|>tools<|sep|><|"
     "open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"a&quot;\" "
     "type=\"string\"<|sep|>5<|close|>argument<|sep|><|open|>argument key=\"n\" "
     "type=\"number\"<|sep|>6<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
     "hi|t|f({\"a\\\"\": \"5\", \"n\": 6})"},
    {"gpt-oss", "gpt-oss", false,
     "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary to=functions.f "
     "<|constrain|>json<|message|>{\"a\": 1}<|call|>",
     "|t|f({\"a\": 1})"},
    {"gpt-oss", "gpt-oss", false,
     "<|channel|>commentary<|message|>pre<|end|><|start|>assistant "
     "to=functions.f<|channel|>analysis "
     "json<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>bye<|return|>",
     "prebye||f({})"},
    {"gpt-oss", "gpt-oss", false, "No header at all", "No header at all||"},
    {"beam", "beam", false,
     "<|channel|>analysis<|message|>t<|end|><|start|>assistant to=f<|channel|>analysis "
     "<|constrain|>xml<|message|><rfl:parameter name=\"a\">\nx\ny\n</rfl:parameter><rfl:parameter "
     "name=\"b\">\n1\n</rfl:parameter><|end|><|start|>assistant to=g<|channel|>analysis "
     "<|constrain|>xml<|message|><|call|>",
     "|t|f({\"a\": \"x\\ny\", \"b\": \"1\"})g({})"},
    {"beam", "beam", true, "t<|end|><|start|>assistant<|channel|>final<|message|>hi<|return|>",
     "hi|t|"},
    {"beam", "", false, "<|channel|>analysis<|message|>t<|end|>x",
     "<|channel|>analysis<|message|>t<|end|>x||"},
    {"hermes", "beam", false,
     "<|channel|>analysis<|message|>t<|end|><tool_call>{\"name\": \"f\", \"arguments\": "
     "{}}</tool_call>",
     "|t|f({})"},
    {"beam", "qwen3", true,
     "t</think> to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name=\"a\">\nx",
     "|t|f({\"a\": \"x)…"},
    {"passthrough", "passthrough", false, "<think>a</think><tool_call>",
     "<think>a</think><tool_call>||"},
    {"", "kimi", false, "◁think▷t◁/think▷c", "c|t|"},
    {"", "minimax-append-think", false, "a</think>b", "<think>a</think>b||"},
    {"", "hunyuan_a13b", false, "<think>\nt\n</think>\n<answer>\na\n</answer>", "a|t|"},
};

Collector Collect(const Case& c, const std::vector<std::string_view>& pieces, bool finish) {
  OutputFormat format;
  if (*c.tools != 0) format.tools = FindToolFamily(c.tools);
  if (*c.reasoning != 0) format.reasoning = FindReasoning(c.reasoning);
  format.in_reasoning = c.inside;
  Collector out;
  ToolSet tools;
  auto parser = OutputParser::Make(format, tools, &out);
  for (std::string_view piece : pieces) parser->Feed(piece);
  if (finish) parser->Finish();
  return out;
}

std::string ParseText(const Case& c, const std::vector<std::string_view>& pieces) {
  Collector out = Collect(c, pieces, true);
  std::string text = out.content + "|" + out.reasoning + "|";
  for (const Collector::Call& call : out.calls) {
    text += call.name + "(" + call.arguments + ")" + (call.complete ? "" : "…");
  }
  return text;
}

TEST(FormatsTest, EveryFormatGivesTheSameHoweverItsTextIsCut) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.tools) + " " + c.reasoning + ": " + c.text);
    ASSERT_TRUE(*c.tools == 0 || FindToolFamily(c.tools) != nullptr);
    ASSERT_TRUE(*c.reasoning == 0 || FindReasoning(c.reasoning) != nullptr);
    std::string_view text = c.text;
    EXPECT_EQ(ParseText(c, {text}), c.expected);
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      bytes.push_back(text.substr(i, 1));
      EXPECT_EQ(ParseText(c, {text.substr(0, i), text.substr(i)}), c.expected) << "split at " << i;
    }
    EXPECT_EQ(ParseText(c, bytes), c.expected) << "byte by byte";
  }
}

TEST(FormatsTest, BrokenArgumentsAndKeysWithoutEndGiveTheSameHoweverTheyAreCut) {
  const std::string key = "<tool_call>f<arg_key>" + std::string(600, 'k');
  for (const Case& c :
       {Case{"apertus2509", "", false, "<|tools_prefix|>{\"s\":[><|tools_suffix|>", ""},
        Case{"glm45", "", false, key.c_str(), ""}}) {
    const std::string_view text = c.text;
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
    EXPECT_EQ(ParseText(c, bytes), ParseText(c, {text})) << text;
  }
}

TEST(FormatsTest, WhatCameOutIsNeverTakenBack) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    std::string_view text = c.text;
    Collector whole = Collect(c, {text}, true);
    for (size_t i = 0; i <= text.size(); ++i) {
      Collector part = Collect(c, {text.substr(0, i)}, false);
      EXPECT_TRUE(whole.content.starts_with(part.content)) << part.content;
      EXPECT_TRUE(whole.reasoning.starts_with(part.reasoning)) << part.reasoning;
      ASSERT_LE(part.calls.size(), whole.calls.size());
      for (size_t k = 0; k < part.calls.size(); ++k) {
        EXPECT_EQ(part.calls[k].name, whole.calls[k].name);
        EXPECT_TRUE(whole.calls[k].arguments.starts_with(part.calls[k].arguments));
      }
    }
  }
}

// CPU time, not the clock's: other programs may have the cores. A square of the text takes minutes.
constexpr std::clock_t kMuchCpu = 20 * CLOCKS_PER_SEC;

// A hundred thousand openers without an end kept a parser busy for minutes: each one looked through all that followed.
TEST(FormatsTest, MarkersWithoutEndTakeLinearTime) {
  for (const std::string& name : ToolFamilyNames()) {
    OutputFormat format;
    format.tools = FindToolFamily(name);
    if (format.tools->name != name || format.tools->markers.empty()) continue;
    const ToolSet tools;
    for (const std::string& marker : format.tools->markers) {
      std::string text = format.tools->markers.front() + "f";
      while (text.size() < 256 << 10) text += marker;
      Collector out;
      const std::clock_t start = std::clock();
      auto parser = OutputParser::Make(format, tools, &out);
      parser->Feed(text);
      parser->Finish();
      EXPECT_LT(std::clock() - start, kMuchCpu) << name << ": " << marker;
    }
  }
}

// A model that wrote white space where the arguments begin cost a square of it: what was held was looked through again
// with every byte.
TEST(FormatsTest, WhiteSpaceWithoutEndTakesLinearTime) {
  for (const char* name : {"hermes", "llama3", "json", "mistral", "kimi_k2", "dots"}) {
    OutputFormat format;
    format.tools = FindToolFamily(name);
    const ToolSet tools;
    for (const char* begin : {"{\"name\": \"f\", \"arguments\": {", "{\"name\": \"f\",", "f{"}) {
      const std::string text = format.tools->markers.front() + begin + std::string(1 << 20, ' ');
      Collector out;
      const std::clock_t start = std::clock();
      auto parser = OutputParser::Make(format, tools, &out);
      parser->Feed(text);
      parser->Finish();
      EXPECT_LT(std::clock() - start, kMuchCpu) << name;
    }
  }
}

}  // namespace
}  // namespace portico::parser
