"""Requests that somebody made to harm: the gateway goes on, and what it refuses has reached no worker."""
import collections
import contextlib
import resource
import socket
import warnings

import pytest
import requests
from conftest import SANITIZED
from gateway_fleet import front, raw  # noqa: F401 (raw is a fixture)


def ok(connection, head, body):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + (b"" if head.startswith(b"HEAD ") else b"ok"))


@pytest.fixture(scope="module")
def gateway():
    """(worker, gateway): one gateway for all, which must end well."""
    with front([ok]) as ([worker], made):
        yield worker, made


@pytest.mark.parametrize("depth", [1_000, 50_000, 500_000])
@pytest.mark.parametrize("field", ["prompt", "input"])
def test_a_prompt_of_nothing_but_brackets_does_not_end_the_gateway(gateway, field, depth):
    _, made = gateway
    body = '{"%s":%s%s,"model":"m"}' % (field, "[" * depth, "]" * depth)
    answer = requests.post(made.url + "/v1/completions", data=body, headers={"Content-Type": "application/json"}, timeout=60)
    assert (answer.status_code, answer.text) == (200, "ok")
    assert made.process.poll() is None, made.output()[-3000:]


def ask(made, target, method="GET"):
    """The status line of the answer to a request whose target is sent as it stands."""
    with socket.create_connection(("127.0.0.1", made.port)) as client:
        client.settimeout(60)
        client.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        with client.makefile("rb") as stream:
            return stream.read().split(b"\r\n", 1)[0].decode()


@pytest.mark.parametrize("target", ["/v1/../flush_cache", "/v1/%2e%2e/flush_cache", "/v1/..%2fflush_cache", "/v1/.%2E/x", "/v1/./x",
                                    "/v1/x/..", "/v2/../x", "/api/a/../b", "/v1/\\..\\x", "/v1/%5c..%5cx",
                                    "http://localhost/v1/../x", "/v1/../x?a=b"])
def test_a_path_with_segments_of_dots_reaches_no_worker(gateway, target):
    # What stands behind them may be a route that needs another key, or none that the gateway gives away.
    worker, made = gateway
    before = len(worker.requests)
    assert ask(made, target) == "HTTP/1.1 400 Bad Request"
    assert len(worker.requests) == before


@pytest.mark.parametrize("target", ["/v1/%252e%252e/x", "/v1/models/a%2Fb", "/v1/100%25", "/v1/a%2525b", "/v1/...", "/v1/.x/a..b",
                                    "/v1/a?b=../c/%2e%2e"])
def test_a_workers_path_is_escaped_as_often_as_the_clients(gateway, target):
    worker, made = gateway
    assert ask(made, target) == "HTTP/1.1 200 OK"
    assert worker.requests[-1][0].split(b" ")[1].decode() == target


@pytest.mark.parametrize("path", ["/flush_cache", "/abort_request", "/v1/completions"])
def test_a_head_request_is_answered_without_waiting_for_a_body(gateway, path):
    # For one that goes to all workers the gateway waited until its patience of ten minutes was over.
    _, made = gateway
    assert ask(made, path, "HEAD") == "HTTP/1.1 200 OK"


@pytest.mark.parametrize("said, told", [(b"Content-Type: application/json\r\nContent-Length: 8", "8"), (b"Content-Length: 9000000", "9000000"),
                                        (b"Content-Type: text/event-stream\r\nContent-Length: 8", "8"), (b"Content-Length: 0", "0"),
                                        (b"Content-Type: application/json\r\nTransfer-Encoding: chunked", None)])
def test_a_head_request_is_told_the_workers_length(raw, said, told):
    """It was told 0."""
    _, made = raw(lambda connection, head, body: connection.sendall(b"HTTP/1.1 200 OK\r\n" + said + b"\r\n\r\n"))
    with requests.Session() as session:
        for _ in range(2):  # on one connection: nothing follows the head
            answer = session.head(made.url + "/v1/files/a", timeout=60)
            assert (answer.status_code, answer.headers.get("content-length")) == (200, told)


@pytest.mark.parametrize("path", ["/v1/models", "/workers", "/workers/w1", "/list_workers", "/get_load", "/health", "/readiness", "/metrics",
                                  "/get_server_info", "/engine_metrics"])
def test_a_head_request_is_told_what_get_would_be(gateway, path):
    _, made = gateway
    got, asked = (requests.request(method, made.url + path, timeout=60) for method in ("GET", "HEAD"))
    # Of the servers' information there is none here: the worker's is no JSON.
    assert asked.content == b"" and asked.status_code == got.status_code == (503 if "server_info" in path else 200)
    assert asked.headers["content-type"] == got.headers["content-type"]
    if path in ("/v1/models", "/list_workers", "/health"):
        assert asked.headers["content-length"] == str(len(got.content))


def test_an_adapter_is_loaded_by_operators_only_and_on_all_workers():
    # vLLM's routes for it are below /v1/, whose requests a client's key sends to one worker.
    keys = ("--api-key", "client", "--control-plane-api-keys", "ops:Operations:admin:operator")
    with front([ok, ok], *keys) as (workers, made):
        for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            for key, status in (("client", 401), ("operator", 200)):
                answer = requests.post(made.url + path, json={"lora_name": "a"}, headers={"Authorization": f"Bearer {key}"}, timeout=60)
                assert answer.status_code == status, answer.text
        assert [[head.split(b" ")[1] for head, _ in worker.requests] for worker in workers] == [
            [b"/v1/load_lora_adapter", b"/v1/unload_lora_adapter"]] * 2


@contextlib.contextmanager
def many_files(wanted):
    """How many files may be open, of those wanted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, raised), hard))
    try:
        yield max(soft, raised)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_bodies_that_do_not_come_keep_nobody_waiting_and_are_refused():
    """Each of them after 20 s, the gateway's time for a body; a sanitizer and a low limit of open files allow fewer."""
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    wanted = 500 if SANITIZED else 10_000
    with front([ok]) as ([worker], made), many_files(12_000) as files, contextlib.ExitStack() as opened:
        count = min(wanted, files - 500)
        if count < wanted:
            warnings.warn(f"{count} bodies, not {wanted}: this process may open {files} files", stacklevel=1)
        clients = []
        for _ in range(count):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", made.port), timeout=120))
            client.sendall(head)
            clients.append(client)
        for _ in range(20):
            answer = requests.post(made.url + "/v1/completions", json={"model": "m", "prompt": "x"}, timeout=60)
            assert (answer.status_code, answer.text) == (200, "ok")
        assert requests.get(made.url + "/readiness", timeout=60).status_code == 200
        statuses = collections.Counter(client.recv(12) for client in clients)
        assert statuses == {b"HTTP/1.1 408": count}
        assert len(worker.requests) == 20
