"""Calls at their edges: cut off, of tools that are not allowed or not offered, in the old form's stream, and what /metrics counts.
The mock engine repeats the prompt, so a prompt is what a model would write."""
import json
import subprocess

import openai
import pytest
import requests

from conftest import BINARY
from test_tools import CALLS, PLAIN, STOP, TIME, WEATHER, ask, gather

FAR = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "' + "far away " * 50


@pytest.fixture
def hermes(serve):
    return serve("--tool-call-parser", "hermes", "--reasoning-parser", "qwen3", "--chat-template", PLAIN)


def client_of(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


@pytest.mark.parametrize("fields, reason", [({"max_tokens": 60}, "length"), ({"max_tokens": 2000, "stop": ["away far away far"]}, "stop")])
def test_a_call_that_is_cut_keeps_what_came_and_says_what_cut_it(hermes, fields, reason):
    request = {"model": "demo", "messages": [{"role": "user", "content": FAR}], "tools": [WEATHER], "temperature": 0, **fields}
    choice = client_of(hermes).chat.completions.create(**request).choices[0]
    [call] = choice.message.tool_calls
    assert (choice.finish_reason, choice.message.content) == (reason, None)
    assert call.function.name == "get_weather" and call.function.arguments.startswith('{"city": "far ')
    with pytest.raises(ValueError):
        json.loads(call.function.arguments)
    content, _, calls, finishes = gather(client_of(hermes).chat.completions.create(stream=True, **request))
    assert (content, finishes) == ("", [reason])
    assert [each[1:] for each in calls] == [["get_weather", call.function.arguments]]


def test_a_call_of_a_tool_that_is_not_allowed_is_text(hermes):
    choice = ask(client_of(hermes), CALLS, tool_choice={"type": "allowed_tools", "allowed_tools": {
        "mode": "auto", "tools": [{"type": "function", "function": {"name": "get_time"}}]}}).choices[0]
    assert [c.function.name for c in choice.message.tool_calls] == ["get_time"]
    assert '{"name": "get_weather", "arguments"' in choice.message.content


def test_calls_of_unknown_tools_are_calls_where_the_operator_wants_them(serve):
    server = serve("--tool-call-parser", "hermes", "--forward-unknown-tools", "--chat-template", PLAIN)
    choice = ask(client_of(server), CALLS, tools=[TIME]).choices[0]
    assert choice.message.content == "Let me look.\n" and choice.finish_reason == "tool_calls"
    assert [c.function.name for c in choice.message.tool_calls] == ["get_weather", "get_time"]
    line = json.dumps({"id": 1, "text": CALLS, "tools": [TIME]}) + "\n"
    for flags, names in ([], ["get_time"]), (["--forward-unknown-tools"], ["get_weather", "get_time"]):
        run = subprocess.run([BINARY, "parse", "--jsonl", "--tool-call-parser", "hermes", *flags], input=line, text=True,
                             capture_output=True, timeout=120)
        assert [c["name"] for c in json.loads(run.stdout)["tool_calls"]] == names


def test_the_old_functions_stream_in_the_old_form(hermes):
    body = {"messages": [{"role": "user", "content": CALLS + STOP}], "stop": [STOP], "max_tokens": 2000, "stream": True,
            "functions": [WEATHER["function"], TIME["function"]]}
    lines = requests.post(hermes.url + "/v1/chat/completions", json=body, timeout=120).content.decode().split("\n")
    choices = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith("data: {")]
    calls = [choice["delta"]["function_call"] for choice in choices if choice["delta"].get("function_call")]
    assert calls[0] == {"name": "get_weather", "arguments": ""} and not any("name" in call for call in calls[1:])
    assert "".join(call["arguments"] for call in calls) == '{"city": "K\u00f6ln", "days": 2}'
    assert "tool_calls" not in json.dumps(choices) and choices[-1]["finish_reason"] == "function_call"


def test_text_that_began_like_a_call_is_counted(hermes):
    name = "portico_parser_fallbacks_total"
    before = hermes.metric(name)
    ask(client_of(hermes), CALLS)
    assert hermes.metric(name) == before
    ask(client_of(hermes), CALLS, tools=[TIME])
    ask(client_of(hermes), "Use <tool_call> for it.")
    assert hermes.metric(name) == before + 2


def test_calls_that_kimi_only_numbered_are_counted_over_the_history(serve):
    server = serve("--tool-call-parser", "kimi_k2", "--chat-template",
                   "{% for m in messages %}{{ m.content or m.tool_calls | tojson }}{% endfor %}")
    text = ('<|tool_calls_section_begin|><|tool_call_begin|>0<|tool_call_argument_begin|>{}<|tool_call_end|>'
            '<|tool_call_begin|>1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>')
    called = {"id": "functions.get_time:0", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    messages = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": called["id"], "content": "noon"}, {"role": "user", "content": text + STOP}]
    choice = client_of(server).chat.completions.create(model="demo", messages=messages, tools=[TIME], stop=[STOP], max_tokens=2000,
                                                       temperature=0).choices[0]
    assert [call.id for call in choice.message.tool_calls] == ["functions.get_time:1", "functions.get_time:2"]
