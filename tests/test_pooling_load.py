"""What chat's tests of disconnects, full queues and drains ask, asked of every route and method that embeds, ranks,
classifies or scores."""
import concurrent.futures
import json
import random
import signal
import socket

import grpc
import pytest
import requests

from conftest import BRIEF, wait_until
from grpc_client import Client, fields_at_fault
from leaving import leave, request_bytes, vanish
from pooling_client import EMBED, KINDS, METHODS, ROUTES, SLOW, post

Code = grpc.StatusCode
DISCONNECTS = 30 if BRIEF else 150
BODY_OF = {path: body for _, path, body in ROUTES}


def named(entries):
    return [pytest.param(*entry, id=" ".join(str(part) for part in (entry[0] or ("generates",)) + entry[1:3]
                                             if not callable(part))) for entry in entries]


def begin(server, service, method, fields, **keywords):
    """Starts a call on a connection of its own."""
    client = Client(f"127.0.0.1:{server.port}", options=[("grpc.use_local_subchannel_pool", 1)])
    call = getattr(getattr(client, service), method)
    if isinstance(fields, str):
        fields = {"json_body": json.dumps(BODY_OF[fields](["a"])).encode()}
    future = call.raw.future(call.request(**fields), timeout=keywords.get("timeout", 120))
    return client, future


def outcome(future):
    """The code that a call ends with; of JSON that was refused the HTTP status."""
    try:
        answer = future.result(120)
    except grpc.RpcError as error:
        return error.code()
    return getattr(answer, "status_code", 0) or Code.OK


def test_the_table_has_every_route_and_method_of_the_services():
    paths = {path for _, path, _ in ROUTES}
    assert {fields for _, _, _, fields in METHODS if isinstance(fields, str)} < paths
    assert {method for _, _, method, _ in METHODS} == {"TextEmbed", "Embed", "Classify", "OpenAIEmbed", "OpenAIClassify",
                                                       "Rerank", "Score"}


@pytest.mark.parametrize("kind, path, body", named(ROUTES))
def test_a_client_that_leaves_takes_all_its_texts_along(serve, kind, path, body):
    server = serve(*kind, *SLOW)
    server.settle()
    gone = server.metric("portico_requests_aborted_total")
    sockets = [leave(server, path, body(["a few words"] * 100)) for _ in range(4)]
    server.wait_for("portico_requests_running", 4 if kind else 400)
    for i, s in enumerate(sockets):
        if i == 0:
            s.shutdown(socket.SHUT_WR)
        else:
            s.close()
    server.settle()
    server.wait_for("portico_requests_aborted_total", gone + 400)
    sockets[0].close()


@pytest.mark.parametrize("kind, path, body", named(ROUTES))
def test_random_disconnects_leave_nothing_running(serve, kind, path, body):
    server = serve(*kind, "--mock-ttft-ms", "2")
    rng = random.Random(path)
    for i in range(DISCONNECTS):
        several = ["a few words"] * rng.choice([1, 1, 3, 40])
        if i % 10 == 0:
            several = ["a few words " * 8000]  # planned off the shard
        vanish(server.port, rng, request_bytes(path, body(several)))
    server.settle()
    assert post(server, path, body(["a"])).status_code == 200


@pytest.mark.parametrize("kind, service, method, fields", named(METHODS))
def test_a_call_that_is_cancelled_or_late_or_loses_its_channel_stops_the_work(serve, kind, service, method, fields):
    server = serve(*kind, *SLOW)
    server.settle()
    client, call = begin(server, service, method, fields)
    server.wait_for("portico_requests_running", 1)
    call.cancel()
    server.settle()
    assert outcome(begin(server, service, method, fields, timeout=0.3)[1]) == Code.DEADLINE_EXCEEDED
    server.settle()
    client, call = begin(server, service, method, fields)
    server.wait_for("portico_requests_running", 1)
    client.channel.close()
    server.settle()


def routes_of(kind):
    return [(path, body(["a"])) for of, path, body in ROUTES if of == kind]


def methods_of(kind):
    return [(service, method, fields) for of, service, method, fields in METHODS if of == kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_queue_says_when_to_try_again(serve, kind):
    server = serve(*kind, *SLOW, "--max-running-requests", "1", "--max-queued-requests", "1")
    path, body = routes_of(kind)[0]
    sockets = []
    for state in ("running", "waiting"):
        sockets.append(leave(server, path, body))
        server.wait_for("portico_requests_" + state, 1)
    for path, body in routes_of(kind):
        answer = post(server, path, body)
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 0, path
    for service, method, fields in methods_of(kind):
        call = begin(server, service, method, fields)[1]
        if isinstance(fields, str):
            assert outcome(call) == 429, method
        else:
            with pytest.raises(grpc.RpcError) as refused:
                call.result(120)
            assert refused.value.code() == Code.RESOURCE_EXHAUSTED, method
            assert "RetryInfo" in fields_at_fault(refused.value)[1], method
    for s in sockets:
        s.close()
    server.settle()
    assert server.metric("portico_requests_waiting") == 0


class Held:
    """A request whose body waits until send(): a drain lets it finish, as it has begun."""

    def __init__(self, server, path, body):
        head, self.body = request_bytes(path, body).split(b"\r\n\r\n", 1)
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.sendall(head + b"\r\nexpect: 100-continue\r\n\r\n")
        assert self.socket.recv(1000).startswith(b"HTTP/1.1 100")

    def send(self):
        self.socket.sendall(self.body)
        assert self.socket.recv(1000).startswith(b"HTTP/1.1 200")
        self.socket.close()


def status_of(server, path, body):
    try:
        return post(server, path, body).status_code
    except requests.RequestException:  # it has ended, before its answer or within
        return 0


class InFlight:
    """One request of each route and method of a kind."""

    def __init__(self, server, kind, state):
        self.pool = concurrent.futures.ThreadPoolExecutor(16)
        self.routes = {path: self.pool.submit(status_of, server, path, body) for path, body in routes_of(kind)}
        self.calls = {entry[:2]: begin(server, *entry) for entry in methods_of(kind)}
        server.wait_for("portico_requests_" + state, len(self.routes) + len(self.calls))

    def statuses(self):
        return {path: answer.result(120) for path, answer in self.routes.items()}

    def outcomes(self):
        return {name: outcome(call) for name, (_, call) in self.calls.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_drain_lets_every_request_finish(start, kind):
    server = start("--engine", "mock", *kind, "--drain-timeout", "600")
    assert post(server, "/pause_generation", {"mode": "in_place"}).status_code == 200
    flight = InFlight(server, kind, "waiting")
    go_on = Held(server, "/continue_generation", {})
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "draining" in server.output(), "the drain does not begin")
    go_on.send()
    assert set(flight.statuses().values()) == {200}
    assert set(flight.outcomes().values()) <= {200, Code.OK}
    assert server.process.wait(60) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_drain_that_takes_too_long_ends_every_request(start, kind):
    server = start("--engine", "mock", *kind, *SLOW, "--drain-timeout", "0.2")
    flight = InFlight(server, kind, "running")
    server.process.send_signal(signal.SIGTERM)
    # A slow machine does not answer all before the end.
    assert set(flight.statuses().values()) <= {409, 0}
    assert set(flight.outcomes().values()) <= {409, Code.CANCELLED, Code.ABORTED, Code.UNAVAILABLE}
    assert server.process.wait(60) == 0


@pytest.mark.parametrize("path, body", [entry[1:] for entry in ROUTES if entry[0] == EMBED])
def test_random_disconnects_stop_what_a_model_computes(start, path, body):
    server = start("--is-embedding")
    rng = random.Random(path)
    for _ in range(DISCONNECTS // 3):
        several = ["a few words " * rng.choice([1, 1, 30, 200])] * rng.choice([1, 1, 3, 40])
        vanish(server.port, rng, request_bytes(path, body(several)))
    server.settle()
    assert post(server, path, body(["a"])).status_code == 200
