// A render from parsed messages, by template and length of the conversation.
#include <benchmark/benchmark.h>

#include "template/template.h"

namespace portico {
namespace {

constexpr char kChatMl[] =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

constexpr char kTools[] = R"(
{%- macro show(content) -%}
  {%- if content is string -%}{{ content | trim }}{%- else -%}
  {%- for part in content if part.type == 'text' -%}{{ part.text }}{%- endfor -%}{%- endif -%}
{%- endmacro -%}
{%- set ns = namespace(last=-1) -%}
{%- for message in messages -%}
  {%- if message.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- if tools -%}<tools>{%- for tool in tools -%}{{ tool | tojson }}{{ '\n' }}{%- endfor -%}</tools>
{%- endif -%}
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\n' -}}
  {%- if message.role == 'assistant' and message.tool_calls is defined -%}
    {%- for call in message.tool_calls -%}{{ call.function | tojson }}{%- endfor -%}
  {%- elif loop.index0 > ns.last and '</think>' in message.content -%}
    {{- message.content.split('</think>')[-1].lstrip('\n') -}}
  {%- else -%}
    {{- show(message.content) -}}
  {%- endif -%}
  {{- '<|im_end|>\n' -}}
{%- endfor -%})";

Json Conversation(int64_t size) {
  JsonArray messages;
  for (int64_t i = 0; i < size; ++i) {
    std::string text = "Message number " + std::to_string(i) + " of a conversation about the sea.";
    messages.push_back(Json(JsonObject{{"role", Json(i % 2 == 0 ? "user" : "assistant")},
                                       {"content", Json(std::move(text))}}));
  }
  Json tool = *Json::Parse(R"({"type": "function", "function": {"name": "get_weather",
      "description": "Weather of a place", "parameters": {"type": "object", "properties":
      {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}}, "required": ["city"]}}})");
  return Json(JsonObject{{"messages", Json(std::move(messages))},
                         {"tools", Json(JsonArray{tool, tool})},
                         {"add_generation_prompt", Json(true)}});
}

void Render(benchmark::State& state, const char* source) {
  auto parsed = Template::Parse(source);
  Json context = Conversation(state.range(0));
  size_t bytes = 0;
  for (auto _ : state) {
    auto text = (*parsed)->Render(context);
    bytes += text->size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK_CAPTURE(Render, chatml, kChatMl)->Arg(2)->Arg(20)->Arg(200);
BENCHMARK_CAPTURE(Render, tools, kTools)->Arg(2)->Arg(20)->Arg(200);

void Parse(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Template::Parse(kTools));
}
BENCHMARK(Parse);

}  // namespace
}  // namespace portico
