"""How a body's bytes come: in a coding, or behind a byte order mark. Both were "not valid UTF-8"."""
import gzip
import json
import zlib

import pytest
import requests

from gateway_fleet import Fleet
from grpc_client import Client

CHAT = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
BODIES = [
    ("/v1/chat/completions", CHAT), ("/v1/chat/completions", {**CHAT, "stream": True}),
    ("/v1/completions", {"prompt": "hello", "max_tokens": 2}), ("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 2}}),
    ("/tokenize", {"prompt": "a"}), ("/v1/tokenize", {"messages": CHAT["messages"]}), ("/detokenize", {"tokens": [5]}),
    ("/v1/score", {"query": "a", "items": ["b"], "label_token_ids": [5]}),
    ("/flush_cache", {}), ("/continue_generation", {}), ("/abort_request", {"rid": "nobody"}),
    ("/parse_function_call", {"text": "a", "tool_call_parser": "hermes"}),
]
CODINGS = {"gzip": gzip.compress, "deflate": zlib.compress, "br": lambda data: b"\x0b\x02" + data, "Gzip": gzip.compress,
           "identity, gzip": gzip.compress}


def send(server, path, data, **headers):
    return requests.post(server.url + path, data=data, timeout=60, headers={"content-type": "application/json", **headers})


@pytest.mark.parametrize("path, body", BODIES)
def test_a_body_in_a_coding_is_refused_by_the_codings_name(mock, path, body):
    data = json.dumps(body).encode()
    for coding, encode in CODINGS.items():
        answer = send(mock, path, encode(data), **{"content-encoding": coding})
        assert answer.status_code == 415, (coding, answer.text)
        assert "content-encoding: " + coding.split(", ")[-1] in answer.json()["error"]["message"]
        assert answer.headers["accept-encoding"] == "identity"
    for coding, encoded in (("gzip", gzip.compress(data)), ("zstd", b"\x28\xb5\x2f\xfd" + data)):
        answer = send(mock, path, encoded)  # which does not say so
        assert answer.status_code == 415 and f"({coding})" in answer.json()["error"]["message"], answer.text
    mock.settle()
    assert send(mock, path, data, **{"content-encoding": "identity"}).status_code == 200


def test_a_form_in_a_coding_is_refused_too(start):
    server = start("--engine", "mock", "--speech")
    form = requests.Request("POST", server.url + "/v1/audio/transcriptions", files={"file": b"RIFF"}).prepare()
    form.headers["content-encoding"] = "gzip"
    form.body = gzip.compress(form.body)
    form.headers["content-length"] = str(len(form.body))
    with requests.Session() as session:
        answer = session.send(form, timeout=60)
    assert answer.status_code == 415 and "gzip" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path, body", BODIES)
def test_a_byte_order_mark_before_json_is_passed_over(mock, path, body):
    mock.settle()
    text = json.dumps(body)
    answer = send(mock, path, text.encode("utf-8-sig"))
    assert answer.status_code == 200, answer.text
    for encoding in ("utf-16", "utf-32"):
        answer = send(mock, path, text.encode(encoding))
        assert answer.status_code == 400 and "UTF-16" in answer.json()["error"]["message"], answer.text
    # One alone is no JSON, nor are two.
    for data in (b"\xef\xbb\xbf" * 2 + text.encode(), b"\xef\xbb\xbf{"):
        assert send(mock, path, data).status_code == 400


def test_grpcs_json_may_have_a_mark_too(mock):
    chunk, = Client(f"127.0.0.1:{mock.port}").sglang.ChatComplete(json_body=json.dumps(CHAT).encode("utf-8-sig"))
    assert chunk.status_code == 200 and chunk.finished
    answer = Client(f"127.0.0.1:{mock.port}").sglang.Score(json_body=json.dumps(BODIES[7][1]).encode("utf-16"))
    assert answer.status_code == 400 and b"UTF-16" in answer.json_body


def test_a_gateway_reads_past_the_mark_and_names_the_coding():
    fleet = Fleet(1, "--enable-igw")
    try:
        fleet.wait_healthy(1)
        model = requests.get(fleet.url + "/v1/models", timeout=60).json()["data"][0]["id"]
        data = json.dumps({**CHAT, "model": model}).encode()
        assert send(fleet, "/v1/chat/completions", data.decode().encode("utf-8-sig")).status_code == 200
        answer = send(fleet, "/v1/chat/completions", gzip.compress(data), **{"content-encoding": "gzip"})
        assert answer.status_code == 415 and "gzip" in answer.text
    finally:
        fleet.stop()
    plain = Fleet(1)
    try:
        plain.wait_healthy(1)
        assert send(plain, "/v1/chat/completions", json.dumps(CHAT).encode("utf-8-sig")).status_code == 200
        answer = send(plain, "/v1/chat/completions", gzip.compress(json.dumps(CHAT).encode()), **{"content-encoding": "gzip"})
        assert answer.status_code == 415 and "gzip" in answer.text
    finally:
        plain.stop()
