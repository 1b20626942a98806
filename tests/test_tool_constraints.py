"""Calls that the client demands: the model is made to write them. The demo model draws at temperature 1, so that
without the constraint few answers would hold."""
import contextlib
import json
import re

import openai
import pytest
import requests

from conftest import SANITIZED

SEAT = {"type": "function", "function": {"name": "book_seat", "strict": True, "parameters": {
    "type": "object", "required": ["row", "side"], "additionalProperties": False, "properties": {
        "row": {"type": "integer", "minimum": 1, "maximum": 40}, "side": {"enum": ["left", "right"]}}}}}
WAIT = {"type": "function", "function": {"name": "wait", "parameters": {
    "type": "object", "required": ["minutes"], "additionalProperties": False,
    "properties": {"minutes": {"type": "integer", "minimum": 0, "maximum": 999}}}}}
LOOSE = {"type": "function", "function": {"name": "loose", "parameters": {
    "type": "object", "properties": {"x": {"type": "array", "uniqueItems": True}}, "maxProperties": 0}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["red", "green"]}}}


@pytest.fixture
def client(demo):
    return openai.OpenAI(base_url=demo.url + "/v1", api_key="none", max_retries=0)


@pytest.fixture
def client_of(start):
    """client_of(parser): of a server of its own, which ends at once, as its client has gone before."""
    with contextlib.ExitStack() as clients:
        yield lambda parser: clients.enter_context(openai.OpenAI(base_url=start("--tool-call-parser", parser).url + "/v1", api_key="none", max_retries=0))


def ask(client, **fields):
    return client.chat.completions.create(**{
        "model": "demo", "messages": [{"role": "user", "content": "Book me a seat, please."}], "tools": [SEAT, WAIT],
        "temperature": 1, "max_tokens": 600, **fields})


def check(name, arguments):
    value = json.loads(arguments)
    if name == "book_seat":
        assert set(value) == {"row", "side"} and 1 <= value["row"] <= 40 and value["side"] in ("left", "right")
    else:
        assert name == "wait" and set(value) == {"minutes"} and 0 <= value["minutes"] <= 999


def streamed(client, **fields):
    """Calls by index, content, finish reason."""
    calls, content, finish = {}, "", None
    for chunk in ask(client, stream=True, **fields):
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for piece in choice.delta.tool_calls or []:
                if piece.id:
                    calls[piece.index] = [piece.function.name, ""]
                calls[piece.index][1] += piece.function.arguments
            finish = choice.finish_reason or finish
    return [calls[i] for i in sorted(calls)], content, finish


@pytest.mark.parametrize("seed", range(3))
def test_a_required_call_comes_with_arguments_of_its_schema(client, seed):
    choice = ask(client, tool_choice="required", parallel_tool_calls=False, seed=seed).choices[0]
    assert choice.finish_reason == "tool_calls" and not choice.message.content
    [call] = choice.message.tool_calls
    check(call.function.name, call.function.arguments)


def test_a_stream_of_a_required_call_says_what_the_whole_answer_says(client):
    whole = ask(client, tool_choice="required", parallel_tool_calls=False, seed=7).choices[0]
    calls, content, finish = streamed(client, tool_choice="required", parallel_tool_calls=False, seed=7)
    assert (content, finish) == ("", "tool_calls")
    assert calls == [[c.function.name, c.function.arguments] for c in whole.message.tool_calls]


@pytest.mark.parametrize("name", ["book_seat", "wait"])
def test_a_named_call_is_that_one_and_comes_once(client, name):
    choice = ask(client, tool_choice={"type": "function", "function": {"name": name}}, seed=3).choices[0]
    [call] = choice.message.tool_calls
    assert call.function.name == name and choice.finish_reason == "tool_calls"
    check(name, call.function.arguments)


def test_allowed_tools_that_are_required_leave_the_others_out(client):
    for seed in range(3):
        choice = ask(client, seed=seed, parallel_tool_calls=False, tool_choice={"type": "allowed_tools", "allowed_tools": {
            "mode": "required", "tools": [{"type": "function", "function": {"name": "wait"}}]}}).choices[0]
        assert [c.function.name for c in choice.message.tool_calls] == ["wait"]


def test_every_one_of_n_choices_calls(client):
    answer = ask(client, tool_choice="required", parallel_tool_calls=False, n=4, seed=1)
    for choice in answer.choices:
        [call] = choice.message.tool_calls
        if choice.finish_reason == "length":
            continue  # white space without end is what this model likes
        check(call.function.name, call.function.arguments)


def test_required_calls_in_parallel_are_all_of_their_schemas(client):
    choice = ask(client, tool_choice="required", seed=2, max_tokens=200).choices[0]
    calls = choice.message.tool_calls
    for call in calls if choice.finish_reason == "tool_calls" else calls[:-1]:
        check(call.function.name, call.function.arguments)


def test_the_old_function_call_by_name_is_enforced(demo):
    answer = demo.chat("Wait.", functions=[SEAT["function"], WAIT["function"]], function_call={"name": "wait"},
                       temperature=2, max_tokens=200).json()
    call = answer["choices"][0]["message"]["function_call"]
    assert call["name"] == "wait" and answer["choices"][0]["finish_reason"] == "function_call"
    check("wait", call["arguments"])


def test_one_call_at_most_and_text_in_front_of_it(client):
    # Greedy, so the model itself decides to call.
    choice = ask(client, parallel_tool_calls=False, temperature=0,
                 messages=[{"role": "user", "content": "What is the weather in Cologne?"}]).choices[0]
    assert len(choice.message.tool_calls or []) <= 1


def test_a_schema_that_nothing_enforces_is_any_object_unless_strict(client, demo):
    choice = ask(client, tools=[LOOSE], tool_choice="required", parallel_tool_calls=False, temperature=1,
                 max_tokens=900).choices[0]
    assert choice.message.tool_calls[0].function.name == "loose"
    strict = {"type": "function", "function": {**LOOSE["function"], "strict": True}}
    answer = demo.chat("x", tools=[strict])
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "tools[0].function.strict"


def test_a_required_call_has_an_object_where_the_parameters_have_another_type(client, demo):
    # It came as content that looked like a call, with "stop".
    function = {"name": "say", "parameters": {"type": "string"}}
    choice = ask(client, tools=[{"type": "function", "function": function}], tool_choice="required", parallel_tool_calls=False).choices[0]
    assert choice.message.tool_calls[0].function.name == "say"
    answer = demo.chat("x", tools=[{"type": "function", "function": {**function, "strict": True}}])
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "tools[0].function.strict"


def test_constrained_tools_have_schemas(demo):
    # They stood for any object, in silence.
    for parameters, pointer in [({"type": "object", "properties": {"a": {"type": "int"}}}, "#/properties/a: type: "),
                                ({"type": "object", "properties": []}, "#: properties: "),
                                ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "#/properties/a: $ref: ")]:
        tools = [WAIT, {"type": "function", "function": {"name": "f", "parameters": parameters}}]
        answer = demo.chat("x", tools=tools, tool_choice="required")
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == "tools[1].function.parameters" and pointer in answer.json()["error"]["message"]
        assert demo.chat("x", tools=tools, max_tokens=1).status_code == 200


def test_a_form_of_the_answer_leaves_room_for_calls(client):
    seen = set()
    for seed in range(8):
        choice = ask(client, response_format=FORMAT, seed=seed, parallel_tool_calls=False).choices[0]
        if choice.finish_reason == "length":
            continue  # cut in its white space, which a model of this size may write without end
        if choice.message.tool_calls:
            [call] = choice.message.tool_calls
            check(call.function.name, call.function.arguments)
        else:
            assert json.loads(choice.message.content) in ("red", "green")
        seen.add(choice.finish_reason)
    assert seen and seen <= {"stop", "tool_calls"}


def test_a_required_call_and_a_form_of_the_answer_are_two_constraints(demo):
    answer = demo.chat("x", tools=[WAIT], tool_choice="required", response_format=FORMAT)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "response_format"


def test_reasoning_is_free_and_the_form_holds_behind_it(demo):
    # vllm#44012: no schema behind reasoning.
    answer = demo.chat("What is 45 plus 38?", chat_template_kwargs={"enable_thinking": True}, temperature=0,
                       max_tokens=400, response_format=FORMAT).json()["choices"][0]
    assert answer["message"]["reasoning_content"]
    assert json.loads(answer["message"]["content"]) in ("red", "green")


def test_reasoning_ends_after_max_thinking_tokens(demo):
    fields = {"chat_template_kwargs": {"enable_thinking": True}, "temperature": 0, "max_tokens": 300}
    free = demo.chat("What is 45 plus 38?", **fields).json()
    short = demo.chat("What is 45 plus 38?", max_thinking_tokens=5, **fields).json()
    assert free["usage"]["completion_tokens_details"]["reasoning_tokens"] > 7
    assert short["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 7
    assert short["choices"][0]["message"]["content"]


def test_a_hundred_tools_can_be_demanded(demo):
    tools = [{"type": "function", "function": {"name": f"tool_{i}", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": [f"v{i}", "w"]}}}}} for i in range(128)]
    answer = demo.chat("x", tools=tools, tool_choice={"type": "function", "function": {"name": "tool_77"}},
                       max_tokens=100)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "tool_77"


def test_the_model_is_named_where_nothing_can_enforce(serve):
    server = serve("--tool-call-parser", "hermes")
    answer = requests.post(server.url + "/v1/chat/completions", json={
        "messages": [{"role": "user", "content": "x"}], "tools": [SEAT]}, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "tools[0].function.strict"


def test_a_strict_tool_of_a_family_with_tags_is_enforced_or_refused(start):
    # The grammar library writes these forms, and dropped what stands beside anyOf, among others.
    server = start("--tool-call-parser", "seed_oss")  # its tags hold no special token of the demo model
    def strict(**row):
        return {"type": "function", "function": {"name": "book_seat", "strict": True, "parameters": {
            "type": "object", "required": ["row"], "additionalProperties": False, "properties": {"row": row}}}}
    for row in ({"type": "integer", "multipleOf": 7}, {"anyOf": [{"type": "integer"}, {"type": "null"}], "maximum": 9}, {"minimum": 3}):
        answer = server.chat("x", tools=[strict(**row)])
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "tools[0].function.strict", row
        assert "#/properties/row" in answer.json()["error"]["message"]
    answer = server.chat("x", tools=[strict(enum=["a", "</parameter>"])])  # was read as an empty text
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "tools[0].function.strict", answer.text
    odd = {"type": "function", "function": {"name": "a>b"}}  # the call was read as text
    for fields in ({"tool_choice": "required"}, {"parallel_tool_calls": False}):
        answer = server.chat("x", tools=[odd], **fields)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "tools", answer.text
    answer = server.chat("x", tools=[strict(type="integer", minimum=3, maximum=9)], tool_choice="required", parallel_tool_calls=False,
                         max_tokens=200).json()["choices"][0]
    assert answer["finish_reason"] == "length" or 3 <= json.loads(answer["message"]["tool_calls"][0]["function"]["arguments"])["row"] <= 9


@pytest.mark.parametrize("name", ["seed_oss", "qwen3_coder", "glm45", "minimax-m2", "deepseekv32"])
def test_a_required_call_in_tags_comes_to_its_end(client_of, name):
    """White space between tags had no bound: the demo model wrote line ends until max_tokens cut its call."""
    client = client_of(name)
    for temperature in (0, 1):
        choice = ask(client, tools=[WAIT], tool_choice="required", parallel_tool_calls=False, temperature=temperature, seed=1).choices[0]
        assert choice.finish_reason == "tool_calls" and not choice.message.content
        [call] = choice.message.tool_calls
        check(call.function.name, call.function.arguments)


@pytest.mark.parametrize("name", ["pythonic", "lfm2", "olmo3", "cohere_command4", "apertus2509", "plamo3", "xlam", "json", "mimo", "kimi_k3", "minimax-m3",
                                  "gemma4", "hunyuan", "inkling"])
def test_the_calls_of_each_form_hold_their_schemas(client_of, name):
    """`parallel_tool_calls: false` and `strict` were a 400 for models that write Python's keyword arguments."""
    client = client_of(name)
    for seed in range(1 if SANITIZED else 2):
        choice = ask(client, tool_choice="required", parallel_tool_calls=False, seed=seed).choices[0]
        assert choice.finish_reason == "tool_calls" and not choice.message.content
        [call] = choice.message.tool_calls
        check(call.function.name, call.function.arguments)
    calls, content, finish = streamed(client, tool_choice="required", seed=5, temperature=2)
    # An answer may be cut in a call whose name is not there yet, which is text; what is behind a name is never text.
    assert finish == "length" or (calls and not content), (finish, content)
    assert not re.search("arguments|parameters|row", content or ""), content
    for called, arguments in calls[:-1] if finish == "length" else calls:
        check(called, arguments)
    for fields in ({"parallel_tool_calls": False}, {}):  # SEAT is strict
        choice = ask(client, temperature=0, max_tokens=60, **fields).choices[0]
        assert choice.message.content or choice.message.tool_calls
