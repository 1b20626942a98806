"""The exchanges that were recorded with sglang-omni 0.1.9 before its mock stage (data/vectors/omni-api), asked here.

Status, events, fields and values are equal but for DIFFERENT, which docs/omni.md explains.
"""
import base64
import hashlib
import json
import re

import pytest
import requests

from conftest import Server

PIPELINE = """name: mock
voices: {x: default}
stages:
  - {name: s0, factory_path: portico.decode, stream_to: [s1]}
  - {name: s1, factory_path: portico.mock, route_fn: portico.by_task, stream_to: [reply, encode, transcript]}
  - {name: reply, factory_path: portico.pass, terminal: true}
  - {name: transcript, factory_path: portico.pass, terminal: true}
  - {name: encode, factory_path: portico.encode, terminal: true}
"""

# 16 kHz, 0.1 s of silence.
WAV = b"RIFF" + (36 + 3200).to_bytes(4, "little") + b"WAVEfmt " + bytes([16, 0, 0, 0, 1, 0, 1, 0]) + (16000).to_bytes(4, "little") + \
    (32000).to_bytes(4, "little") + bytes([2, 0, 16, 0]) + b"data" + (3200).to_bytes(4, "little") + bytes(3200)

CHAT, SPEECH, HEAR = "/v1/chat/completions", "/v1/audio/speech", "/v1/audio/transcriptions"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("omni") / "mock.yaml"
    path.write_text(PIPELINE)
    server = Server(command=("omni", "serve", str(path)))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def exchanges(shared):
    path = shared / "vectors/omni-api/sglang-omni-0.1.9.json"
    if not path.exists():
        pytest.skip("the recorded exchanges are not here")
    return json.loads(path.read_text())


def described(data):
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}, begins {data[:16].hex()}"


def ask(server, request):
    url = server.url + request["path"]
    if "json" in request:
        return requests.post(url, json=request["json"], timeout=60)
    if "raw" in request:
        return requests.post(url, data=request["raw"], headers={"content-type": "application/json"}, timeout=60)
    if "form" in request:
        file = {None: None, "empty": b""}.get(request["file"], WAV)
        files = {"file": ("a.wav", file, "audio/wav")} if file is not None else {"nothing": ("a", b"x")}
        return requests.post(url, data=request["form"], files=files, timeout=60)
    return requests.get(url, timeout=60)


def events(text):
    return [part[6:] for part in text.split("\n\n") if part.startswith("data: ")]


def compare(theirs, ours, where):
    """Their fields are ours, with the same values; null is as good as absent, and ours may be more."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        for key, value in theirs.items():
            if key == "created" or (value is None and ours.get(key) is None):
                continue
            assert key in ours, f"{where}.{key} is missing"
            compare(value, ours[key], f"{where}.{key}")
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours), f"{where}: {len(theirs)} and {len(ours)}"
        for i, (a, b) in enumerate(zip(theirs, ours)):
            compare(a, b, f"{where}[{i}]")
    elif isinstance(theirs, str) and theirs.startswith("BASE64:"):
        assert theirs[7:] == described(base64.b64decode(ours)), where
    elif isinstance(theirs, str) and "UUID" in theirs:
        assert re.fullmatch(theirs.replace("UUID", "[0-9a-f]{32}"), ours), f"{where}: {ours}"
    else:
        assert theirs == ours, f"{where}: {theirs!r} and {ours!r}"


def same(recorded, answer):
    assert answer.status_code == recorded["status"], answer.text
    kind = recorded["headers"]["content-type"].split(";")[0]
    assert answer.headers["content-type"].split(";")[0] == kind
    if kind == "application/json":
        return compare(json.loads(recorded["body"]), answer.json(), "body")
    if kind == "text/event-stream":
        theirs, ours = events(recorded["body"]), events(answer.text)
        assert len(theirs) == len(ours), answer.text
        for i, (a, b) in enumerate(zip(theirs, ours)):
            assert (a == "[DONE]") == (b == "[DONE]")
            if a != "[DONE]":
                compare(json.loads(a), json.loads(b), f"event {i}")
        return None
    assert recorded["body"] == (answer.text if kind == "text/plain" else described(answer.content))
    return None


# The reasons of docs/omni.md, by name, and what is checked instead.

def envelope(status, param):
    """Every error is OpenAI's, with the field."""
    def check(recorded, answer):
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert error["param"] == param and error["message"] and error["type"], error
    return check


def status_only(recorded, answer):
    assert answer.status_code == recorded["status"], answer.text


def encoded(media_type):
    """Another encoder writes other bytes; and sizes come before they are known."""
    def check(recorded, answer):
        assert answer.status_code == 200 and answer.headers["content-type"] == media_type
        assert answer.headers["content-disposition"] == recorded["headers"]["content-disposition"]
        assert re.fullmatch("speech-[0-9a-f]{32}", answer.headers["x-request-id"])
        if media_type == "audio/wav":
            assert answer.content[4:8] == b"\xff" * 4 and len(answer.content) == 4844
        outcome = requests.get(answer.url + "/" + answer.headers["x-sglang-omni-speech-id"], timeout=60).json()
        assert outcome["finish_reason"] == "stop" and outcome["usage"]["total_tokens"] == 8
    return check


def bytes_of(recorded, answer):
    assert answer.status_code == 200 and described(answer.content) == recorded["body"]
    encoded(answer.headers["content-type"])(recorded, answer)


def one_header(recorded, answer):
    sounds = [json.loads(e)["choices"][0]["delta"].get("audio") for e in events(answer.text)[:-1]]
    whole = b"".join(base64.b64decode(sound["data"]) for sound in sounds if sound)
    assert whole.count(b"RIFF") == 1 and len(whole) == 4844
    texts = [json.loads(e)["choices"][0]["delta"].get("content") for e in events(answer.text)[:-1]]
    assert "".join(filter(None, texts)) == "w0 w1 w2 w3 w4 "


def late_error(recorded, answer):
    theirs, ours = events(recorded["body"]), events(answer.text)
    assert len(theirs) == len(ours)
    error = [json.loads(e) for e in ours if "error" in e][0]["error"]
    assert error["type"] == "server_error" and error["message"]


def speech_chunks(recorded, answer):
    got = [json.loads(e) for e in events(answer.text)[:-1]]
    assert answer.status_code == 200 and all(e.get("object", "audio.speech.chunk") == "audio.speech.chunk" for e in got)


def transcript_done(recorded, answer):
    ours = [json.loads(e) for e in events(answer.text)[:-1]]
    assert [e["delta"] for e in ours[:-1]] == [f"w{i} " for i in range(5)]
    assert ours[-1]["type"] == "transcript.text.done" and ours[-1]["text"] == "w0 w1 w2 w3 w4 "


def batch(recorded, answer):
    theirs, ours = json.loads(recorded["body"]), answer.json()
    assert (ours["total"], ours["succeeded"], ours["failed"]) == (theirs["total"], theirs["succeeded"], theirs["failed"])
    compare(theirs["results"][0], ours["results"][0], "results[0]")
    assert ours["results"][1]["error"]["param"] == "items.1.input"
    assert [r["status"] for r in ours["results"]] == [r["status"] for r in theirs["results"]]


def rid_is_the_id(recorded, answer):
    assert answer.status_code == 200 and answer.json()["id"] == "abc"


def half_as_long(recorded, answer):
    assert answer.status_code == 200 and len(answer.content) == 2400


def spoken_all_the_same(recorded, answer):
    assert answer.status_code == 200 and answer.content[:4] == b"RIFF"


def path_is_unknown(recorded, answer):
    assert answer.status_code == 404 and answer.json()["error"]["message"]


def fields_are_fewer(recorded, answer):
    assert answer.status_code == 200
    theirs, ours = json.loads(recorded["body"]), answer.json()
    theirs.pop("cache_stats", None)
    if "voices" in theirs:  # aliases are voices too
        assert set(theirs.pop("voices")) <= set(ours["voices"])
    for model in theirs.get("data", []):
        del model["permission"], model["owned_by"]
    compare(theirs, ours, "body")


DIFFERENT = {
    0: status_only,  # /health is text
    1: fields_are_fewer, 2: fields_are_fewer, 4: path_is_unknown,
    8: one_header, 11: rid_is_the_id,
    14: envelope(500, None), 15: envelope(500, None), 16: late_error,
    17: envelope(400, "messages"), 18: envelope(400, "messages"), 19: envelope(400, "max_tokens"), 20: envelope(400, "temperature"),
    21: envelope(400, "stream"), 22: envelope(400, "modalities"), 23: envelope(400, "audio"), 24: envelope(404, "model"),
    26: envelope(400, "stage_sampling"), 28: envelope(400, "messages"),
    29: encoded("audio/wav"), 30: bytes_of, 31: encoded("audio/flac"), 32: encoded("audio/mpeg"), 33: encoded("audio/ogg"), 34: encoded("audio/aac"),
    35: envelope(400, "response_format"), 36: speech_chunks, 37: speech_chunks, 40: envelope(400, "stream_format"),
    41: envelope(400, "input"), 42: spoken_all_the_same, 43: envelope(400, "input"), 44: half_as_long,
    45: envelope(400, "speed"), 46: envelope(400, "speed"), 47: spoken_all_the_same, 48: envelope(404, "model"),
    49: envelope(500, None), 50: envelope(500, None), 51: late_error, 52: speech_chunks, 53: batch,
    54: envelope(400, "items"), 55: envelope(400, "items"), 56: envelope(400, "stream"), 57: envelope(404, "request_id"),
    61: envelope(400, "response_format"), 62: envelope(400, "response_format"), 63: envelope(400, "response_format"),
    64: transcript_done, 65: envelope(400, "stream"), 66: envelope(400, "file"), 67: envelope(400, "file"),
    68: envelope(400, "temperature"), 69: envelope(400, "model"), 74: envelope(400, None), 75: envelope(400, None),
}
PROFILER = (70, 71, 72, 73)  # tests/test_profiler.py


@pytest.mark.parametrize("index", [i for i in range(76) if i not in PROFILER])
def test_recorded_exchanges_are_answered_alike(server, exchanges, index):
    recorded = exchanges[index]
    answer = ask(server, recorded["request"])
    if answer.status_code == 503 and answer.json()["error"]["code"] == "encoder_missing":
        pytest.skip(answer.json()["error"]["message"])
    DIFFERENT.get(index, same)(recorded, answer)


def test_a_sound_that_fails_late_as_bytes_breaks_off(server):
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.post(server.url + SPEECH, json={"input": "fail-late", "response_format": "pcm", "stream": True},
                      headers={"accept": "application/octet-stream"}, timeout=60)


def test_a_pipeline_without_a_model_is_a_model_itself(server):
    assert [m["id"] for m in requests.get(server.url + "/v1/models", timeout=60).json()["data"]] == ["mock"]
    body = {"messages": [{"role": "user", "content": "hi"}]}
    assert requests.post(server.url + CHAT, json=body, timeout=60).json()["model"] == "mock"
    refused = requests.post(server.url + CHAT, json={**body, "tools": [{"type": "function", "function": {"name": "f"}}]}, timeout=60)
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "tools"


@pytest.mark.parametrize("param,fields", [
    ("stage_sampling", {"stage_sampling": {"nobody": {"temperature": 1}}}),
    ("stage_sampling", {"stage_sampling": {"encode": {"temperature": 1}}}),
    ("stage_sampling", {"stage_sampling": {"s1": {"temperature": "hot"}}}),
    ("stage_sampling", {"stage_sampling": []}),
    ("stage_params", {"stage_params": {"nobody": {}}}),
    ("stage_params", {"stage_params": {"encode": {"a": 1}}}),
    ("talker_top_p", {"talker_top_p": 0.5}),
    ("images", {"images": ["https://example.com/a.png"]}),
    ("videos", {"videos": ["a.mp4"]}),
    ("video_fps", {"video_fps": 2}),
    ("audios", {"audios": ["http://169.254.169.254/latest"]}),
    ("audios", {"audios": ["file:///etc/passwd"]}),
    ("n", {"n": 2}), ("logprobs", {"logprobs": True}),
])
def test_fields_that_no_stage_takes_are_refused(server, param, fields):
    body = {"messages": [{"role": "user", "content": "hi"}], **fields}
    answer = requests.post(server.url + CHAT, json=body, timeout=60)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
