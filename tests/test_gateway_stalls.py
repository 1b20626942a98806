"""Workers whose engine hangs while their server goes on: /health answers, nothing is inferred any more."""
import json
import socket
import threading
import time

import pytest
import requests
from conftest import ROOT, SANITIZED, wait_until
from gateway_fleet import Process, RawWorker, events, fleets, mock_worker  # noqa: F401 (fleets is a fixture)
from grpc_client import message
from token_stand_ins import SchedulerStandIn

# A busy machine may keep a worker from answering for two seconds.
LIMIT = 8 if SANITIZED else 4
STALL = ("--worker-stall-timeout-secs", str(LIMIT), "--policy", "round_robin")
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text)


def event(word):
    return chunk(b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % word)


class Hanging(RawWorker):
    """A worker that hangs until `lives` is set: a request gets `first`, and the rest then."""

    def __init__(self, first=b"", rest=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"):
        self.lives, self.first, self.rest, self.asked = threading.Event(), first, rest, 0
        super().__init__(self._answer)
        self.infers = self._infer

    def _answer(self, connection, _head, _body):
        connection.sendall(self.first)
        self.lives.wait()
        connection.sendall(self.rest)

    def _infer(self):
        self.asked += 1
        self.lives.wait()
        return 200

    def stop(self):
        self.lives.set()
        super().stop()


def also(worker, says):
    """The worker answers what says(path) gives, or as it did where that is None."""
    answer = worker.answer

    def other(connection, head, body):
        said = says(head.split(b" ")[1])
        if said is None:
            return answer(connection, head, body)
        return connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))

    worker.answer = other
    return worker


@pytest.fixture
def hanging():
    made = []

    def make(**how):
        made.append(Hanging(**how))
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


@pytest.fixture
def route():
    """route(*urls and flags) -> a gateway of which all workers are healthy, one for each URL unless their number is given."""
    made = []

    def make(*urls, flags=STALL, workers=None):
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", *urls, *flags)
        made.append(gateway)
        wait_until(lambda: gateway.answers("/readiness") and gateway.metric("portico_gateway_worker_healthy") == (workers or len(urls)),
                   gateway.output)
        return gateway

    yield make
    for gateway in made:
        assert gateway.end() == 0, gateway.output()[-3000:]


def statuses(gateway):
    listed = requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
    return {worker["url"]: worker["status"] for worker in listed}


def at_rest(gateway):
    """Waits until nothing counts as running, which is a moment after a client has its answer."""
    def rest():
        listed = requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
        return all(worker["load"] == 0 and worker["prefill_tokens"] == 0 for worker in listed)

    wait_until(rest, "a worker is thought to hold a request")
    return True


def test_a_hanging_engine_loses_its_whole_answers_to_others_and_is_used_again_when_it_infers(hanging, route):
    # Its /health answers all the time, which was taken for a sign of life: its requests waited for half an hour.
    ill = hanging()
    good = RawWorker(lambda connection, head, body: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
    try:
        gateway = route(ill.url, good.url)
        answers = [requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code for _ in range(4)]
        assert answers == [200] * 4 and ill.requests
        assert statuses(gateway)[ill.url] == "stalled"
        before = len(ill.requests)
        wait_until(lambda: ill.asked >= 2, "it is not asked whether it infers again")
        assert statuses(gateway)[ill.url] == "stalled" and len(ill.requests) == before
        assert 'kind="stalled"} 1' in requests.get(gateway.url + "/metrics", timeout=60).text
        ill.lives.set()
        wait_until(lambda: statuses(gateway)[ill.url] == "healthy", gateway.output)
        for _ in range(2):
            assert requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code == 200
        assert len(ill.requests) == before + 1 and at_rest(gateway)
    finally:
        good.stop()


def test_a_stream_on_a_hanging_engine_ends_with_an_error_and_done(hanging, route):
    ill = hanging(first=HEAD + event(b"one"))
    gateway = route(ill.url)
    answer = requests.post(gateway.url + "/v1/chat/completions", json={**CHAT, "stream": True}, timeout=120, stream=True)
    said = events(answer)
    assert len(said) == 3 and "one" in said[0] and said[2] == "[DONE]"
    assert json.loads(said[1])["error"]["code"] == "worker_stalled"
    assert gateway.metric("portico_gateway_cut_streams_total") == 1 and at_rest(gateway)
    assert statuses(gateway)[ill.url] == "stalled"


def test_a_stream_that_thinks_for_long_goes_on_and_an_idle_worker_is_not_asked(hanging, route):
    slow = hanging(first=HEAD + event(b"one"), rest=event(b"two") + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    idle = hanging()
    asked = []
    slow.infers = lambda: asked.append(time.monotonic()) or 200
    gateway = route(slow.url)
    answer = requests.post(gateway.url + "/v1/chat/completions", json={**CHAT, "stream": True}, timeout=120, stream=True)
    assert requests.post(gateway.url + "/workers", json={"url": idle.url}, timeout=60).status_code < 300
    wait_until(lambda: statuses(gateway).get(idle.url) == "healthy", gateway.output)
    del asked[:]
    wait_until(lambda: len(asked) > 2 and asked[-1] - asked[0] > 2 * LIMIT + 1, lambda: f"{asked}: {gateway.output()}")
    assert statuses(gateway)[slow.url] == "healthy"
    slow.lives.set()
    said = events(answer)
    assert len(said) == 3 and "two" in said[1] and said[2] == "[DONE]"
    assert idle.asked == 0


@pytest.mark.parametrize("status", [404, 500])
def test_a_worker_without_such_a_route_is_judged_by_its_health(hanging, route, status):
    # vLLM's servers have no /health_generate. One that fails in it was taken for hanging.
    slow = hanging()
    asked = []
    slow.infers = lambda: asked.append(1) or status
    gateway = route(slow.url)
    got = []
    client = threading.Thread(target=lambda: got.append(requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120)))
    began = time.monotonic()
    client.start()
    wait_until(lambda: time.monotonic() - began > 2 * LIMIT + 2, "")
    assert statuses(gateway)[slow.url] == "healthy" and asked
    slow.lives.set()
    client.join()
    assert got[0].status_code == 200


@pytest.mark.parametrize("status", [503, 504])
def test_a_worker_that_says_that_it_has_not_inferred_in_time_is_stalled(hanging, route, status):
    ill = hanging()
    ill.infers = lambda: status
    gateway = route(ill.url)
    assert requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code >= 500
    assert statuses(gateway)[ill.url] == "stalled"


@pytest.mark.parametrize("hold, more, let_go", [("/pause_generation", (), "/continue_generation"), ("/begin_weight_update", (), "/end_weight_update"),
                                                ("/start_weight_update", ("/update_weights",), "/finish_weight_update"),
                                                ("/pause?mode=keep", (), "/resume"), ("/sleep", (), "/wake_up"),
                                                ("/sleep?level=1", ("/wake_up?tags=weights",), "/wake_up?tags=kv_cache")])
def test_an_engine_that_is_held_back_is_not_taken_for_a_hanging_one(hanging, route, hold, more, let_go):
    # Between the beginning and the end of an update of weights it was, while vLLM's server was paused, and when its weights alone had woken.
    paused = also(hanging(), lambda path: b"{}" if path.decode() in (hold, *more, let_go) else None)
    gateway = route(paused.url)
    for path in (hold, *more):
        assert requests.post(gateway.url + path, timeout=60).status_code == 200
    got = []
    client = threading.Thread(target=lambda: got.append(requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120)))
    began = time.monotonic()
    client.start()
    wait_until(lambda: time.monotonic() - began > 2 * LIMIT + 2, "")
    assert statuses(gateway)[paused.url] == "healthy" and paused.asked == 0
    assert requests.post(gateway.url + let_go, timeout=60).status_code == 200
    wait_until(lambda: paused.asked > 0, "it is not asked whether it infers")
    paused.lives.set()
    client.join()
    assert got[0].status_code == 200


def test_a_pause_holds_all_ranks_of_a_server_back(hanging, route):
    """It was noted for the rank that had been asked: the streams of the others were cut."""
    paused = hanging(first=HEAD + event(b"one"), rest=event(b"two") + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    also(paused, lambda path: b'{"dp_size":2}' if path == b"/server_info" else b"{}" if b"_generation" in path else None)
    gateway = route(paused.url, flags=(*STALL, "--dp-aware"), workers=2)
    assert requests.post(gateway.url + "/pause_generation", timeout=60).status_code == 200
    answers = [requests.post(gateway.url + "/v1/chat/completions", json={**CHAT, "stream": True}, timeout=120, stream=True)
               for _ in range(2)]
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 2 * LIMIT + 2, "")
    assert statuses(gateway) == {f"{paused.url}@{rank}": "healthy" for rank in range(2)} and paused.asked == 0
    paused.lives.set()
    assert requests.post(gateway.url + "/continue_generation", timeout=60).status_code == 200
    for answer in answers:
        said = events(answer)
        assert len(said) == 3 and "two" in said[1] and said[2] == "[DONE]"
    assert sorted(head.split(b"x-data-parallel-rank: ")[1][:1] for head, _ in paused.requests if b"x-data-parallel-rank" in head) == [b"0", b"1"]


@pytest.mark.parametrize("path", ["/continue_generation", "/resume", "/wake_up"])
def test_a_stalled_worker_is_told_to_go_on(hanging, route, path):
    """What had been paused past the gateway was taken for hanging, and nothing through the gateway could wake it."""
    paused = hanging()
    also(paused, lambda asked: paused.lives.set() or b"{}" if asked == path.encode() else None)
    gateway = route(paused.url)
    assert requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code >= 500
    assert statuses(gateway)[paused.url] == "stalled"
    assert requests.post(gateway.url + "/flush_cache", timeout=60).status_code == 503
    answer = requests.post(gateway.url + path, timeout=60)
    assert answer.status_code == 200 and len(answer.json()["workers"]) == 1
    wait_until(lambda: statuses(gateway)[paused.url] == "healthy", gateway.output)
    assert requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code == 200


def test_a_worker_that_hangs_does_not_keep_the_others_from_going_on(hanging, route):
    ill = hanging()
    good = RawWorker(lambda connection, head, body: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
    try:
        gateway = route(ill.url, good.url)
        assert [requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=120).status_code for _ in range(2)] == [200] * 2
        assert statuses(gateway)[ill.url] == "stalled"
        answer = requests.post(gateway.url + "/continue_generation", timeout=60)
        assert answer.status_code == 200 and [one["answer"] for one in answer.json()["workers"]] == ["{}"]
        assert b"POST /continue_generation HTTP/1.1" in [head.split(b"\r\n")[0] for head, _ in ill.requests]
    finally:
        good.stop()


def test_a_worker_that_takes_a_slow_clients_body_is_not_taken_for_a_hanging_one(hanging, route):
    """The rest of the body counted as the worker's silence: the upload was answered 504, and its worker left out."""
    idle = hanging()
    gateway = route(idle.url)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=120) as client:
        first, rest = b" " * (2 << 20), 200  # more than the gateway keeps
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(first) + 4096 * rest, first))
        began = time.monotonic()
        while rest > 1 and time.monotonic() - began < 2 * LIMIT + 2:
            client.sendall(b" " * 4096)  # the server refuses a body of which less comes in its time
            rest -= 1
            time.sleep(0.2)
        assert statuses(gateway)[idle.url] == "healthy", gateway.output()
        assert gateway.metric("portico_gateway_streamed_bodies_total") == 1  # its worker has had it all the time
        idle.lives.set()
        client.sendall(b" " * 4096 * rest)
        with client.makefile("rb") as stream:
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
    assert "stalled" not in gateway.output()


def test_a_worker_whose_client_does_not_read_is_not_taken_for_a_hanging_one(hanging, route):
    """The worker was not read either, and what it did not say was its silence: the stream was cut."""
    padding = chunk(b"data: " + b"x" * (64 << 10) + b"\n\n")
    worker = hanging(first=HEAD + 512 * padding, rest=event(b"two") + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    gateway = route(worker.url)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.settimeout(120)
        client.connect(("127.0.0.1", gateway.port))
        body = json.dumps({**CHAT, "stream": True}).encode()
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        wait_until(lambda: worker.requests, gateway.output)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 2 * LIMIT + 2, "")
        assert statuses(gateway)[worker.url] == "healthy", gateway.output()
        worker.lives.set()
        said, size = b"", 0
        while piece := client.recv(1 << 20):
            size, said = size + len(piece), (said + piece)[-1000:]
    assert size > 32 << 20 and b"two" in said and b"data: [DONE]" in said
    assert "stalled" not in gateway.output() and at_rest(gateway)


class Thinking(SchedulerStandIn):
    """Its engine is within one long step until `thought` is set: requests and HealthCheck wait for it, GetLoads does not."""

    def __init__(self):
        self.thought = threading.Event()
        super().__init__([5, 6, 2], ROOT / "models/demo", act=self.think)

    def think(self, _worker, _request, _context):
        self.thought.wait()
        yield from self.whole()

    def HealthCheck(self, request, context):
        if self.asked:
            self.thought.wait()
        return super().HealthCheck(request, context)

    def GetLoads(self, _request, _context):
        reply = message(self.package + "GetLoadsResponse", dp_rank_count=1)
        reply.loads.add(num_running_reqs=1, max_total_num_tokens=100000)
        return reply


def test_a_long_step_behind_grpc_has_twice_the_limit(route):
    """While HealthCheck waited for the step, nothing but a load every 10 s, if at all, told that the server answers."""
    limit, worker = 12, Thinking()
    try:
        gateway = route(f"grpc://127.0.0.1:{worker.port}", flags=("--worker-stall-timeout-secs", str(limit), "--disable-load-monitoring"))
        got = []
        client = threading.Thread(target=lambda: got.append(requests.post(
            gateway.url + "/v1/chat/completions", json={"messages": CHAT["messages"]}, timeout=120)))
        client.start()
        wait_until(lambda: worker.asked, gateway.output)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > limit + 2, "")
        worker.thought.set()
        client.join()
        assert got[0].status_code == 200, got[0].text
        assert set(statuses(gateway).values()) == {"healthy"} and "stalled" not in gateway.output()
    finally:
        worker.thought.set()
        worker.stop()


def test_a_hanging_engine_behind_grpc_is_left_out_and_its_streams_end(fleets):  # noqa: F811
    ill = mock_worker("--mock-fault", "stall:1")
    try:
        ill.wait_ready()
        fleet = fleets(0, *STALL, "--health-check-timeout-secs", "1", urls=[f"grpc://127.0.0.1:{ill.port}"])
        fleet.wait_healthy(1)
        cut = 0
        for number in range(3):
            answer = fleet.chat(f"Question {number}", stream=True, max_tokens=200, timeout=120)
            said = events(answer)
            if answer.status_code == 200:
                assert said[-1] == "[DONE]" and json.loads(said[-2])["error"]["code"] == "worker_stalled"
                cut += 1
        assert cut and fleet.gateway.metric("portico_gateway_cut_streams_total") == cut
        # It has no requests any more, but has not inferred either.
        assert fleet.state()["workers"][0]["status"] == "stalled" and fleet.loads() == [0]
        good = mock_worker()
        try:
            good.wait_ready()
            assert requests.post(fleet.url + "/workers", json={"url": f"grpc://127.0.0.1:{good.port}"}, timeout=60).status_code < 300
            fleet.wait_healthy(1)
            assert [fleet.chat(timeout=120).status_code for _ in range(3)] == [200] * 3
        finally:
            good.kill()
    finally:
        ill.kill()
