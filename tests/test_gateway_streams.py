"""Streams of events: of workers whose connection ends early, and to clients that read slowly."""
import json
import socket
import subprocess
import threading
import time

import pytest
import requests
from conftest import wait_until
from gateway_fleet import RawWorker, events, raw  # noqa: F401 (raw is a fixture)


@pytest.mark.parametrize("last,whole", [
    (b"data: {\"a", False), (b"event: error\n", False), (b"data: 2", False),
    (b"data: 2\n", True), (b"data: [DONE]", True), (b"", True),
])
def test_a_stream_that_its_connection_ends_within_an_event_is_cut_before_it(raw, last, whole):
    """Half of an event went to the client, and neither an error nor [DONE] behind it."""
    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\n" + last)
        return False

    worker, gateway = raw(say)
    said = requests.post(gateway.url + "/v1/completions", json={"stream": True}, timeout=60)
    if whole:
        assert said.content == b"data: 1\n\n" + last
        return
    first, error, done, end = said.text.split("\n\n")
    assert (first, done, end) == ("data: 1", "data: [DONE]", "")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "worker_lost"
    assert len(worker.requests) == 1 and gateway.metric("portico_gateway_cut_streams_total") == 1


@pytest.mark.parametrize("length", [b"", b"Transfer-Encoding: chunked\r\n"])
def test_a_stream_that_is_cut_within_a_large_event_has_its_error_in_an_event_of_its_own(raw, length):
    """Of an event above 1 MiB, part of which had been passed on, the error's event became the rest; or it had none."""
    text = b"data: " + b"x" * (3 << 20)

    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%sConnection: close\r\n\r\n" % length)
        connection.sendall(b"%x\r\n%s\r\n" % (len(text), text) if length else text)
        return False

    worker, gateway = raw(say)
    said = requests.post(gateway.url + "/v1/completions", json={"stream": True}, timeout=60)
    large, error, done, end = said.text.split("\n\n")
    assert large.startswith("data: xxx") and (done, end) == ("data: [DONE]", "")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "worker_lost"


def test_a_stream_that_ends_within_its_first_event_is_tried_again(raw):
    answers = [b"data: {\"a", b"data: 1\n\ndata: [DONE]\n\n"]

    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + answers.pop(0))
        return False

    other = RawWorker(say)
    try:
        worker, gateway = raw(say, more=[other.url])
        wait_until(lambda: all(known["is_healthy"] for known in
                               requests.get(gateway.url + "/workers", timeout=60).json()["workers"]), gateway.output)
        said = requests.post(gateway.url + "/v1/completions", json={"stream": True}, timeout=60)
        assert events(said) == ["1", "[DONE]"]
        assert (len(worker.requests), len(other.requests)) == (1, 1)
    finally:
        other.stop()


def test_a_cut_stream_ends_with_an_error_and_done(raw):
    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"9\r\ndata: 1\n\n\r\n6\r\ndata: \r\n")
        return False

    worker, gateway = raw(say)
    said = requests.post(gateway.url + "/v1/completions", json={"stream": True}, stream=True, timeout=60)
    got = events(said)
    assert got[0] == "1" and got[-1] == "[DONE]" and len(got) == 3
    assert json.loads(got[1])["error"]["code"] == "worker_lost"
    assert len(worker.requests) == 1, "a stream that has begun is not sent again"


def test_a_slow_client_holds_its_worker_up(raw):
    sent = [0]

    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        event = b"data: " + b"x" * 1000 + b"\n\n"
        for _ in range(64_000):
            connection.sendall(event)
            sent[0] += len(event)
        return False

    _, gateway = raw(say)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", gateway.port))
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        client.recv(100)
        last = [-1]

        def stands():
            before, last[0] = last[0], sent[0]
            time.sleep(0.5)
            return before == sent[0] > 0

        wait_until(stands, "the worker is never held up")
        assert sent[0] < 32 << 20
        client.settimeout(60)
        while client.recv(1 << 20):
            pass
    wait_until(lambda: sent[0] >= 64_000 * 1000, lambda: f"{sent[0]} bytes")


def test_a_last_event_without_an_end_fills_the_clients_backlog_and_arrives(raw):
    data = b"data: " + b"x" * 1_000_000  # more than the gateway holds of a client before it pauses the worker's call

    def answer(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s"
                           % (len(data), data))

    _, gateway = raw(answer)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as client:
        client.sendall(b"POST /generate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        received = b""
        while piece := client.recv(1 << 16):
            received += piece
    assert received.count(b"x") >= 1_000_000
    assert gateway.answers()


@pytest.mark.parametrize("kind", [b"application/x-ndjson", b"audio/pcm", b"Text/Event-Stream"])
def test_the_parts_of_an_answer_without_a_length_pass_as_they_come(raw, kind):
    """Below 1 MiB the gateway kept sound and lines of JSON until they were whole, and events of a type in capitals."""
    read = threading.Event()

    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"8\r\ndata: 1\n\r\n1\r\n\n\r\n")
        assert read.wait(60), "the first part has not passed"
        connection.sendall(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

    worker, gateway = raw(say)
    with requests.post(gateway.url + "/v1/audio/speech", json={}, stream=True, timeout=50) as said:
        assert said.headers["content-type"] == kind.decode()
        first = said.raw.read(1)
        read.set()
        assert first + said.raw.read() == b"data: 1\n\ndata: 2\n\n"
    assert len(worker.requests) == 1


def test_sound_that_is_cut_ends_as_if_cut_for_the_client_too(raw):
    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        return False

    worker, gateway = raw(say)
    with requests.post(gateway.url + "/v1/audio/speech", json={}, stream=True, timeout=60) as said:
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            said.content  # noqa: B018
    assert len(worker.requests) == 1 and gateway.metric("portico_gateway_cut_streams_total") == 1


def test_sound_that_is_cut_is_a_stream_that_is_reset_over_http2(raw):
    go = threading.Event()

    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        assert go.wait(60), "the first part has not passed"
        return False

    worker, gateway = raw(say)
    command = ["curl", "-sSN", "--http2-prior-knowledge", "-d", "{}", gateway.url + "/v1/audio/speech"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        assert client.stdout.read(4) == b"half"
        go.set()
        rest, why = client.communicate(timeout=60)
    assert (rest, client.returncode) == (b"", 92), why  # "the stream was not closed cleanly": no END_STREAM has come
    assert len(worker.requests) == 1 and gateway.metric("portico_gateway_cut_streams_total") == 1


def test_a_json_answer_without_a_length_is_tried_again_when_it_is_cut(raw):
    answers = [b"2\r\n{}\r\n0\r\n\r\n", b"1\r\n{\r\n"]

    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: Application/JSON\r\nTransfer-Encoding: chunked\r\n\r\n" + answers.pop())
        return False

    worker, gateway = raw(say)
    said = requests.post(gateway.url + "/v1/completions", json={}, timeout=60)
    assert (said.status_code, said.content, len(worker.requests)) == (200, b"{}", 2)
