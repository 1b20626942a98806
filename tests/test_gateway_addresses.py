"""Where workers are is no client's business: what a worker says of its own failure goes on without addresses."""
import gzip
import json

import grpc
import pytest
import requests
from conftest import ROOT
from gateway_fleet import Process, raw  # noqa: F401 (raw is a fixture)
from token_stand_ins import SchedulerStandIn


def failing(status, make, *headers, chunked=False):
    """A worker that answers with what make(port) says."""

    def answer(connection, head, body):
        said = make(connection.getsockname()[1])
        frame = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(said)
        lines = [b"HTTP/1.1 %d Failed" % status, frame, *headers]
        if chunked:
            said = b"%x\r\n%s\r\n0\r\n\r\n" % (len(said), said)
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + said)

    return answer


JSON = b"Content-Type: application/json"


def told(port):
    why = f"HTTPConnectionPool(host='127.0.0.1', port={port}):\n127.0.0.1:{port} and 10.9.8.7:5557 refused, see ipc:///tmp/scheduler"
    return json.dumps({"error": {"message": why, "code": 500}}).encode()


def ask(gateway):
    return requests.post(gateway.url + "/v1/completions", json={"prompt": "x"}, timeout=60)


@pytest.mark.parametrize("status, chunked", [(500, False), (501, False), (503, False), (502, True)])
def test_a_failure_is_told_without_addresses(raw, status, chunked):
    _, gateway = raw(failing(status, told, JSON, chunked=chunked))
    answer = ask(gateway)
    assert answer.status_code == status
    assert answer.json()["error"]["message"].endswith("\nworker and worker refused, see worker"), answer.text
    assert "127.0.0.1" not in answer.text and answer.json()["error"]["code"] == 500


def test_a_failure_as_text_without_a_length_is_no_way_around(raw):
    _, gateway = raw(failing(500, told, b"Content-Type: text/event-stream", chunked=True))
    answer = ask(gateway)
    assert answer.status_code == 500 and "127.0.0.1" not in answer.text and "refused, see worker" in answer.text


UPSTREAM = b"X-Upstream: 10.9.8.7:5557, 7 tries"


@pytest.mark.parametrize("status", [500, 503])
def test_the_headers_of_a_failure_are_told_without_addresses(raw, status):
    """Only the worker's own place was looked for in them."""
    _, gateway = raw(failing(status, told, JSON, UPSTREAM, b"Retry-After: 600"))
    answer = requests.post(gateway.url + "/v1/completions", json={"prompt": "x"}, timeout=60, headers={"x-request-id": "10.1.1.1:80"})
    assert answer.status_code == status and answer.headers["x-upstream"] == "worker, 7 tries"
    assert answer.headers["retry-after"] == "600" and answer.headers["x-request-id"] == "10.1.1.1:80"


@pytest.mark.parametrize("status", [200, 400, 429])
def test_other_answers_go_on_as_they_are(raw, status):
    _, gateway = raw(failing(status, told, JSON, UPSTREAM), "--disable-retries")
    answer = ask(gateway)
    assert answer.status_code == status and "10.9.8.7:5557" in answer.text and "10.9.8.7:5557" in answer.headers["x-upstream"]


def test_who_asks_for_workers_sees_addresses(raw):
    _, gateway = raw(failing(500, told, JSON, UPSTREAM), "--show-workers")
    answer = ask(gateway)
    assert "10.9.8.7:5557" in answer.text and "10.9.8.7:5557" in answer.headers["x-upstream"]


def test_what_cannot_be_searched_is_not_passed_on(raw):
    _, gateway = raw(failing(500, lambda port: gzip.compress(told(port)), JSON, b"Content-Encoding: gzip"))
    answer = ask(gateway)
    assert answer.status_code == 500 and "content-encoding" not in answer.headers
    assert answer.json()["error"]["code"] == "worker_failed"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_failure_that_is_too_long_is_told_in_short(raw, chunked):
    _, gateway = raw(failing(500, lambda port: b"127.0.0.1:%d " % port * 40_000, JSON, chunked=chunked))
    answer = ask(gateway)
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "worker_failed"
    assert ask(gateway).status_code == 500, "the gateway goes on"


def test_a_session_that_fails_is_told_without_addresses(raw):
    _, gateway = raw(failing(500, told, JSON))
    answer = requests.post(gateway.url + "/open_session", json={"capacity_of_str_len": 10}, timeout=60)
    assert answer.status_code == 500 and "refused, see worker" in answer.text and "127.0.0.1" not in answer.text


def test_what_a_worker_says_over_grpc_is_told_without_addresses():
    def act(worker, _request, context):
        context.abort(grpc.StatusCode.INTERNAL, f"ipv4:127.0.0.1:{worker.port}: Failed to connect to 10.9.8.7:5557")

    worker = SchedulerStandIn([], ROOT / "models/demo", act=act)
    gateway = None
    try:
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", f"grpc://127.0.0.1:{worker.port}")
        gateway.wait_ready("/readiness")
        for fields in ({}, {"stream": True}):
            answer = requests.post(gateway.url + "/v1/completions", json={"prompt": "x", "max_tokens": 4, **fields}, timeout=60)
            assert answer.status_code == (200 if fields else 500) and "the worker failed" in answer.text, answer.text
            assert "127.0.0.1" not in answer.text and "10.9.8.7" not in answer.text
        assert gateway.end() == 0
    finally:
        if gateway is not None:
            gateway.kill()
        worker.stop()
