"""A gateway before workers that tests can kill, stop and restart, and workers that answer whatever a test wants."""
import contextlib
import os
import pathlib
import socket
import subprocess
import threading

import pytest
import requests
from conftest import BINARY, BRIEF, RELEASE, ROOT, free_port, status_of, wait_until

# What workers of a gateway run: tests of `portico serve` have it checked by the sanitizers.
WORKER = RELEASE if BRIEF and RELEASE.exists() else BINARY


class Process:
    """One of Portico's commands on a port of its own."""

    def __init__(self, command, *flags, port=None, environment=None, program=BINARY):
        self.environment, self.program = environment and {**os.environ, **environment}, program
        self.command, self.flags, self.port = command, [str(flag) for flag in flags], port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = ROOT / f"build/test-{command}-{self.port}.log"
        self.log.unlink(missing_ok=True)  # of an earlier test that had the same port; this one's own starts are in one file
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([str(self.program), self.command, "--port", str(self.port), *self.flags],
                                            stdout=log, stderr=subprocess.STDOUT, cwd="/", env=self.environment)

    def answers(self, path="/health"):
        return status_of(self.port, path) == 200

    def wait_ready(self, path="/health"):
        wait_until(lambda: self.answers(path), lambda: f"{self.command} is not ready: {self.output()}")

    def output(self):
        return pathlib.Path(self.log).read_text(errors="replace")

    def metric(self, name):
        lines = requests.get(self.url + "/metrics", timeout=60).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends it by SIGTERM; its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()


def mock_worker(*flags):
    """A server of the mock engine for a gateway."""
    return Process("serve", "--engine", "mock", *flags, program=WORKER)


class Fleet:
    """`count` mock workers and a gateway in front."""

    def __init__(self, count, *flags, workers=(), urls=()):
        self.workers = [mock_worker(*workers) for _ in range(count)]
        for worker in self.workers:
            worker.wait_ready()
        urls = [worker.url for worker in self.workers] + list(urls)
        self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", *urls, *flags)
        self.url = self.gateway.url

    def wait_healthy(self, count):
        wait_until(lambda: self.healthy() == count, lambda: f"{self.healthy()} are healthy: {self.gateway.output()}")

    def state(self):
        try:
            return requests.get(self.url + "/workers", timeout=60).json()
        except requests.RequestException:
            return {"workers": []}

    def healthy(self):
        return sum(worker["is_healthy"] for worker in self.state()["workers"])

    def loads(self):
        return [worker["load"] for worker in self.state()["workers"]]

    def chat(self, content="hello", timeout=60, **fields):
        body = {"model": "demo", "messages": [{"role": "user", "content": content}], "max_tokens": 8, **fields}
        return requests.post(self.url + "/v1/chat/completions", json=body, timeout=timeout,
                             stream=bool(fields.get("stream")))

    def stop(self):
        status = self.gateway.end()
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
        assert status == 0, self.gateway.output()[-3000:]


def listen(host, port):
    """Connections of a former worker may still be closing where `port` was its own."""
    made = []

    def bound():
        with contextlib.suppress(OSError):
            made.append(socket.create_server((host, port), backlog=128))
        return made

    wait_until(bound, f"port {port} is not free")
    return made[0]


class RawWorker:
    """A worker of sockets: `answer(connection, request)` is called with each request; health is good."""

    def __init__(self, answer, host="127.0.0.1", port=0):
        self.answer = answer
        self.requests, self.connections = [], []
        self.models = b"{}"  # what /v1/models answers; None: 404
        self.serves = lambda: 200  # /v1/models' status
        self.well = lambda: 200  # /health's status
        self.infers = lambda: 404  # /health_generate's status, or all that it answers; asked while the worker holds requests and is silent
        self.page = lambda head: b"{}"  # what /metrics answers; None: 404
        self.info = None  # what /server_info answers; None: as `answer` does
        self.listener = listen(host, port)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            while True:
                request = b""
                while b"\r\n\r\n" not in request:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    request += piece
                head, _, body = request.partition(b"\r\n\r\n")
                length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                               if line.lower().startswith(b"content-length:")), 0)
                while len(body) < length:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    body += piece
                path = head.split(b" ")[1]
                if path in (b"/health", b"/health_generate"):
                    said = self.well() if path == b"/health" else self.infers()
                    connection.sendall(said if isinstance(said, bytes) else b"HTTP/1.1 %d Inferred\r\nContent-Length: 0\r\n\r\n" % said)
                    continue
                if path in (b"/v1/models", b"/v1/loads", b"/get_load", b"/metrics"):  # what a gateway asks of itself
                    said = self.models if path == b"/v1/models" else self.page(head) if path == b"/metrics" else b"{}"
                    status = 404 if said is None else self.serves() if path == b"/v1/models" else 200
                    connection.sendall(b"HTTP/1.1 %d Said\r\nContent-Length: %d\r\n\r\n%s" % (status, len(said or b""), said or b""))
                    continue
                if path == b"/server_info" and self.info is not None:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(self.info), self.info))
                    continue
                self.requests.append((head, body))
                if self.answer(connection, head, body) is False:
                    return

    def stop(self):
        for open_one in (self.listener, *self.connections):
            with contextlib.suppress(OSError):
                open_one.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@contextlib.contextmanager
def front(answers, *flags, load=False):
    """(workers, gateway): a gateway before a worker of sockets for each answer, which has found them all well and must end well."""
    workers, gateway = [RawWorker(answer) for answer in answers], None
    try:
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", *(() if load else ("--disable-load-monitoring",)),
                          *flags, "--worker-urls", *[worker.url for worker in workers])
        wait_until(lambda: gateway.answers("/readiness") and gateway.metric("portico_gateway_worker_healthy") == len(workers),
                   gateway.output)
        yield workers, gateway
        assert gateway.end() == 0, gateway.output()[-3000:]
    finally:
        if gateway is not None:
            gateway.kill()
        for worker in workers:
            worker.stop()


@pytest.fixture
def fleets():
    made = []

    def make(*arguments, **keywords):
        made.append(Fleet(*arguments, **keywords))
        return made[-1]

    yield make
    for fleet in made:
        fleet.stop()


@pytest.fixture
def raw():
    """raw(answer, *flags) -> (worker, gateway process): a gateway before one worker of sockets."""
    made = []

    def make(answer, *flags, more=()):
        worker = RawWorker(answer)
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", worker.url, *more,
                          *flags)
        made.append((worker, gateway))
        gateway.wait_ready("/readiness")
        return worker, gateway

    yield make
    for worker, gateway in made:
        assert gateway.end() == 0, gateway.output()[-3000:]
        worker.stop()


def events(response):
    return [line[6:] for line in response.iter_lines(decode_unicode=True) if line.startswith("data: ")]
