#include "template/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "template/render_for_test.h"

namespace portico {
namespace {

using testing::HasSubstr;

constexpr char kChatMl[] =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

constexpr char kHeaders[] =
    "{{- bos_token }}\n"
    "{%- if tools is not none %}\n"
    "    {{- 'Tools: ' }}\n"
    "    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- '\\n\\n' }}{% endfor %}\n"
    "{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}\n"
    "    {%- if 'tool_calls' in message %}\n"
    "        {%- if not message.tool_calls|length == 1 %}\n"
    "            {{- raise_exception('one tool call at a time') }}\n"
    "        {%- endif %}\n"
    "        {%- set call = message.tool_calls[0].function %}\n"
    "        {{- '{\"name\": \"' + call.name + '\", \"parameters\": ' }}\n"
    "        {{- call.arguments | tojson }}{{- '}' }}\n"
    "    {%- else %}\n"
    "        {{- message['content'] | trim }}\n"
    "    {%- endif %}\n"
    "    {{- '<|eot_id|>' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n"
    "{%- endif %}\n";

TEST(TemplateTest, RendersChatMl) {
  EXPECT_EQ(Render(kChatMl, R"({"messages": [{"role": "user", "content": "Hi é"},
                                {"role": "assistant", "content": ""}],
                                "add_generation_prompt": true})"),
            "<|im_start|>user\nHi é<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(TemplateTest, RendersHeadersToolsAndToolCalls) {
  EXPECT_EQ(Render(kHeaders, R"({"bos_token": "<b>", "tools": [{"name": "f", "args": [1]}],
      "messages": [{"role": "user", "content": "  q  "}, {"role": "assistant", "tool_calls":
      [{"function": {"name": "f", "arguments": {"x": "<1>", "y": 2.0}}}]}]})"),
            "<b>Tools: {\n    \"name\": \"f\",\n    \"args\": [\n        1\n    ]\n}\n\n"
            "<|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n"
            "{\"name\": \"f\", \"parameters\": {\"x\": \"<1>\", \"y\": 2.0}}<|eot_id|>");
}

TEST(TemplateTest, RaiseExceptionGivesItsMessageUnchanged) {
  auto text = TryRender("{{ raise_exception('no <x> here: ' ~ l | length) }}", R"({"l": [1]})");
  EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(text.status()), "no <x> here: 1");
}

TEST(TemplateTest, OtherErrorsOfATemplateAreFailedPreconditionsThatNameTheLine) {
  auto text = TryRender("a\n{{ 'x' + missing_key }}", "{}");
  EXPECT_EQ(text.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(MessageOf(text.status())), HasSubstr("'missing_key' is undefined"));
  EXPECT_THAT(std::string(MessageOf(text.status())), HasSubstr("line 2"));
}

TEST(TemplateTest, WhatCannotCompileIsRefusedWithItsLine) {
  for (const char* source :
       {"{% if %}", "{{ x", "{% for %}", "{{ (1 }}", "{% endif %}", "{{ 'a }}", "{{ 1 | nothing }}",
        "{% break %}", "{{ f(a=1, a=2) }}", "{% for loop in x %}{% endfor %}", "{{ a is b is c }}",
        "{% raw %}", "{# x", "{% set 1 = 2 %}", "{% macro m(a=1, b) %}{% endmacro %}"}) {
    auto parsed = Template::Parse(source);
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << source;
    EXPECT_THAT(std::string(MessageOf(parsed.status())), HasSubstr("line 1")) << source;
  }
}

TEST(TemplateTest, WhatIsNotClosedIsNamedWithItsLine) {
  EXPECT_EQ(
      Render("a\n{% if x %}\n{% for y in x %}b{% endfor %}\n{% set z = 1 %}\n"),
      "error: template line 4: Unexpected end of template: the 'if' of line 2 wants 'elif', 'else' "
      "or 'endif'.");
  EXPECT_EQ(
      Render("{% macro m() %}{% for y in x %}\n{% endif %}"),
      "error: template line 2: Encountered unknown tag 'endif': the 'for' of line 1 wants 'endfor' "
      "or 'else'.");
  EXPECT_EQ(Render("{% endif %}"), "error: template line 1: Encountered unknown tag 'endif'.");
  EXPECT_EQ(Render("{{ [(1] }}"), "error: template line 1: unexpected ']', expected ')'");
}

TEST(TemplateTest, BlocksTrimTheirNewlineAndStripTheirIndent) {
  EXPECT_EQ(Render("  {% if true %}\n  x\n  {% endif %}\n  y"), "  x\n  y");
  EXPECT_EQ(Render("a {%- if true -%} \n b \n {%- endif -%} c"), "abc");
  EXPECT_EQ(Render("  {%+ if true %}b{% endif +%}\nc"), "  b\nc");
  EXPECT_EQ(Render("{{ 1 }}\r\n{{ 2 }}\r\n"), "1\n2");
  EXPECT_EQ(Render("{% raw %}\n  {{ x }}\n{% endraw %}\nz"), "\n  {{ x }}\nz");
}

TEST(TemplateTest, ValuesPrintAsInPython) {
  EXPECT_EQ(Render("{{ [1, '1', 1.0, true, none, (1,), {'a': \"it's\"}] }}"),
            "[1, '1', 1.0, True, None, (1,), {'a': \"it's\"}]");
  EXPECT_EQ(Render("{{ 1e16 }} {{ 1e15 }} {{ 1e-5 }} {{ 0.1+0.2 }} {{ -0.0 }}"),
            "1e+16 1000000000000000.0 1e-05 0.30000000000000004 -0.0");
  EXPECT_EQ(Render("{{ 2**70 }} {{ -7//2 }} {{ -7%3 }} {{ 4/2 }} {{ 2**-1 }} {{ 10**20 // 7 }}"),
            "1180591620717411303424 -4 2 2.0 0.5 14285714285714285714");
  EXPECT_EQ(Render("{{ 'tab\\t' }}|{{ ['\\n\\x00é'] }}"), "tab\t|['\\n\\x00é']");
}

TEST(TemplateTest, StringsAreIndexedByCharacter) {
  EXPECT_EQ(
      Render("{{ s[1] }}{{ s[-1] }}{{ s[::-1] }}{{ s|length }}{{ s[1:3] }}", R"({"s": "aé你😀"})"),
      "é😀😀你éa4é你");
}

TEST(TemplateTest, AttributesComeBeforeItemsAfterADotAndItemsFirstInBrackets) {
  EXPECT_EQ(Render("{% for k in d.keys() %}{{ k }} {% endfor %}{{ d['keys'] }} {{ d.test }}",
                   R"({"d": {"keys": 1, "test": 2}})"),
            "keys test 1 2");
}

TEST(TemplateTest, SetInALoopStaysInTheIteration) {
  EXPECT_EQ(Render("{% set x = 0 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}"
                   "{{ x }}"),
            "120");
  EXPECT_EQ(Render("{% for m in ms %}{% if m.x %}{% set r = m.x %}{% endif %}"
                   "[{{ r|default('-') }}]{% endfor %}",
                   R"({"ms": [{"x": "a"}, {}, {"x": "c"}]})"),
            "[a][-][c]");
  EXPECT_EQ(Render("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}"
                   "{% endfor %}{{ ns.n }}"),
            "3");
}

TEST(TemplateTest, ANameThatAScopeStoresFirstIsNotLookedUpInTheContext) {
  // Jinja decides by the order of stores and loads in the scope's text, not by what runs.
  EXPECT_EQ(Render("{% macro m() %}{{ foo }}{% endmacro %}{{ m() }}{% set foo = 1 %}{{ m() }}",
                   R"({"foo": "context"})"),
            "1");
  EXPECT_EQ(Render("{% if false %}{% set foo = 1 %}{% endif %}{{ foo }}", R"({"foo": "context"})"),
            "context");
}

TEST(TemplateTest, LoopsKnowTheirPlace) {
  EXPECT_EQ(Render("{% for i in [3, 1, 2] if i > 1 %}{{ loop.index }}/{{ loop.length }}:{{ i }}"
                   "{{ ',' if not loop.last }}{% endfor %}"),
            "1/2:3,2/2:2");
  EXPECT_EQ(Render("{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{{ loop.previtem }}|"
                   "{{ loop.nextitem }};{% else %}none{% endfor %}"),
            "12|[3, 4];34[1, 2]|;");
  EXPECT_EQ(Render("{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}"
                   "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "02");
  EXPECT_EQ(Render("{% for n in t recursive %}{{ n.v }}{{ loop.depth }}"
                   "{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}",
                   R"({"t": [{"v": "a", "c": [{"v": "b"}]}, {"v": "c"}]})"),
            "a1(b2)c1");
}

TEST(TemplateTest, MacrosTakeDefaultsKeywordsRestAndCaller) {
  EXPECT_EQ(Render("{% macro m(a, b='B', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}"
                   "{{ m(1) }} {{ m(c=3, a=1) }} {{ m('x', 'y', 'z') }}"),
            "1BNone 1B3 xyz");
  EXPECT_EQ(Render("{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}"
                   "{{ m(1, 2, k=3) }}"),
            "1(2,){'k': 3}");
  EXPECT_EQ(Render("{% macro m() %}[{{ caller('x') }}]{% endmacro %}"
                   "{% call(v) m() %}<{{ v }}>{% endcall %}"),
            "[<x>]");
  EXPECT_EQ(Render("{% filter upper %}ab{% endfilter %}{% set s | trim %} c {% endset %}{{ s }}"),
            "ABc");
}

TEST(TemplateTest, GeneratorsAreReadOnceAndHaveNoLength) {
  EXPECT_EQ(Render("{% set g = [1, 2, 3] | select('odd') %}{{ g | list }}{{ g | list }}"),
            "[1, 3][]");
  EXPECT_EQ(TryRender("{{ [1] | select | length }}").status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(TemplateTest, MarkedTextEscapesWhatIsAddedToIt) {
  EXPECT_EQ(Render("{{ '<a>' + ('<b>' | safe) }}{{ '<b>' | safe ~ '<c>' }}"), "&lt;a&gt;<b><b><c>");
}

// Jinja2 compares lists of keys, which are equal; Python formats with anything that can be indexed;
// and textwrap keeps the space before a word that it must cut where no room is left.
TEST(TemplateTest, RareCornersAreAsInPython) {
  EXPECT_EQ(Render("{{ [3, 1, 2]|map(attribute='x')|list|sort|length }}"), "3");
  EXPECT_EQ(Render("{{ [3, 1, 2]|sort(attribute='x') }}"), "[3, 1, 2]");
  EXPECT_EQ(Render("{{ 'text' % missing }}{{ '<%s>' % missing }}"), "text<>");
  EXPECT_EQ(Render("{{ 'abc defghi'|wordwrap(4) }}"), "abc \ndefg\nhi");
  EXPECT_THAT(Render("{{ '%(a)s' % missing }}"), HasSubstr("'missing' is undefined"));
}

TEST(TemplateTest, ARangeRemembersTheEndItWasGiven) {
  EXPECT_EQ(Render("{{ range(5)[::2] }} {{ range(5)[::-1] }} {{ range(5, 1) }}"),
            "range(0, 5, 2) range(4, -1, -1) range(5, 1)");
  EXPECT_EQ(Render("{{ range(0, 10, 3).stop }} {{ range(1, 10, 3)[1:] }}"), "10 range(4, 10, 3)");
  // The products of such steps have no room in 64 bits.
  EXPECT_EQ(Render("{{ range(1, 9, 3)[::4611686018427387904]|length }}"), "1");
}

TEST(TemplateTest, CharactersOfMarkedUpTextArePlainUnlessTakenByIndex) {
  EXPECT_EQ(Render("{{ 'a<'|e|list }}{{ ('a'|e)|first is escaped }}{{ ('a'|e)[0] is escaped }}"),
            "['a', '&', 'l', 't', ';']FalseTrue");
  EXPECT_EQ(Render("{% for c in 'a'|e %}{{ c is escaped }}{% endfor %}"), "False");
}

TEST(TemplateTest, TruncateLeavesWhatIsShortAsItIs) {
  EXPECT_EQ(Render("{{ [3, 1, 2]|truncate(8) }}{{ {'a': 1}|truncate }}"), "[3, 1, 2]{'a': 1}");
  EXPECT_EQ(Render("{{ missing|truncate(3) }}"), "");
  EXPECT_FALSE(TryRender("{{ ([1] * 20)|truncate(8) }}").ok());
  EXPECT_FALSE(TryRender("{{ 5|truncate(8) }}").ok());
}

TEST(TemplateTest, OnlyWhatCanBeAKeyIsAskedForAsAFilterOrTest) {
  EXPECT_EQ(Render("{{ 'upper' is filter }}{{ 1 is filter }}{{ none is test }}"), "TrueFalseFalse");
  for (const char* source : {"{{ {} is filter }}", "{{ [] is test }}", "{{ (1, []) is filter }}"}) {
    EXPECT_THAT(Render(source), HasSubstr("unhashable type")) << source;
  }
}

TEST(TemplateTest, HiddenAttributesOfAnUndefinedValueAreUnsafeNotAnError) {
  EXPECT_EQ(Render("{{ missing.__class__ }}{{ missing|attr('__init__') }}"), "");
  EXPECT_THAT(Render("{{ missing.__class__.x }}"), HasSubstr("is unsafe"));
  EXPECT_THAT(Render("{{ missing.__foo__ }}"), HasSubstr("'missing' is undefined"));
}

TEST(TemplateTest, AFilterOrCallBlockMustGiveAString) {
  EXPECT_EQ(Render("{% filter upper %}a{% endfilter %}{% filter first %}bc{% endfilter %}"), "Ab");
  for (const char* source :
       {"{% filter length %}abc{% endfilter %}", "{% filter last %}{% endfilter %}",
        "{% call(x) dict(a=1) %}x{% endcall %}"}) {
    EXPECT_THAT(Render(source), HasSubstr("expected a string")) << source;
  }
}

TEST(TemplateTest, NothingOfTheContextCanBeChanged) {
  for (const char* source :
       {"{{ l.append(1) }}", "{{ l.pop() }}", "{{ d.update({'a': 1}) }}", "{% set l.x = 1 %}",
        "{{ ''.__class__.__mro__ }}", "{% set ns = namespace(_a=1) %}", "{% include 'x' %}",
        "{% import 'x' as y %}", "{% extends 'x' %}", "{{ d.clear() }}"}) {
    EXPECT_EQ(TryRender(source, R"({"l": [], "d": {}})").status().code(),
              StatusCode::kFailedPrecondition)
        << source;
  }
}

TEST(TemplateTest, HostileTemplatesMeetALimit) {
  for (const char* source :
       {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}"
        "{% endfor %}",
        "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}"
        "{% endfor %}{{ ns.l }}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}"
        "{% endfor %}{{ ns.l == ns.l }}",
        "{{ 'x' * 99999999999 }}", "{{ [0] * 99999999999 }}", "{{ 10 ** 99999999 }}",
        "{{ 'x'.center(99999999999) }}", "{{ '%99999999d' % 1 }}", "{{ '{:99999999}'.format(1) }}",
        "{% for n in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% for i in range(9999) %}{{ 'x' * 99999 }}{% endfor %}"}) {
    EXPECT_EQ(TryRender(source).status().code(), StatusCode::kResourceExhausted) << source;
  }
  EXPECT_FALSE(TryRender("{{ range(200000) }}").ok());
}

// Each result that is worked out item by item takes its items from the one before it: one call for every result of the
// chain, and likewise for every tuple of a key.
TEST(TemplateTest, LongChainsOfLazyResultsAndDeepKeysMeetALimit) {
  const std::string begin = "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}";
  for (const char* rest :
       {"{% set ns.x = ns.x | select %}{% endfor %}{{ ns.x | list }}",
        "{% set ns.x = ns.x | map('string') %}{% endfor %}{% for x in ns.x %}{{ x }}{% endfor %}",
        "{% set ns.x = ns.x | unique %}{% endfor %}{{ ns.x | first }}",
        "{% set ns.x = ns.x | batch(1) %}{% endfor %}{{ ns.x | join }}",
        "{% set ns.x = ns.x | slice(1) %}{% endfor %}{{ ns.x | first }}",
        "{% for j in range(10) %}{% set ns.x = (ns.x if i else 1,) %}{% endfor %}{% endfor %}"
        "{{ {}[ns.x] }}"}) {
    EXPECT_EQ(TryRender(begin + rest).status().code(), StatusCode::kResourceExhausted) << rest;
  }
  EXPECT_EQ(Render("{{ [3, 0, 1] | select | map('string') | unique | batch(1) | list }}"),
            "[['3'], ['1']]");
}

TEST(TemplateTest, DeepNestingIsRefusedNotCrashed) {
  for (auto [open, close] : std::initializer_list<std::pair<const char*, const char*>>{
           {"(", ")"}, {"[", "]"}, {"{1:", "}"}, {"-", ""}, {"not ", ""}, {"x if y else ", "z"}}) {
    std::string source = "{{ ";
    for (int i = 0; i < 100000; ++i) source += open;
    source += "1";
    for (int i = 0; i < 100000; ++i) source += close;
    EXPECT_FALSE(Template::Parse(source + " }}").ok()) << open;
  }
  std::string blocks, attributes = "{{ x", sum = "{{ 1";
  for (int i = 0; i < 10000; ++i) {
    blocks += "{% if x %}";
    attributes += ".x";
    sum += " - 1";
  }
  EXPECT_FALSE(Template::Parse(blocks).ok());
  EXPECT_FALSE(Template::Parse(attributes + " }}").ok());
  EXPECT_FALSE(Template::Parse(sum + " }}").ok());
}

TEST(TemplateTest, GenerationSpansCountCodePoints) {
  std::vector<std::pair<size_t, size_t>> spans;
  RenderOptions options;
  options.generation_spans = &spans;
  auto text =
      TryRender("é{% for m in l %}<{% generation %}{{ m }}ü{% endgeneration %}>{% endfor %}",
                R"({"l": ["你", "ab"]})", options);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "é<你ü><abü>");
  EXPECT_EQ(spans, (std::vector<std::pair<size_t, size_t>>{{2, 4}, {6, 9}}));
}

TEST(TemplateTest, StrftimeNowUsesTheGivenClock) {
  RenderOptions options;
  const int64_t noon = 1721995200;  // 2024-07-26 12:00 UTC
  options.now = &noon;
  auto text = TryRender("{{ strftime_now('%Y %f %%') }}", "{}", options);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "2024 000000 %");
}

TEST(TemplateTest, OneTemplateRendersInManyThreadsAtOnce) {
  auto parsed = Template::Parse(kChatMl);
  ASSERT_TRUE(parsed.ok());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::string word = "w" + std::to_string(t);
      Json context = Parsed(R"({"messages": [{"role": "user", "content": ")" + word + R"("}]})");
      for (int i = 0; i < 500; ++i) {
        auto text = (*parsed)->Render(context);
        if (!text.ok() || *text != "<|im_start|>user\n" + word + "<|im_end|>\n") ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace portico
