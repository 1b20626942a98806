"""What a gateway tells of itself and of its workers, and what a stream gets that its worker is silent about."""
import json
import threading

import pytest
import requests
from conftest import free_port, wait_until
from gateway_fleet import Fleet, Process, RawWorker


@pytest.fixture
def route():
    """route(answer, *flags) -> gateway process: before one worker of sockets."""
    made = []

    def start(answer, *flags):
        worker = RawWorker(answer)
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", worker.url, *flags)
        made.append((worker, gateway))
        gateway.wait_ready("/readiness")
        return gateway

    yield start
    for worker, gateway in made:
        assert gateway.end() == 0, gateway.output()[-3000:]
        worker.stop()


def test_a_stream_that_has_only_a_head_gets_comments(route):
    """A client, or a proxy before it, took a stream whose prompt was long to compute for dead."""
    go = threading.Event()

    def answer(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        go.wait(60)
        connection.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    gateway = route(answer, "--sse-keepalive-secs", "0.1")
    with requests.post(gateway.url + "/v1/completions", json={"stream": True}, timeout=60, stream=True) as reply:
        lines = reply.iter_lines()
        assert reply.status_code == 200
        assert next(line for line in lines if line) == b": keep-alive"
        go.set()
        assert next(line for line in lines if line.startswith(b"data")) == b"data: [DONE]"
