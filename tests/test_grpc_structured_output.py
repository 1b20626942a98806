"""Answers of a given form over gRPC: the fields of both services, end to end."""
import re

import grpc
import pytest
import requests

from grpc_client import Client, fields_at_fault

FEW = '{"enum": ["red", "green"]}'
TAG = '{"type": "structural_tag", "format": {"type": "const_string", "value": "yes"}}'


@pytest.fixture(scope="module")
def client(demo):
    return Client(f"127.0.0.1:{demo.port}")


def text_of(server, ids):
    """Without the token that ends it."""
    return requests.post(server.url + "/detokenize", json={"tokens": list(ids)}, timeout=60).json()["text"]


@pytest.mark.parametrize("params, pattern", [
    ({"json_schema": FEW}, '"(red|green)"'),
    ({"regex": "[0-9]{3}"}, "[0-9]{3}"),
    ({"guided_decoding": {"json_schema": FEW}}, '"(red|green)"'),
    ({"guided_decoding": {"regex": "a|b"}}, "a|b"),
    ({"guided_decoding": {"ebnf": 'root ::= "x" [yz]'}}, "x[yz]"),
    ({"guided_decoding": {"structural_tag": TAG}}, "yes"),
    ({"guided_decoding": {"choice": {"values": ["a.b", "(c|d)"]}}}, r"a\.b|\(c\|d\)"),
])
@pytest.mark.parametrize("stream", [False, True])
def test_a_text_fits_what_its_sampling_parameters_say(client, params, pattern, stream):
    answers = list(client.sglang.TextGenerate(
        text="one", stream=stream, sampling_params={"max_new_tokens": 100, "temperature": 1.0, **params},
        metadata=[("x-portico-stream", "cumulative")]))
    assert re.fullmatch(pattern, answers[-1].text), answers[-1]


@pytest.mark.parametrize("params, pattern", [
    ({"json_schema": FEW}, '"(red|green)"'), ({"regex": "[0-9]{3}"}, "[0-9]{3}"),
    ({"ebnf_grammar": 'root ::= "x" [yz]'}, "x[yz]"), ({"structural_tag": TAG}, "yes"),
])
def test_a_schedulers_tokens_fit(demo, client, params, pattern):
    answers = list(client.scheduler.Generate(
        request_id="fits", tokenized={"input_ids": [5, 6]}, sampling_params={"max_new_tokens": 100, "temperature": 1.0, **params}))
    assert answers[-1].complete.finish_reason == "stop"
    assert re.match(pattern, text_of(demo, answers[-1].complete.output_ids))


@pytest.mark.parametrize("params, field", [
    ({"json_schema": "{"}, "json_schema"), ({"regex": "[a"}, "regex"),
    ({"guided_decoding": {"ebnf": "root ::= nothing"}}, "ebnf"), ({"guided_decoding": {"structural_tag": "[]"}}, "structural_tag"),
    ({"guided_decoding": {"choice": {"values": []}}}, "choice"),
    ({"json_schema": FEW, "regex": "a"}, "regex"),
])
def test_what_cannot_be_kept_is_refused_with_its_field(client, params, field):
    with pytest.raises(grpc.RpcError) as refused:
        list(client.sglang.TextGenerate(text="one", sampling_params=params))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert fields_at_fault(refused.value)[0] == [field]


def test_a_call_that_is_cancelled_while_its_grammar_compiles_leaves_nothing_behind(demo, client):
    slow = {"guided_decoding": {"ebnf": 'root ::= ("a"{0,9000} "b"{0,9002}){0,9000}'}}
    call = client.sglang.TextGenerate(text="one", sampling_params=slow)
    call.cancel()
    demo.settle()
    assert list(client.sglang.TextGenerate(text="one", sampling_params={"regex": "a|b"}))
