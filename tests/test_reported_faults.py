"""What users of other servers reported about tool calls and grammars, as tests. Others of these reports are told at the tests of
their subject: vllm#43221, #50627, #51977 (test_tools.py), vllm#44012 (test_tool_constraints.py), vllm#54003 (test_hostile_grammars.py)."""
import json
import random
import subprocess

import pytest

from conftest import BINARY, SANITIZED

ARGUMENTS = {"location": "San Francisco, CA", "units": "fahrenheit", "note": "a \"quoted\" {word}"}
CALLS = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": %s}\n</tool_call>',
    "llama3": '<|python_tag|>{"name": "get_weather", "parameters": %s}',
    "mistral": '[TOOL_CALLS] [{"name": "get_weather", "arguments": %s}]',
    "deepseekv31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>%s<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>%s<|tool_call_end|>"
               "<|tool_calls_section_end|>"}


def parse(requests):
    run = subprocess.run([BINARY, "parse", "--jsonl"], text=True, capture_output=True, timeout=120,
                         input="".join(json.dumps(request) + "\n" for request in requests))
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.split("\n") if line]


@pytest.mark.parametrize("family", CALLS)
def test_arguments_are_whole_where_a_chunk_holds_several_tokens(family):
    # sglang#37634, sglang#31915 (71 to 91 % of random splits), vllm#55082: with speculative decoding or a stream interval.
    text = "Sure.\n" + CALLS[family] % json.dumps(ARGUMENTS)
    dice = random.Random(family)
    ways = [[text], [text[:6], text[6:]], [text[:-1], text[-1]]]
    for most in (4, 12, 40):
        for _ in range(30):
            way, rest = [], text
            while rest:
                size = dice.randint(1, most)
                way.append(rest[:size])
                rest = rest[size:]
            ways.append(way)
    for answer in parse([{"id": 1, "chunks": way, "tool_call_parser": family} for way in ways]):
        [call] = answer["tool_calls"]
        assert call["name"] == "get_weather" and json.loads(call["arguments"]) == ARGUMENTS
        assert answer["content"] == "Sure.\n"


@pytest.mark.parametrize("family, text", [
    ("hermes", "Use a <tool_call"), ("hermes", "<tool_call>\n{\"name\""), ("pythonic", "See [the docs"), ("pythonic", "[get_weather"),
    ("json", "{\"name\": \"get_wea"), ("mistral", "[TOOL_CALLS] [{\"na"), ("kimi_k2", "<|tool_calls_section_begin|>hm"),
    ("qwen3_coder", "<tool_call>\n<function=get"), ("glm45", "<tool_call>get_weather and"), ("gemma4", "<|tool_call>call:get")])
def test_an_answer_that_began_like_a_call_is_not_swallowed(family, text):
    # smg#2271: it was kept back for a call that never came.
    requests = [{"id": 1, "tool_call_parser": family, **way} for way in ({"text": text}, {"chunks": list(text)})]
    for answer in parse(requests):
        assert answer["content"] == text and answer["tool_calls"] == []


def ask(demo, schema, **more):
    return demo.chat("Number?", **{"temperature": 1, "max_tokens": 400, **more, "response_format": {
        "type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})


def test_no_keyword_of_a_schema_is_dropped(demo):
    # xgrammar#858: what stands beside $ref or in the second member of allOf was, without a word.
    schema = {"type": "object", "required": ["n"], "additionalProperties": False, "properties": {
        "n": {"$ref": "#/$defs/n", "minimum": 7, "allOf": [{"maximum": 90}, {"maximum": 9}]}}, "$defs": {"n": {"type": "integer"}}}
    for seed in range(5):
        answer = ask(demo, schema, seed=seed).json()["choices"][0]
        assert answer["finish_reason"] == "stop" and 7 <= json.loads(answer["message"]["content"])["n"] <= 9
    refused = ask(demo, {"properties": {"a": {"type": "array", "uniqueItems": True}}})
    assert refused.status_code == 400
    assert "#/properties/a" in refused.json()["error"]["message"] and "uniqueItems" in refused.json()["error"]["message"]


# A sanitizer makes masks ten times as slow, so that the server's limit on a grammar's time ends the answer.
@pytest.mark.parametrize("most", [40] if SANITIZED else [80, 5000])
def test_a_string_has_the_length_that_its_schema_bounds(demo, most):
    # xgrammar#852: 80 took seconds to compile, and masks 300 times as long as without. bench/grammar has the times.
    answer = ask(demo, {"type": "string", "minLength": 20, "maxLength": most}, max_tokens=16 if SANITIZED else 64)
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    if choice["finish_reason"] == "stop":
        assert 20 <= len(json.loads(choice["message"]["content"])) <= most
