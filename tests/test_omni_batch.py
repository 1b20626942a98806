"""Batches of speech, and how a speech has ended."""
import base64
import json
import socket

import pytest
import requests

from conftest import Server, wait_until

PIPELINE = """voices: {x: default}
stages:
  - {name: talk, factory_path: portico.mock, factory: {chunks: 100, text: false}, stream_to: [encode]}
  - {name: encode, factory_path: portico.encode, terminal: true}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("omni") / "mock.yaml"
    path.write_text(PIPELINE)
    server = Server("--pipeline", str(path), "--engine", "mock")
    yield server
    server.stop()


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=60)


def test_batches_answer_each_item_by_itself(server):
    answer = post(server, "/v1/audio/speech/batch", response_format="pcm", voice="x", items=[
        {"input": "a"}, {"input": "b", "voice": "nobody"}, {"input": "c", "response_format": "wav"}, {"input": "d", "stream": True}, "e",
        {"input": "fail-late"}]).json()
    assert (answer["total"], answer["succeeded"], answer["failed"]) == (6, 2, 4)
    results = answer["results"]
    assert len(base64.b64decode(results[0]["audio_data"])) == 100 * 960
    wav = base64.b64decode(results[2]["audio_data"])
    assert wav[:4] == b"RIFF" and wav[40:44] == (100 * 960).to_bytes(4, "little") and results[2]["media_type"] == "audio/wav"
    assert [r["error"]["param"] for r in results if "error" in r] == ["items.1.voice", "items.3.stream", "items.4", None]
    assert [r["index"] for r in results] == list(range(6))


@pytest.mark.parametrize("param,body", [
    ("items", {}), ("items", {"items": []}), ("items", {"items": [{"input": "a"}] * 33}), ("items", {"items": "a"}),
    ("stream", {"items": [{"input": "a"}], "stream": True}), ("items", {"items": [{"input": "a"}], "input": "b"}),
])
def test_wrong_batches_are_refused_and_the_field_named(server, param, body):
    answer = post(server, "/v1/audio/speech/batch", **body)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param


def test_how_a_speech_ended_is_told_afterwards(server):
    answer = post(server, "/v1/audio/speech", input="hello", response_format="pcm")
    outcome = requests.get(f"{server.url}/v1/audio/speech/{answer.headers['x-request-id']}", timeout=60).json()
    assert outcome["finish_reason"] == "stop" and outcome["usage"] == {"input_tokens": 3, "output_tokens": 100, "total_tokens": 103}
    events = post(server, "/v1/audio/speech", input="hello", response_format="pcm", stream_format="sse").text
    assert '"usage":{"input_tokens":3,"output_tokens":100,"total_tokens":103}' in events
    assert post(server, "/v1/audio/speech", input="fail-now", request_id="mine").status_code == 500
    outcome = requests.get(f"{server.url}/v1/audio/speech/speech-mine", timeout=60).json()
    assert outcome["finish_reason"] == "error" and outcome["error"]
    unknown = requests.get(f"{server.url}/v1/audio/speech/none", timeout=60)
    assert unknown.status_code == 404 and unknown.json()["error"]["param"] == "request_id"


def test_how_a_speech_ended_is_told_by_the_ids_of_its_request_and_its_answer(server):
    """That of a request with an X-Request-Id was not found, whether or not it was a name."""
    def told(name):
        return requests.get(f"{server.url}/v1/audio/speech/{name}", timeout=60)
    for header, field, answered, names in ((None, "ours-25", "speech-ours-25", ["ours-25", "speech-ours-25"]),
                                           ("mine-25", None, "mine-25", ["mine-25", "speech-mine-25"]),
                                           ("mine-26", "ours-26", "mine-26", ["ours-26", "speech-ours-26"]), ("no name", None, None, [])):
        fields = {} if field is None else {"request_id": field}
        answer = requests.post(server.url + "/v1/audio/speech", json={"input": "hello", "response_format": "pcm", **fields},
                               headers={} if header is None else {"x-request-id": header}, timeout=60)
        assert answer.status_code == 200 and answered in (None, answer.headers["x-request-id"])
        for name in names or [answer.headers["x-request-id"]]:
            assert told(name).json().get("finish_reason") == "stop", name
    assert told("mine-26").status_code == 404  # the request has a name of its own


def test_clients_that_leave_a_batch_leave_nothing_behind(server):
    before = server.metric("portico_pipeline_requests_total")
    body = json.dumps({"items": [{"input": "a"}] * 32}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"POST /v1/audio/speech/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                       b"content-length: %d\r\n\r\n%s" % (len(body), body))
        wait_until(lambda: server.metric("portico_pipeline_requests_total") > before, "no item of the batch has begun")
    server.wait_for("portico_pipeline_requests_running", 0)


def test_voices_cannot_be_uploaded_where_none_can_be_cloned(server):
    answer = requests.post(server.url + "/v1/audio/voices", files={"audio_sample": ("a.wav", b"x")}, data={"name": "me", "consent": "yes"}, timeout=60)
    assert answer.status_code == 400 and "clone" in answer.json()["error"]["message"]
    for flag in ("true", "1", "True"):
        assert requests.get(f"{server.url}/v1/audio/voices?names_only={flag}", timeout=60).json() == {"uploaded_voice_names": []}
    assert "voices" in requests.get(server.url + "/v1/audio/voices?names_only=0", timeout=60).json()
    answer = requests.get(server.url + "/v1/audio/voices?names_only=perhaps", timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "names_only", answer.text
