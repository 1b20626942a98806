"""Workers that count as paused, and may not be: the gateway asks them until they tell."""
import threading
import time

import grpc
import pytest
import requests
from conftest import ROOT, wait_until
from gateway_fleet import RawWorker, events
from grpc_client import message
from test_gateway_stalls import CHAT, HEAD, LIMIT, Hanging, chunk, event, route  # noqa: F401 (route is a fixture)
from token_stand_ins import NativeStandIn

# How often a paused worker is asked.
OFTEN = ("--health-check-interval-secs", "1")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


def saying(text):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)


def paused(gateway):
    return [worker["paused"] for worker in requests.get(gateway.url + "/workers", timeout=60).json()["workers"]]


class Pausing(RawWorker):
    """What it answers to each path in turn: bytes, or None to lose the connection; the last one again and again."""

    def __init__(self, **says):
        self.says = {"/" + path: list(answers) for path, answers in says.items()}
        self.asked = []
        super().__init__(self._answer)
        self.infers = self._infer

    def _next(self, path):
        self.asked.append(path)
        answers = self.says.get(path, [OK])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _answer(self, connection, head, _body):
        said = self._next(head.split(b" ")[1].decode())
        return False if said is None else connection.sendall(said)

    def _infer(self):
        said = self._next("/health_generate")
        if said is None:
            raise OSError("the connection is closed")
        return said


@pytest.fixture
def pausing():
    made = []

    def make(**says):
        made.append(Pausing(**says))
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


@pytest.mark.parametrize("path, reading, says", [
    ("pause", "is_paused", saying(b'{"is_paused": false}')), ("sleep", "is_sleeping", saying(b'{"is_sleeping": false}')),
    ("pause_generation", "health_generate", OK)])
def test_a_worker_that_a_pause_has_not_reached_is_asked_until_it_tells(pausing, route, path, reading, says):  # noqa: F811
    """One whose first answer to /health_generate was an error, or was lost, counted as paused until it was told to go on."""
    worker = pausing(**{path: [None], reading: [BUSY, None, says]})
    gateway = route(worker.url)
    assert requests.post(f"{gateway.url}/{path}", timeout=120).status_code == 502
    assert paused(gateway) == [True]
    wait_until(lambda: paused(gateway) == [False], gateway.output)
    assert worker.asked == ["/" + path] + 3 * ["/" + reading]
    assert "is not paused" in gateway.output()


@pytest.mark.parametrize("path, go_on, reading, stays", [
    ("pause", "resume", "is_paused", saying(b'{"is_paused": true}')), ("pause_generation", "continue_generation", "health_generate", BUSY)])
def test_a_worker_that_went_on_without_saying_so_is_asked_whether_it_did(pausing, route, path, go_on, reading, stays):  # noqa: F811
    # It counted as paused for ever: its engine could hang without notice.
    worker = pausing(**{go_on: [None, OK], reading: [saying(b'{"is_paused": false}')]})
    gateway = route(worker.url)
    assert requests.post(f"{gateway.url}/{path}", timeout=120).status_code == 200
    assert requests.post(f"{gateway.url}/{go_on}", timeout=120).status_code == 502
    wait_until(lambda: paused(gateway) == [False], gateway.output)
    # One that has not heard of it stays paused, and goes on when it hears.
    worker.says.update({"/" + go_on: [None, OK], "/" + reading: [stays]})
    asked = worker.asked.count("/" + reading)
    assert requests.post(f"{gateway.url}/{path}", timeout=120).status_code == 200
    assert requests.post(f"{gateway.url}/{go_on}", timeout=120).status_code == 502
    wait_until(lambda: worker.asked.count("/" + reading) > asked, gateway.output)
    assert paused(gateway) == [True]
    assert requests.post(f"{gateway.url}/{go_on}", timeout=120).status_code == 200
    assert paused(gateway) == [False]


def test_a_paused_worker_that_was_down_is_asked_whether_it_is_still_paused(pausing, route):  # noqa: F811
    # It counted as going on, though it may have lost one connection only.
    worker = pausing(is_paused=[saying(b'{"is_paused": true}')])
    gateway = route(worker.url)
    assert requests.post(gateway.url + "/pause", timeout=120).status_code == 200
    down = {"now": True}
    worker.well = lambda: 503 if down["now"] else 200
    worker.models = None  # what is asked while it is paused
    answer = worker._answer

    def lost(connection, head, body):
        return False if b"/v1/chat" in head else answer(connection, head, body)

    worker.answer = lost
    assert requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code >= 500
    down["now"] = False
    wait_until(lambda: "/is_paused" in worker.asked, gateway.output)
    assert paused(gateway) == [True]
    worker.stop()
    assert requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code >= 500
    again = RawWorker(lambda connection, head, body: connection.sendall(saying(b'{"is_paused": false}')), port=worker.port)
    try:
        wait_until(lambda: paused(gateway) == [False], gateway.output)
    finally:
        again.stop()


def test_a_paused_sglang_whose_health_is_not_answered_keeps_its_streams(route):  # noqa: F811
    """Its /health infers: it was stalled after ten seconds of a pause, its streams were cut, and nothing made it go on."""
    worker = Hanging(first=HEAD + event(b"one"), rest=event(b"two") + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    hangs, held, asked = worker.answer, threading.Event(), []

    def answer(connection, head, body):
        path = head.split(b" ")[1]
        if path not in (b"/pause_generation", b"/continue_generation"):
            return hangs(connection, head, body)
        held.set() if path == b"/pause_generation" else (held.clear(), worker.lives.set())
        return connection.sendall(OK)

    def well():
        if held.is_set():
            asked.append(time.monotonic())
            worker.lives.wait()
        return 200

    worker.answer, worker.well = answer, well
    try:
        gateway = route(worker.url)
        assert requests.post(gateway.url + "/pause_generation", timeout=60).status_code == 200
        reply = requests.post(gateway.url + "/v1/chat/completions", json={**CHAT, "stream": True}, timeout=120, stream=True)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 2 * LIMIT + 2, "")
        listed = requests.get(gateway.url + "/workers", timeout=60).json()["workers"][0]
        assert listed["status"] == "healthy" and listed["paused"] and len(asked) <= 1, gateway.output()
        assert requests.post(gateway.url + "/continue_generation", timeout=60).status_code == 200
        said = events(reply)
        assert len(said) == 3 and "two" in said[1] and said[2] == "[DONE]"
        assert not requests.get(gateway.url + "/workers", timeout=60).json()["workers"][0]["paused"]
    finally:
        worker.stop()


def test_a_lost_pause_is_asked_about_without_health_checks(pausing, route):  # noqa: F811
    """Nothing looked at pauses then: it counted until the worker was told to go on."""
    worker = pausing(pause=[None], is_paused=[saying(b'{"is_paused": false}')])
    gateway = route(worker.url, flags=("--disable-health-check",))
    assert requests.post(gateway.url + "/pause", timeout=120).status_code == 502
    wait_until(lambda: paused(gateway) == [False], gateway.output)


def test_a_paused_worker_whose_server_fails_is_unhealthy(pausing, route):  # noqa: F811
    """Any answer to /v1/models would do, that of a proxy before a server that is gone too."""
    worker = pausing(is_paused=[saying(b'{"is_paused": true}')])
    worker.models, serves = None, [200]
    worker.serves = lambda: serves[0]
    gateway = route(worker.url, flags=OFTEN)
    assert requests.post(gateway.url + "/pause", timeout=120).status_code == 200
    wait_until(lambda: "/is_paused" in worker.asked, gateway.output)  # and has been probed: its 404 is one of a server that lives
    assert requests.get(gateway.url + "/workers", timeout=60).json()["workers"][0]["status"] == "healthy"
    serves[0], worker.models = 502, b""
    wait_until(lambda: "its probe returned 502" in gateway.output(), gateway.output)


def test_a_worker_that_is_resumed_past_the_gateway_is_not_paused_any_more(pausing, route):  # noqa: F811
    """It counted as paused for ever: its engine could hang without notice."""
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    vllm = pausing(pause_generation=[missing], is_paused=[saying(b'{"is_paused": true}')])
    portico = pausing(pause=[missing], health_generate=[saying(b"paused\n"), saying(b"ok\n")])
    # A paused SGLang answers too, as soon as its scheduler says anything.
    sglang = pausing(pause=[missing], health_generate=[saying(b"")])
    gateway = route(vllm.url, portico.url, sglang.url, flags=("--policy", "round_robin", *OFTEN))
    for path in ("pause", "pause_generation"):
        answer = requests.post(f"{gateway.url}/{path}", timeout=120).json()
        assert {one["status"] for one in answer["workers"]} == {200, 404}
    assert paused(gateway) == [True, True, True]
    wait_until(lambda: vllm.asked.count("/is_paused") > 2, gateway.output)
    # SGLang would log what it cannot answer as a failed health check.
    assert "/health_generate" not in portico.asked + sglang.asked and paused(gateway) == [True, True, True]
    vllm.says["/is_paused"] = [saying(b'{"is_paused": false}')]
    wait_until(lambda: paused(gateway) == [False, True, True], gateway.output)
    for _ in range(3):
        assert requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code == 200
    wait_until(lambda: paused(gateway) == [False, False, True] and "/health_generate" in sglang.asked, gateway.output)
    assert [worker.asked.count("/health_generate") for worker in (portico, sglang)] == [2, 1]
    assert gateway.output().count("it has gone on past this gateway") == 2


class Native(NativeStandIn):
    """Loses what it is told to do, and tells of its state from the third time on."""

    def __init__(self, is_pause):
        self.is_pause, self.looks, self.left = is_pause, 0, threading.Event()
        super().__init__([5, 6, 2], ROOT / "models/demo")

    def PauseGeneration(self, _request, context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "lost")

    def WatchEngineState(self, _request, context):
        self.looks += 1
        if self.looks < 3:
            context.abort(grpc.StatusCode.UNAVAILABLE, "lost")
        context.add_callback(self.left.set)
        yield message(self.package + "EngineStateSnapshot", instance_id=1, revision=1, healthy=True, is_pause=self.is_pause)
        self.left.wait(60)  # the stream goes on until nobody watches


@pytest.mark.parametrize("is_pause", [False, True])
def test_a_worker_behind_grpc_is_asked_whether_it_is_paused(route, is_pause):  # noqa: F811
    # Of one over gRPC no doubt was asked: what was lost counted as refused.
    worker = Native(is_pause)
    try:
        gateway = route(f"grpc://127.0.0.1:{worker.port}")
        assert requests.post(gateway.url + "/pause_generation", timeout=120).status_code >= 500
        assert paused(gateway) == [True]
        wait_until(lambda: worker.left.is_set() and worker.looks == 3, gateway.output)
        wait_until(lambda: paused(gateway) == [is_pause], gateway.output)
    finally:
        worker.stop()


class Resumed(NativeStandIn):
    """Is paused when it is asked for the first time, and goes on."""

    def __init__(self):
        self.looks = 0
        super().__init__([5, 6, 2], ROOT / "models/demo")

    def WatchEngineState(self, _request, _context):
        self.looks += 1
        yield message(self.package + "EngineStateSnapshot", instance_id=1, revision=1, healthy=True, is_pause=self.looks == 1)


def test_a_worker_behind_grpc_that_is_resumed_past_the_gateway_is_not_paused_any_more(route):  # noqa: F811
    worker = Resumed()
    try:
        gateway = route(f"grpc://127.0.0.1:{worker.port}", flags=OFTEN)
        assert requests.post(gateway.url + "/pause_generation", timeout=120).status_code == 200
        wait_until(lambda: worker.looks >= 1, gateway.output)
        wait_until(lambda: paused(gateway) == [False], gateway.output)
        assert worker.looks == 2 and "it has gone on past this gateway" in gateway.output()
    finally:
        worker.stop()
