"""Tools, parsed answers and reasoning through the official openai packages, as programs use them, with the demo model."""
import json
import pathlib
import subprocess
import sys
from typing import Literal

import openai
import pydantic
import pytest

PAIRS = [("Cologne", "Paris"), ("Rome", "Oslo"), ("Berlin", "Madrid")]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": CITY}} for name in ("get_weather", "get_time")]
STRICT = [{**t, "function": {**t["function"], "strict": True}} for t in TOOLS]
BOTH = [{"role": "user", "content": "What is the weather in Cologne and in Paris?"}]
OPTIONS = {"model": "demo", "temperature": 0, "max_tokens": 200}


class Seat(pydantic.BaseModel):
    row: int = pydantic.Field(ge=1, le=40)
    side: Literal["left", "right"]


@pytest.fixture
def client(demo):
    return openai.OpenAI(base_url=demo.url + "/v1", api_key="none", max_retries=0)


def named(calls):
    return [[call.function.name, json.loads(call.function.arguments)] for call in calls]


def weather(*cities):
    return [["get_weather", {"city": city}] for city in cities]


@pytest.mark.parametrize("stream", [False, True])
def test_three_turns_with_two_calls_at_once(client, stream):
    messages = []

    def answer():
        if stream:
            with client.chat.completions.stream(messages=messages, tools=STRICT, **OPTIONS) as events:
                return events.get_final_completion().choices[0]
        return client.chat.completions.create(messages=messages, tools=TOOLS, **OPTIONS).choices[0]

    for pair in PAIRS:
        messages.append({"role": "user", "content": f"What is the weather in {pair[0]} and in {pair[1]}?"})
        choice = answer()
        assert choice.finish_reason == "tool_calls" and named(choice.message.tool_calls) == weather(*pair)
        messages.append({"role": "assistant", "content": choice.message.content, "tool_calls": [
            call.model_dump(include={"id": True, "type": True, "function": {"name", "arguments"}})
            for call in choice.message.tool_calls]})
        assert len({call.id for call in choice.message.tool_calls}) == 2
        for call in choice.message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": '{"temperature": 20}'})
        choice = answer()
        assert choice.finish_reason == "stop" and not choice.message.tool_calls
        assert pair[0] in choice.message.content and pair[1] in choice.message.content
        messages.append({"role": "assistant", "content": choice.message.content})


def test_parse_gives_an_object_of_the_class(client):
    answer = client.chat.completions.parse(messages=[{"role": "user", "content": "Book me a seat."}], response_format=Seat,
                                           **OPTIONS)
    assert isinstance(answer.choices[0].message.parsed, Seat)
    with client.chat.completions.stream(messages=[{"role": "user", "content": "Book me a seat."}], response_format=Seat,
                                        **OPTIONS) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == answer.choices[0].message.parsed


def test_parse_gives_the_arguments_of_a_call_as_an_object(client):
    answer = client.chat.completions.parse(
        messages=[{"role": "user", "content": "Book me a seat."}], tools=[openai.pydantic_function_tool(Seat)],
        tool_choice="required", parallel_tool_calls=False, **OPTIONS)
    [call] = answer.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Seat)


def test_the_events_of_a_stream_end_with_each_calls_arguments(client):
    with client.chat.completions.stream(messages=BOTH, tools=STRICT, **OPTIONS) as stream:
        done = [e.parsed_arguments for e in stream if e.type == "tool_calls.function.arguments.done"]
    assert done == [{"city": "Cologne"}, {"city": "Paris"}]


def test_the_javascript_package_calls_parses_and_runs_tools(node, demo):
    script = pathlib.Path(__file__).parent / "js/tools.mjs"
    result = subprocess.run([node, str(script), str(pathlib.Path(sys.prefix) / "js"), demo.url],
                            capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    got = json.loads(result.stdout)
    for turn, pair in zip(got["turns"], PAIRS, strict=True):
        assert turn["finish"] == "tool_calls" and turn["calls"] == weather(*pair) and turn["ids"] == 2
        assert pair[0] in turn["answer"] and pair[1] in turn["answer"]
    assert got["gathered"] == {"finish": "tool_calls", "calls": weather("Cologne", "Paris")}
    assert "Cologne" in got["ran"] and "Paris" in got["ran"]
    assert got["parsed"]["side"] in ("left", "right")
    assert [call["side"] for call in got["required"]] in (["left"], ["right"])
    assert got["reasoning"]
    assert got["refused"] == {"status": 400, "param": "tools"}
