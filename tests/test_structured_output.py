"""Answers that must look like something: grammars and JSON schemas, on every route that answers with text."""
import json
import re

import pytest
import requests

SCHEMA = {"type": "object", "required": ["city", "n"], "additionalProperties": False,
          "properties": {"city": {"type": "string", "maxLength": 20}, "n": {"type": "integer"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
FEW = {"enum": ["red", "green"]}


def post(server, path, body):
    return requests.post(server.url + path, json=body, timeout=120)


def chat(server, **fields):
    """The text and the finish reason."""
    answer = server.chat("Where is it?", **{"temperature": 1, "seed": 5, "max_tokens": 400, **fields})
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def streamed_chat(server, **fields):
    body = {"messages": [{"role": "user", "content": "Where is it?"}], "temperature": 1, "seed": 5,
            "max_tokens": 400, "stream": True, **fields}
    with requests.post(server.url + "/v1/chat/completions", json=body, stream=True, timeout=120) as answer:
        assert answer.status_code == 200, answer.text
        lines = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert lines.pop() == b"[DONE]"
    choices = [json.loads(line)["choices"][0] for line in lines]
    return "".join(c["delta"].get("content") or "" for c in choices), choices[-1]["finish_reason"]


def check_fits(text):
    value = json.loads(text)
    assert set(value) == {"city", "n"}, text
    assert isinstance(value["city"], str) and len(value["city"]) <= 20 and type(value["n"]) is int, text


@pytest.mark.parametrize("ask", [chat, streamed_chat])
def test_a_chat_answer_fits_its_schema(demo, ask):
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "n": {"type": "integer", "minimum": 0, "maximum": 99}}}
    for seed in range(4):
        text, reason = ask(demo, seed=seed, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}})
        assert reason == "stop", text
        check_fits(text)
        assert 0 <= json.loads(text)["n"] <= 99


def test_a_stream_says_what_the_whole_answer_says(demo):
    assert streamed_chat(demo, response_format=FORMAT) == chat(demo, response_format=FORMAT)


def test_every_one_of_n_choices_fits(demo):
    answer = demo.chat("Where is it?", n=4, temperature=1, max_tokens=400, response_format={
        "type": "json_schema", "json_schema": {"name": "x", "schema": FEW}})
    assert answer.status_code == 200, answer.text
    assert {c["message"]["content"] for c in answer.json()["choices"]} <= {'"red"', '"green"'}


def test_a_json_object_starts_as_one_and_is_whole_where_it_ends(demo):
    for seed in range(4):
        text, reason = chat(demo, seed=seed, response_format={"type": "json_object"})
        assert text.lstrip().startswith("{"), text
        if reason == "stop":
            assert isinstance(json.loads(text), dict)


def test_type_text_constrains_nothing(demo):
    fields = {"temperature": 0, "max_tokens": 12}
    plain = demo.chat("What is 7 plus 5?", **fields).json()["choices"]
    assert demo.chat("What is 7 plus 5?", response_format={"type": "text"}, **fields).json()["choices"] == plain


@pytest.mark.parametrize("field, value, pattern", [
    ("regex", "[0-9]{3}", "[0-9]{3}"),
    ("json_schema", FEW, '"(red|green)"'),
    ("json_schema", json.dumps(FEW), '"(red|green)"'),
    ("ebnf", 'root ::= [ab] end\nend ::= "c" | "d"', "[ab][cd]"),
])
def test_generate_and_completions_take_sglangs_fields(demo, field, value, pattern):
    native = post(demo, "/generate", {"text": "one", "sampling_params": {field: value, "max_new_tokens": 200}})
    assert native.status_code == 200, native.text
    assert re.fullmatch(pattern, native.json()["text"]), native.text
    assert native.json()["meta_info"]["finish_reason"]["type"] == "stop"
    plain = post(demo, "/v1/completions", {"prompt": "one", field: value, "max_tokens": 200})
    assert plain.status_code == 200, plain.text
    assert re.fullmatch(pattern, plain.json()["choices"][0]["text"]), plain.text


def test_a_constraint_beside_the_sampling_parameters_is_refused(demo):
    # It had no effect, without a word.
    for fields in ({"regex": "a"}, {"json_schema": "{}"}, {"response_format": FORMAT}, {"guided_choice": ["a"]}):
        answer = post(demo, "/generate", {"text": "one", **fields})
        assert answer.status_code == 400 and answer.json()["error"]["param"] in fields, answer.text


def test_a_json_object_may_have_llama_cpps_schema(demo):
    text, reason = chat(demo, response_format={"type": "json_object", "schema": FEW})
    assert reason == "stop" and json.loads(text) in FEW["enum"]


def test_each_prompt_of_a_batch_has_its_own_constraint(demo):
    answers = post(demo, "/generate", {"text": ["one", "two", "three"], "sampling_params": [
        {"regex": "[0-9]{3}"}, {"regex": "(yes|no)"}, {"max_new_tokens": 2}]})
    assert answers.status_code == 200, answers.text
    first, second, third = answers.json()
    assert re.fullmatch("[0-9]{3}", first["text"]) and second["text"] in ("yes", "no")
    assert third["meta_info"]["completion_tokens"] <= 2


def test_vllms_structured_outputs_and_guided_fields_work(demo):
    for fields in ({"structured_outputs": {"choice": ["yes", "no"]}}, {"guided_choice": ["yes", "no"]},
                   {"structured_outputs": {"regex": "(yes|no)"}}, {"guided_regex": "(yes|no)"},
                   {"guided_decoding": {"choice": ["yes", "no"]}}):
        assert chat(demo, **fields)[0] in ("yes", "no"), fields


@pytest.mark.parametrize("fields, param", [
    ({"response_format": {"type": "xml"}}, "response_format"),
    ({"response_format": {"type": "json_schema"}}, "response_format"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "thing"}}}},
     "response_format"),
    ({"json_schema": "{"}, "json_schema"),
    ({"regex": "[a"}, "regex"),
    ({"regex": 7}, "regex"),
    ({"ebnf": "root ::= nothing"}, "ebnf"),
    ({"structured_outputs": {}}, "structured_outputs"),
    ({"guided_choice": []}, "guided_choice"),
    ({"guided_decoding": {"backend": "xgrammar"}}, "guided_decoding"),
    ({"guided_json_object": 1}, "guided_json_object"),
    ({"guided_choice": ["a", "b\0"]}, "guided_choice"),
    ({"structural_tag": {"type": "structural_tag", "format": {"type": "const_string", "value": "a\0"}}}, "structural_tag"),
    ({"regex": "a", "ebnf": 'root ::= "a"'}, "regex"),
    ({"response_format": FORMAT, "regex": "a"}, "response_format"),
])
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_a_constraint_is_a_400_that_names_it(demo, fields, param, stream):
    answer = demo.chat("Hi", stream=stream, max_tokens=4, **fields)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param and answer.json()["error"]["message"]


@pytest.mark.parametrize("depth,status", [(64, 200), (65, 400)])
def test_objects_may_be_as_deep_as_the_bound_says(demo, depth, status):
    """Objects 33 deep were refused with the JSON reader's words: each is two levels of JSON."""
    schema = {"type": "null"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    answer = demo.chat("Where is it?", max_tokens=1, response_format={
        "type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
    assert answer.status_code == status, answer.text
    if status == 400:
        assert "nested more than 64 deep" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path, body, field", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_object"}}, "response_format"),
    ("/v1/completions", {"prompt": "a", "response_format": FORMAT}, "response_format"),
    ("/generate", {"text": "a", "sampling_params": {"regex": "a+"}}, "regex")])
def test_an_engine_without_grammars_refuses_them_and_is_named(mock, path, body, field):
    """It was named only where other fields are refused, as lora_path."""
    answer = post(mock, path, body)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field, answer.text
    assert answer.json()["error"]["message"] == f"{field} is not supported by this model's engine, mock: leave it out"
