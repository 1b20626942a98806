"""Tokens that a grammar forces are computed together: no answer may show it."""
import json

import pytest
import requests

from conftest import Server

KEYS = ["customer_identification_number", "shipping_address_is_known", "kqxzj", "total_amount_in_cents"]
SCHEMA = {"type": "object", "additionalProperties": False, "required": KEYS, "properties": {
    KEYS[0]: {"type": "integer"}, KEYS[1]: {"type": "boolean"}, KEYS[2]: {"enum": ["xqjzkv", "vkzjqx"]},
    KEYS[3]: {"type": "integer", "minimum": 0, "maximum": 99999}}}
# No two of their letters are one token of the demo model, so that every mask but one allows one token.
RARE = "xkqzjv(wq|vw)zzkqxj[0-9]{1,3}"


@pytest.fixture(scope="module")
def both():
    servers = Server(), Server("--disable-forced-tokens")
    yield servers
    for server in servers:
        server.stop()


def generate(server, **sampling):
    """Ids, log-probabilities, text, the end and the counts."""
    answer = requests.post(server.url + "/generate", timeout=120, json={
        "text": "Where is it?", "return_logprob": True, "top_logprobs_num": 2,
        "sampling_params": {"temperature": 0, "max_new_tokens": 120, **sampling}})
    assert answer.status_code == 200, answer.text
    answer = answer.json()
    meta = answer["meta_info"]
    return {"text": answer["text"], "ids": answer.get("output_ids"), **{key: meta[key] for key in (
        "output_token_logprobs", "output_top_logprobs", "finish_reason", "completion_tokens", "prompt_tokens")}}


@pytest.mark.parametrize("sampling", [
    {}, {"temperature": 1, "sampling_seed": 3}, {"frequency_penalty": 1.5}, {"repetition_penalty": 1.3},
    {"min_new_tokens": 25}, {"max_new_tokens": 7}, {"stop": "number"}, {"stop": "zk"}, {"ignore_eos": True},
    {"temperature": 1, "sampling_seed": 4, "top_k": 5, "presence_penalty": 1}], ids=str)
@pytest.mark.parametrize("grammar", [{"json_schema": json.dumps(SCHEMA)}, {"regex": RARE}], ids=["schema", "regex"])
def test_answers_and_logprobs_are_the_same_with_and_without(both, grammar, sampling):
    assert generate(both[0], **grammar, **sampling) == generate(both[1], **grammar, **sampling)


def chunks(server, **fields):
    """The events of a stream, without what names the answer."""
    body = {"messages": [{"role": "user", "content": "Where is it?"}], "stream": True, "temperature": 1, "seed": 5,
            "max_tokens": 120, "logprobs": True, "stream_options": {"include_usage": True}, **fields}
    with requests.post(server.url + "/v1/chat/completions", json=body, stream=True, timeout=120) as answer:
        assert answer.status_code == 200, answer.text
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith(b"data: {")]
    usage = [event["usage"] for event in events if event.get("usage")][-1]
    return [event["choices"] for event in events if event["choices"]], usage["completion_tokens"]


@pytest.mark.parametrize("fields", [
    {"structured_outputs": {"json": SCHEMA, "disable_any_whitespace": True}}, {"structured_outputs": {"regex": RARE}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}],
    ids=["compact", "regex", "schema"])
def test_streams_have_the_same_events(both, fields):
    assert chunks(both[0], **fields) == chunks(both[1], **fields)


def test_every_one_of_n_choices_is_the_same(both):
    answers = [server.chat("Where is it?", n=4, temperature=1, seed=9, max_tokens=120,
                           structured_outputs={"regex": RARE}).json()["choices"] for server in both]
    assert answers[0] == answers[1]


def test_calls_of_tools_are_the_same(both):
    tool = {"type": "function", "function": {"name": "look_up_the_weather", "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}}}
    answers = []
    for server in both:
        answer = server.chat("What is the weather?", tools=[tool], tool_choice="required", temperature=0, max_tokens=120)
        assert answer.status_code == 200, answer.text
        choice = answer.json()["choices"][0]
        answers.append((choice["finish_reason"], [call["function"] for call in choice["message"]["tool_calls"]]))
    assert answers[0] == answers[1]


def test_forced_tokens_are_counted_where_they_are_computed(both):
    before = [server.metric("portico_forced_tokens_total") for server in both]
    for server in both:
        generate(server, regex=RARE)
    after = [server.metric("portico_forced_tokens_total") for server in both]
    assert after[0] - before[0] >= 8
    assert after[1] == 0
    assert both[1].metric("portico_refused_forced_tokens_total") == 0
