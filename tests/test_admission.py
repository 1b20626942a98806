"""What is decided when a request's head has come: key, origin, host, media type, length, and the budget of bodies."""
import contextlib
import json
import pathlib
import re
import selectors
import signal
import socket
import subprocess
import threading
import time

import grpc
import pytest
import requests

from conftest import BRIEF, SANITIZED, WAIT_SECONDS, wait_until
from gateway_fleet import Fleet, Process
from grpc_client import Client
from test_pooling_load import Held

MIB = 1 << 20


def head(path, length, *headers, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}",
             "Content-Type: application/json", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def answer_of(connection):
    """The status and the bytes of an answer with a length."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return 0, data
        data += piece
    before, body = data.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"content-length: (\d+)", before)[1])
    while len(body) < length:
        body += connection.recv(65536)
    return int(before.split()[1]), before + body


def rss(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def flood(server, paths, wanted):
    """200 connections with bodies of 31 MB, sent as fast as the server takes them for at most a second, and until the answers have
    the `wanted` statuses. The largest growth of the server's memory, and the answers' statuses."""
    before = most = rss(server)
    selector = selectors.DefaultSelector()
    for i in range(200):
        connection = socket.create_connection(("127.0.0.1", server.port), 60)
        connection.sendall(head(paths[i % len(paths)], 31 * MIB))
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [0, b""])
    piece = b"x" * 65536
    begun = time.monotonic()
    statuses = set()
    while selector.get_map() and time.monotonic() < begun + ((0.3 if BRIEF else 1) if wanted <= statuses else WAIT_SECONDS):
        for key, ready in selector.select(0.1):
            state = key.data
            try:
                if ready & selectors.EVENT_WRITE and state[0] < 31 * MIB:
                    state[0] += key.fileobj.send(piece)
                if ready & selectors.EVENT_READ:
                    came = key.fileobj.recv(65536)
                    state[1] += came
                    closed = not came
                else:
                    closed = False
            except BlockingIOError:
                closed = False
            except OSError:
                closed = True
            if state[1]:
                statuses.add(int(state[1].split(b" ", 2)[1]))
            if closed:
                selector.unregister(key.fileobj)
                key.fileobj.close()
        most = max(most, rss(server))
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    return most - before, statuses


def test_bodies_without_a_key_take_no_memory(start):
    """40 connections without a key held 1.2 GB: the key was looked at behind the body."""
    server = start("--engine", "mock", "--api-key", "secret")
    grown, statuses = flood(server, ("/v1/chat/completions", "/generate", "/nowhere", "/pause_generation"), {401, 404})
    assert statuses == {401, 404}
    assert SANITIZED or grown < 16 * MIB, grown


def test_bodies_without_the_gateways_key_take_no_memory():
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--api-key", "secret")
    try:
        gateway.wait_ready()
        grown, statuses = flood(gateway, ("/v1/chat/completions", "/generate", "/nowhere", "/workers"), {401})
        assert statuses == {401}
        assert SANITIZED or grown < 16 * MIB, grown
    finally:
        assert gateway.end() == 0, gateway.output()[-3000:]


@pytest.mark.parametrize("method", ["Check", "Watch"])
def test_a_health_check_without_a_key_has_a_short_message(start, method):
    """14 such calls with 31 MB each held 528 MB: they need no key, and took what --max-body-bytes allows."""
    server = start("--engine", "mock", "--api-key", "secret")
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        kind = channel.unary_unary if method == "Check" else channel.unary_stream
        call = kind(f"/grpc.health.v1.Health/{method}")
        with pytest.raises(grpc.RpcError) as refused:
            answer = call(b"\x12\x80\x80\x04" + b"x" * 65536, timeout=60)  # a field that the message has not
            next(answer)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60) == b"\x08\x01"


@pytest.mark.parametrize("prompts", [{"text": ["a"] * 200}, {"input_ids": [[5]] * 1100}], ids=["texts", "ids"])
def test_many_prompts_in_a_small_body_are_planned_off_the_shard(start, prompts):
    """4,096 texts in 16 KiB held every stream of the shard up for 14 ms, and so did as many lists of ids later."""
    server = start("--engine", "mock", "--max-total-tokens", "100000", "--max-queued-requests", "4096")
    planned = server.metric("portico_cpu_pool_tasks_total")
    answer = requests.post(server.url + "/generate", timeout=120, json={**prompts, "sampling_params": {"max_new_tokens": 1}})
    assert answer.status_code == 200 and len(answer.json()) == len(next(iter(prompts.values()))), answer.text[:300]
    assert server.metric("portico_cpu_pool_tasks_total") == planned + 1


@pytest.mark.parametrize("path", ["/open_session", "/flush_cache", "/slow_down", "/start_profile", "/load_lora_adapter"])
def test_a_control_route_takes_no_long_body(mock, path):
    """29 MB of JSON were parsed on the shard for half a second."""
    refused = requests.post(mock.url + path, data=b'{"y":[' + b"1," * MIB + b"1]}", headers={"content-type": "application/json"}, timeout=60)
    assert refused.status_code == 413, refused.text


def test_a_refused_body_is_dropped_and_the_connection_closed(start):
    server = start("--engine", "mock", "--api-key", "secret")
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        connection.sendall(head("/v1/completions", 31 * MIB))
        assert answer_of(connection)[0] == 401
        sent = 0
        try:
            while sent < 31 * MIB:
                sent += connection.send(b"x" * 65536)
        except OSError:
            pass
        assert sent < 16 * MIB  # what the kernels of both sides hold, and 1 MiB
    # A short one is read to its end, and the next request answered.
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        for _ in range(3):
            connection.sendall(head("/v1/completions", 2) + b"{}")
            status, text = answer_of(connection)
            assert status == 401 and b"connection: close" not in text


def test_bodies_share_a_budget_and_small_ones_do_not_starve(start):
    server = start("--engine", "mock", "--max-body-bytes", "3MiB", "--max-inflight-body-bytes", "4MiB")
    with socket.create_connection(("127.0.0.1", server.port), 60) as held:
        held.sendall(head("/v1/completions", 3 * MIB) + b"x" * (3 * MIB - 10))
        server.wait_for("portico_body_bytes", 3 * MIB + 64)
        refused = requests.post(server.url + "/v1/completions", json={"prompt": "x" * (2 * MIB)}, timeout=60)
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        assert server.chat("hello", max_tokens=2).status_code == 200
        client = Client(f"127.0.0.1:{server.port}")
        with pytest.raises(grpc.RpcError) as full:
            client.sglang.Tokenize(text="x" * (2 * MIB))
        assert full.value.code() == grpc.StatusCode.UNAVAILABLE
        assert client.sglang.Tokenize(text="hello").count > 0
    server.wait_for("portico_body_bytes", 0)
    assert server.metric("portico_bodies_refused_total") >= 2
    assert server.metric("portico_connections") >= 1
    fits = requests.post(server.url + "/tokenize", json={"prompt": "x " * MIB}, timeout=120)
    assert fits.status_code == 200
    server.wait_for("portico_body_bytes", 0)


def test_a_running_stream_keeps_no_body(start):
    """What is planned needs its text no more: long prompts of running requests do not use the budget up."""
    server = start("--engine", "mock", "--mock-itl-ms", "200", "--context-length", "400000")
    body = {"prompt": "x " * 100_000, "max_tokens": 1000, "stream": True}
    with requests.post(server.url + "/v1/completions", json=body, stream=True, timeout=120) as stream:
        lines = stream.iter_lines()  # an iterator that is dropped closes the connection
        next(lines)
        server.wait_for("portico_body_bytes", 0)


CONTROLS = ["/pause_generation", "/abort_request", "/flush_cache", "/continue_generation", "/update_weights_from_disk"]


@pytest.mark.parametrize("headers", [{"origin": "https://evil.test"}, {"origin": "null"},
                                     {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}])
def test_a_web_page_cannot_steer_a_server_on_localhost(mock, headers):
    """/pause_generation and /abort_request took text/plain from any origin."""
    for path in [*CONTROLS, "/generate", "/v1/chat/completions"]:
        for kind in ("text/plain", "application/json"):
            answer = requests.post(mock.url + path, data="{}", headers={**headers, "content-type": kind}, timeout=60)
            assert answer.status_code in (403, 415), (path, answer.text)
        assert requests.post(mock.url + path, headers=headers, timeout=60).status_code == 403
    for path in ("/flush_cache", "/start_profile", "/v1/models", "/get_server_info"):
        assert requests.get(mock.url + path, headers=headers, timeout=60).status_code == 403
    assert requests.get(mock.url + "/health", headers=headers, timeout=60).status_code == 200
    assert mock.chat("hello", max_tokens=2).status_code == 200


def test_media_types_that_only_contain_json_are_refused(mock):
    for kind in ("text/plain; a=application/json", "text/json", "application/x-json-not", "text/plain"):
        for path in ("/pause_generation", "/abort_request", "/v1/completions", "/generate", "/tokenize"):
            answer = requests.post(mock.url + path, data="{}", headers={"content-type": kind}, timeout=60)
            assert answer.status_code == 415, (path, kind, answer.text)
    # None is taken for JSON, as SGLang's clients need it.
    bare = requests.post(mock.url + "/continue_generation", data=b"{}", timeout=60)
    assert bare.status_code == 200, bare.text


def test_a_page_that_cors_allows_may_call(start):
    server = start("--engine", "mock", "--cors-origin", "https://page.test")
    page = {"origin": "https://page.test", "sec-fetch-site": "cross-site"}
    answer = requests.get(server.url + "/v1/models", headers=page, timeout=60)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "https://page.test"
    asked = requests.options(server.url + "/v1/completions", headers={**page, "access-control-request-method": "POST"},
                             timeout=60)
    assert asked.status_code == 204 and "POST" in asked.headers["access-control-allow-methods"]
    other = {"origin": "https://other.test"}
    assert requests.get(server.url + "/v1/models", headers=other, timeout=60).status_code == 403


def test_a_name_that_is_rebound_to_the_loopback_address_is_not_served(start):
    server = start("--engine", "mock", "--allowed-host", "portico.test")

    def status(host, *flags):
        done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *flags, "-H", f"host: {host}",
                               f"{server.url}/v1/models"], capture_output=True, text=True, timeout=60)
        return int(done.stdout)

    for host in ("localhost", f"127.0.0.1:{server.port}", "[::1]", "portico.test:80"):
        assert status(host) == 200, host
    for host in ("evil.test", f"evil.test:{server.port}", "127.0.0.1.evil.test", "localhost.evil.test"):
        assert status(host) == 403, host
        assert status(host, "--http2-prior-knowledge") == 403, host
    everywhere = start("--engine", "mock", "--host", "0.0.0.0")
    server = everywhere
    assert status("any.test") == 200


def test_only_the_admin_key_steers(start):
    server = start("--engine", "mock", "--api-key", "user", "--admin-api-key", "admin")

    def post(path, key):
        return requests.post(server.url + path, json={}, headers={"authorization": f"Bearer {key}"}, timeout=60)

    for path in ("/pause_generation", "/continue_generation", "/flush_cache"):
        assert post(path, "user").status_code == 401
        assert post(path, "admin").status_code == 200
    for path in ("/abort_request", "/update_weights_from_disk"):
        assert post(path, "user").status_code == 401
        assert post(path, "admin").status_code == 400
    assert post("/v1/completions", "admin").status_code == 401


def test_an_escaped_slash_is_no_slash(start):
    """A proxy that decides by path was passed by: /v1%2fmodels was answered as /v1/models."""
    server = start("--engine", "mock", "--served-model-name", "org/name")
    for path in ("/v1%2fmodels", "/v1%2Fchat/completions", "/%2fhealth", "/v1/models%2Forg%2Fname", "/health%2f"):
        assert requests.get(server.url + path, timeout=60).status_code == 404, path
    for path in ("/v1/models/org/name", "/v1/models/org%2Fname", "/v1/models/org%2fname"):
        assert requests.get(server.url + path, timeout=60).json()["id"] == "org/name", path


def test_probes_are_answered_while_a_drain_waits(start):
    """The port closed at SIGTERM, before /readiness could say 503."""
    server = start("--engine", "mock", "--mock-itl-ms", "20")
    body = {"prompt": "a b", "max_tokens": 200, "stream": True}
    with requests.post(server.url + "/v1/completions", json=body, stream=True, timeout=120) as stream:
        lines = stream.iter_lines()
        next(lines)
        assert requests.post(server.url + "/pause_generation", json={"mode": "in_place"}, timeout=60).status_code == 200
        go_on = Held(server, "/continue_generation", {})
        server.process.send_signal(signal.SIGTERM)
        def drains():
            with contextlib.suppress(requests.ConnectionError):  # it came before the signal, its request after it
                return requests.get(server.url + "/readiness", timeout=60).status_code == 503

        wait_until(drains, server.output)
        assert "draining" in requests.get(server.url + "/readiness", timeout=60).text
        assert requests.get(server.url + "/metrics", timeout=60).status_code == 200
        # A gateway takes it for hanging otherwise, and moves what it still computes.
        assert requests.get(server.url + "/health_generate", timeout=60).status_code == 200
        late = requests.post(server.url + "/v1/completions", json={"prompt": "a"}, timeout=60)
        assert late.status_code == 503 and late.headers["retry-after"]
        with pytest.raises(grpc.RpcError) as refused:
            Client(f"127.0.0.1:{server.port}").sglang.Tokenize(text="a")
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        go_on.send()
        assert [line for line in lines if line][-1] == b"data: [DONE]"
    assert server.process.wait(60) == 0


def test_a_full_pool_refuses(start):
    """What was too long for a shard was done there once the pool was full, and stopped every stream."""
    server = start("--engine", "mock", "--context-length", "4000000")
    text = json.dumps({"prompt": "all the words " * (40_000 if BRIEF else 400_000)}).encode()
    statuses = []

    def ask():
        for _ in range(4):
            statuses.append(requests.post(server.url + "/tokenize", data=text, timeout=600).status_code)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert requests.get(server.url + "/health", timeout=60).status_code == 200
    assert set(statuses) <= {200, 503}
    assert server.metric("portico_cpu_pool_threads") >= 1


@pytest.fixture(scope="module")
def gateway():
    fleet = Fleet(1)
    fleet.wait_healthy(1)
    yield fleet
    fleet.stop()


def test_a_web_page_of_another_origin_reaches_no_worker(gateway):
    """A page could generate with the gateway's keys, and end what others had asked for."""
    for headers in ({"origin": "https://evil.test"}, {"sec-fetch-site": "cross-site"}):
        for path in ("/v1/chat/completions", "/generate", "/workers", "/abort_request"):
            answer = requests.post(gateway.url + path, data="{}", headers={**headers, "content-type": "text/plain"}, timeout=60)
            assert answer.status_code == 403, (path, answer.text)
        assert requests.get(gateway.url + "/v1/models", headers=headers, timeout=60).status_code == 403
        assert requests.get(gateway.url + "/health", headers=headers, timeout=60).status_code == 200
    assert requests.get(gateway.url + "/v1/models", headers={"host": "evil.test"}, timeout=60).status_code == 403


def test_a_page_of_the_gateway_itself_reaches_its_workers(gateway):
    """A worker saw the page's origin beside its own host and refused the request."""
    headers = {"origin": gateway.url, "sec-fetch-site": "same-origin"}
    body = {"model": "demo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
    answer = requests.post(gateway.url + "/v1/chat/completions", json=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text


def test_an_escaped_slash_is_no_slash_for_the_gateway(gateway):
    for path in ("/v1%2fmodels", "/%2fhealth", "/flush_cache%2f", "/v1%2fchat/completions"):
        assert requests.get(gateway.url + path, timeout=60).status_code == 404, path


def test_an_option_that_the_engine_does_not_have_is_named(start):
    server = start("--engine", "mock", "--enable-deterministic-inference")
    assert "--enable-deterministic-inference has no effect with --engine mock" in server.output()
