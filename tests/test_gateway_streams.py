"""Streams of events whose worker's connection ends early."""
import json

import pytest
import requests
from conftest import wait_until
from gateway_fleet import RawWorker
from test_gateway import events, raw  # noqa: F401


@pytest.mark.parametrize("last,whole", [
    (b"data: {\"a", False), (b"event: error\n", False), (b"data: 2", False),
    (b"data: 2\n", True), (b"data: [DONE]", True), (b"", True),
])
def test_a_stream_that_its_connection_ends_within_an_event_is_cut_before_it(raw, last, whole):  # noqa: F811
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


def test_a_stream_that_ends_within_its_first_event_is_tried_again(raw):  # noqa: F811
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
