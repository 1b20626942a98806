"""The HTTP routes over HTTP/2 with prior knowledge: curl as a client, and frames by hand for what curl never does."""
import json
import random
import socket
import struct
import subprocess

import pytest

from conftest import ENDLESS
from grpc_client import message

RESETS = 1000
HEADERS, DATA, RST_STREAM, SETTINGS = 1, 0, 3, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
END_STREAM = 1


def curl(server, path, body=None, more=()):
    command = ["curl", "-sS", "--http2-prior-knowledge", "-w", "\n%{http_version} %{http_code}", server.url + path]
    if body is not None:
        command += ["-H", "content-type: application/json", "-d", json.dumps(body)]
    output = subprocess.run([*command, *more], capture_output=True, text=True, timeout=120, check=True).stdout
    text, _, status = output.rpartition("\n")
    return text, status


def chat(**fields):
    return {"messages": [{"role": "user", "content": "Say something"}], "max_tokens": 32, **fields}


def content_of(events):
    """The text of a chat completion's events, which must end with [DONE]."""
    lines = [line[len("data: "):] for line in events.split("\n") if line]
    assert lines[-1] == "[DONE]"
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines[:-1] if json.loads(line)["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


def test_answers_and_streams_are_those_of_http_1(mock):
    expected = mock.chat("Say something", max_tokens=32).json()["choices"][0]["message"]["content"]
    text, status = curl(mock, "/v1/chat/completions", chat())
    assert status == "2 200" and json.loads(text)["choices"][0]["message"]["content"] == expected
    text, status = curl(mock, "/v1/chat/completions", chat(stream=True))
    assert status == "2 200" and content_of(text) == expected


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/metrics"])
def test_get_routes_answer(mock, path):
    assert curl(mock, path)[1] == "2 200"


def test_errors_are_those_of_http_1(mock):
    text, status = curl(mock, "/v1/chat/completions", chat(top_p=7))
    assert status == "2 400" and json.loads(text)["error"]["param"] == "top_p"
    assert curl(mock, "/nowhere")[1] == "2 404"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text_of(value):
    return struct.pack("B", len(value)) + value.encode()


def head(path, content_type):
    """POST and http from HPACK's static table, then path, authority and content type as literals."""
    return b"\x83\x86\x04" + text_of(path) + b"\x01" + text_of("localhost") + b"\x0f\x10" + text_of(content_type)


BLOCK = head("/v1/chat/completions", "application/json")


def test_a_thousand_resets_leave_nothing_running(start):
    server = start("--engine", "mock", "--mock-itl-ms", "2")
    rng = random.Random(11)
    for _ in range(RESETS // 50):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0))
        for i in range(50):
            stream = 2 * i + 1
            body = json.dumps(chat(stream=rng.random() < 0.5, max_tokens=400, ignore_eos=True)).encode()
            s.sendall(frame(HEADERS, 4, stream, BLOCK) + frame(DATA, 1, stream, body))
            if rng.random() < 0.3:
                s.settimeout(0.01)
                try:
                    s.recv(10000)
                except TimeoutError:
                    pass
            if rng.random() < 0.9:  # the others are lost with the connection
                s.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
        s.close()
    server.settle()
    assert curl(server, "/health")[1] == "2 200"


def data_of(connection, stream):
    """All that comes in DATA frames of a stream, until it ends."""
    data = b""
    with connection.makefile("rb") as frames:
        while True:
            size, kind, flags, of = struct.unpack(">IBBI", b"\0" + frames.read(9))
            payload = frames.read(size)
            if of == stream and kind == DATA:
                data += payload
            if of == stream and kind in (HEADERS, DATA) and flags & END_STREAM:
                return data


def native_over_http(rid, tokens):
    body = {"text": "hello", "rid": rid, "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True}}
    return head("/generate", "application/json"), json.dumps(body).encode()


def native_over_grpc(rid, tokens):
    request = message("sglang.runtime.v1.TextGenerateRequest", text="hello", rid=rid,
                      sampling_params={"max_new_tokens": tokens, "ignore_eos": True}).SerializeToString()
    return (head("/sglang.runtime.v1.SglangService/TextGenerate", "application/grpc"),
            b"\0" + struct.pack(">I", len(request)) + request)


@pytest.mark.parametrize("native", [native_over_http, native_over_grpc])
def test_a_rid_is_free_in_the_same_moment_in_which_its_client_has_reset_the_stream(patient, native):
    # The reset and the next request came in one read, and the first still had the rid until the end of the turn.
    patient.settle()

    def request(stream, tokens):
        block, body = native("one-after-the-other", tokens)
        return frame(HEADERS, 4, stream, block) + frame(DATA, END_STREAM, stream, body)

    with socket.create_connection(("127.0.0.1", patient.port), timeout=120) as connection:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + request(1, ENDLESS))
        patient.wait_for("portico_requests_running", 1)
        connection.sendall(frame(RST_STREAM, 0, 1, struct.pack(">I", 8)) + request(3, 1))
        assert b"finish_reason" in data_of(connection, 3)
    patient.settle()


def test_a_drain_finishes_the_streams_that_have_begun(start):
    server = start("--engine", "mock", "--mock-itl-ms", "20")
    command = ["curl", "-sS", "--http2-prior-knowledge", server.url + "/v1/chat/completions", "-d",
               json.dumps(chat(stream=True)), "-H", "content-type: application/json"]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    first = client.stdout.readline()
    server.process.terminate()
    assert content_of(first + client.stdout.read())
    assert client.wait(60) == 0 and server.process.wait(60) == 0
