"""Request bodies that are too large to be kept: a gateway forwards them while they arrive."""
import contextlib
import hashlib
import json
import socket
import subprocess
import threading

import pytest
import requests
from conftest import SANITIZED, free_port, wait_until
from gateway_fleet import Fleet, Process

MIB = 1 << 20
FLAGS = ("--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring")


class Sink:
    """A worker that reads bodies without keeping them. `before(sink, connection, head)` may answer earlier, True: it has."""

    def __init__(self, before=None):
        self.before = before
        self.digests, self.heads, self.ends = [], [], 0
        self.read_bytes = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as stream:
            while line := stream.readline():
                path = line.split(b" ")[1]
                head = {}
                while (line := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    head[name.decode().lower()] = value.strip().decode()
                if path in (b"/health", b"/health_generate", b"/v1/models"):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    continue
                self.heads.append(head)
                if self.before is not None and self.before(self, connection, head):
                    return
                digest = self.digest(stream, head)
                if digest is None:
                    self.ends += 1
                    return
                self.digests.append(digest)
                said = json.dumps({"digest": digest}).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(said) + said)

    def digest(self, stream, head):
        """Of the body; None if it breaks off."""
        digest = hashlib.sha256()

        def take(size):
            while size > 0:
                piece = stream.read(min(size, 256 << 10))
                if not piece:
                    return False
                digest.update(piece)
                self.read_bytes += len(piece)
                size -= len(piece)
            return True

        if "transfer-encoding" not in head:
            return digest.hexdigest() if take(int(head.get("content-length", 0))) else None
        while line := stream.readline():
            size = int(line, 16)
            if not take(size) or stream.readline() != b"\r\n":
                return None
            if size == 0:
                return digest.hexdigest()
        return None

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def route():
    """route(sinks or URLs, *flags) -> gateway"""
    made = []

    def start(workers, *flags):
        urls = [worker if isinstance(worker, str) else worker.url for worker in workers]
        gateway = Process("route", *FLAGS, "--worker-urls", *urls, *flags)
        made.append((workers, gateway))
        gateway.wait_ready("/readiness")
        sinks = [worker for worker in workers if not isinstance(worker, str)]
        wait_until(lambda: gateway.metric("portico_gateway_worker_healthy") >= len(sinks), gateway.output)
        return gateway

    yield start
    for workers, gateway in made:
        assert gateway.end() == 0, gateway.output()[-3000:]
        for worker in workers:
            if not isinstance(worker, str):
                worker.stop()


def pieces(count, size=MIB):
    for i in range(count):
        yield bytes([i % 251]) * size


def digest_of(parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class Sized:
    """A body of a known length that is made while it is sent."""

    def __init__(self, count):
        self.left, self.length = pieces(count), count * MIB

    def __len__(self):
        return self.length

    def read(self, size=-1):
        return next(self.left, b"")


def post(gateway, body, path="/v1/files", **headers):
    headers = {"content-type": "application/octet-stream", **headers}
    return requests.post(gateway.url + path, data=body, headers=headers, timeout=300)


def in_flight(gateway):
    return gateway.metric("portico_gateway_worker_requests")


def open_upload(gateway, length, sent, path="/v1/files"):
    connection = socket.create_connection(("127.0.0.1", gateway.port))
    connection.settimeout(120)
    connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path.encode(), length) + sent)
    return connection


def answer_of(connection):
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            said += piece
    return said


@pytest.mark.parametrize("policy", ["round_robin", "cost"])
def test_a_body_of_256_mib_passes_within_8_mib(route, policy):
    """Bodies were read whole before a worker was asked."""
    sink = Sink()
    gateway = route([sink], "--policy", policy)
    post(gateway, Sized(4))
    status = f"/proc/{gateway.process.pid}/status"

    def high():
        return next(int(line.split()[1]) << 10 for line in open(status) if line.startswith("VmHWM"))

    with contextlib.suppress(OSError), open(f"/proc/{gateway.process.pid}/clear_refs", "w") as clear:
        clear.write("5")  # the peak begins anew
    before = high()
    answer = post(gateway, Sized(256))
    assert answer.status_code == 200 and answer.json()["digest"] == digest_of(pieces(256))
    assert SANITIZED or high() - before <= 8 * MIB, high() - before
    assert sink.heads[-1]["content-length"] == str(256 * MIB)
    assert gateway.metric("portico_gateway_streamed_bodies_total") == 2


def test_a_body_of_unknown_length_goes_on_in_chunks(route):
    sink = Sink()
    gateway = route([sink])
    answer = post(gateway, pieces(20))
    assert answer.status_code == 200 and answer.json()["digest"] == digest_of(pieces(20))
    assert sink.heads[-1]["transfer-encoding"] == "chunked" and "content-length" not in sink.heads[-1]
    short = post(gateway, pieces(20, 100))
    assert short.json()["digest"] == digest_of(pieces(20, 100)) and sink.heads[-1]["content-length"] == "2000"


def test_a_body_over_http2_goes_on_as_it_comes(route, tmp_path):
    sink = Sink()
    gateway = route([sink])
    file = tmp_path / "body"
    file.write_bytes(b"".join(pieces(40)))
    for more in ((), ("-H", "transfer-encoding: chunked")):
        said = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "-T", file, "-X", "POST", *more, gateway.url + "/v1/files"],
                              capture_output=True, timeout=300, check=True).stdout
        assert json.loads(said)["digest"] == digest_of(pieces(40))
    assert gateway.metric("portico_gateway_streamed_bodies_total") == 2


def test_a_body_goes_on_over_http2_to_workers(tmp_path):
    fleet = Fleet(1, "--upstream-http2", "--policy", "round_robin")
    try:
        fleet.wait_healthy(1)
        body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4})
        whole = (body[:-1] + " " * (20 * MIB) + "}").encode()
        for data in (whole, iter([whole[:MIB * 3], whole[MIB * 3:]])):
            answer = requests.post(fleet.url + "/v1/chat/completions", data=data, headers={"content-type": "application/json"},
                                   timeout=300)
            assert answer.status_code == 200, answer.text[:500]
        assert fleet.gateway.metric("portico_gateway_streamed_bodies_total") == 2
    finally:
        fleet.stop()


def test_a_slow_worker_holds_its_client_back(route):
    go = threading.Event()
    sink = Sink(lambda *_: go.wait(120) and False)
    gateway = route([sink])
    size = 64 * MIB
    connection = open_upload(gateway, size, b"")
    sent = 0
    block = b"x" * MIB

    def send():
        nonlocal sent
        while sent < size:
            sent += connection.send(block[:min(MIB, size - sent)])

    sender = threading.Thread(target=send)
    sender.start()
    wait_until(lambda: sink.heads, gateway.output)
    for _ in range(20):
        assert requests.get(gateway.url + "/health", timeout=60).status_code == 200
    assert sent < size, "the kernel's buffers take some, the gateway little"
    go.set()
    sender.join()
    assert b" 200 " in connection.recv(65536).split(b"\r\n")[0]
    connection.close()
    assert gateway.metric("portico_gateway_streamed_bodies_total") == 1


def test_a_worker_that_takes_no_body_is_to_blame_at_the_deadline(route):
    """Only its clients were, who were waiting for it."""
    over = threading.Event()
    sink = Sink(lambda *_: over.wait(120) or True)
    gateway = route([sink], "--request-timeout-secs", 5, "--cb-failure-threshold", 1)
    connection = open_upload(gateway, 64 * MIB, b"")

    def send():
        with contextlib.suppress(OSError):
            connection.sendall(b"x" * 64 * MIB)

    sender = threading.Thread(target=send)
    sender.start()
    said = answer_of(connection)
    assert said.startswith(b"HTTP/1.1 504") and b"connection: close" in said, said[:500]
    sender.join()
    connection.close()
    wait_until(lambda: gateway.metric("portico_gateway_worker_breaker_opened_total") == 1 and in_flight(gateway) == 0, gateway.output)
    over.set()


def test_a_client_that_stops_in_the_middle_is_no_workers_fault(route):
    sink = Sink()
    gateway = route([sink], "--request-timeout-secs", 5, "--cb-failure-threshold", 1)
    connection = open_upload(gateway, 64 * MIB, b"x" * 2 * MIB)
    said = answer_of(connection)
    assert said.startswith(b"HTTP/1.1 504"), said[:500]
    connection.close()
    wait_until(lambda: sink.ends == 1 and in_flight(gateway) == 0, gateway.output)
    assert gateway.metric("portico_gateway_worker_breaker_opened_total") == 0


def test_an_answer_that_comes_before_the_body_is_passed_on(route):
    """A worker that refuses a body need not read it, and the client must learn why."""
    def refuse(sink, connection, head):
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: 13\r\n"
                           b"Connection: close\r\n\r\n{\"error\": {}}")
        connection.shutdown(socket.SHUT_WR)
        return True

    sink = Sink(refuse)
    gateway = route([sink])
    connection = open_upload(gateway, 512 * MIB, b"x" * (MIB + 300_000))
    said = answer_of(connection)
    connection.close()
    assert said.startswith(b"HTTP/1.1 413") and said.endswith(b'{"error": {}}') and b"connection: close" in said
    wait_until(lambda: in_flight(gateway) == 0, gateway.output)
    assert len(sink.heads) == 1, "it was not tried again"


def test_a_client_that_vanishes_in_the_middle_ends_the_workers_request(route):
    sink = Sink()
    gateway = route([sink])
    connection = open_upload(gateway, 64 * MIB, b"x" * 3 * MIB)
    wait_until(lambda: sink.read_bytes > 2 * MIB, gateway.output)
    connection.close()
    wait_until(lambda: sink.ends == 1 and in_flight(gateway) == 0, gateway.output)
    assert gateway.metric("portico_gateway_clients_gone_total") == 1
    assert gateway.metric("portico_gateway_worker_failures_total") == 0


def test_a_worker_that_dies_in_the_middle_is_no_reason_to_send_half_a_body_elsewhere(route):
    def leave(sink, connection, head):
        while sink.read_bytes < 2 * MIB:
            sink.read_bytes += len(connection.recv(65536))
        return True

    sinks = [Sink(leave), Sink(leave)]
    gateway = route(sinks, "--policy", "round_robin")
    connection = open_upload(gateway, 64 * MIB, b"x" * (5 * MIB // 2))
    said = answer_of(connection)
    connection.close()
    assert said.startswith(b"HTTP/1.1 503") and b'"worker_lost"' in said, said[:500]
    assert len(sinks[0].heads) + len(sinks[1].heads) == 1
    wait_until(lambda: in_flight(gateway) == 0, gateway.output)


def test_a_worker_that_cannot_be_reached_has_seen_nothing_and_another_gets_all(route):
    dead = f"http://127.0.0.1:{free_port()}"
    sink = Sink()
    gateway = route([dead, sink], "--policy", "round_robin", "--disable-health-check")
    for _ in range(2):
        answer = post(gateway, Sized(8))
        assert answer.status_code == 200 and answer.json()["digest"] == digest_of(pieces(8)), gateway.output()[-2000:]
    assert gateway.metric("portico_gateway_retries_total") >= 1


def test_a_body_that_grows_too_large_or_breaks_is_refused_in_the_middle(route):
    sink = Sink()
    gateway = route([sink], "--max-payload-size", 4 * MIB)
    connection = socket.create_connection(("127.0.0.1", gateway.port))
    connection.settimeout(120)
    head = b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"80000\r\n" + b"x" * 0x80000 + b"\r\n"
    connection.sendall(head + chunk * 9)
    said = answer_of(connection)
    assert said.startswith(b"HTTP/1.1 413"), said[:500]
    connection.close()
    connection = socket.create_connection(("127.0.0.1", gateway.port))
    connection.settimeout(120)
    connection.sendall(head + chunk * 4 + b"no size\r\n")
    said = answer_of(connection)
    assert said.startswith(b"HTTP/1.1 400"), said[:500]
    connection.close()
    wait_until(lambda: sink.ends == 2 and in_flight(gateway) == 0, gateway.output)
    connection = open_upload(gateway, 5 * MIB, b"")
    assert answer_of(connection).startswith(b"HTTP/1.1 413")
    connection.close()
    assert post(gateway, Sized(3)).status_code == 200


def test_what_must_be_known_of_a_body_is_waited_for():
    """The model is named behind two megabytes, one worker takes tokens, and padding is of no interest to any."""
    large = Process("serve", "--engine", "mock", "--served-model-name", "large")
    large.wait_ready()
    fleet = Fleet(1, "--enable-igw", workers=("--served-model-name", "small"), urls=[f"grpc://127.0.0.1:{large.port}"])
    try:
        fleet.wait_healthy(2)
        wait_until(lambda: len(requests.get(fleet.url + "/v1/models", timeout=60).json()["data"]) == 2, fleet.gateway.output)
        for model in ("small", "large"):
            for stuffing in ('"user": "%s", ' % ("u" * 100), ""):
                body = '{%s"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4,%s "model": "%s"}' % (
                    stuffing, " " * 2 * MIB, model)
                answer = requests.post(fleet.url + "/v1/chat/completions", data=body,
                                       headers={"content-type": "application/json"}, timeout=120)
                assert answer.status_code == 200, answer.text[:500]
                assert answer.json()["model"] == model
        for model in ("small", "large"):
            body = " " * 2 * MIB + '{"model": "%s", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}' % model
            answer = requests.post(fleet.url + "/v1/chat/completions", data=body, headers={"content-type": "application/json"},
                                   timeout=120)
            assert answer.status_code == 200 and answer.json()["model"] == model, answer.text[:500]
        assert fleet.gateway.metric("portico_gateway_streamed_bodies_total") == 0
        body = '{"model": "small", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4 %s}' % (" " * 2 * MIB)
        answer = requests.post(fleet.url + "/v1/chat/completions", data=body, headers={"content-type": "application/json"},
                               timeout=120)
        assert answer.status_code == 200 and answer.json()["model"] == "small"
        assert fleet.gateway.metric("portico_gateway_streamed_bodies_total") == 1
    finally:
        fleet.stop()
        large.kill()


def test_bodies_are_kept_whole_if_that_is_asked_for(route):
    sink = Sink()
    gateway = route([sink], "--max-buffered-body-bytes", "0")
    assert post(gateway, Sized(3)).json()["digest"] == digest_of(pieces(3))
    assert gateway.metric("portico_gateway_streamed_bodies_total") == 0
    wrong = Process("route", *FLAGS, "--worker-urls", sink.url, "--max-buffered-body-bytes", "100")
    assert wrong.process.wait(60) != 0 and "at least 65536" in wrong.output()
