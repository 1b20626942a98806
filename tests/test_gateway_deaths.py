"""Workers that die or stop while requests are on them, clients that leave, and gateways without workers."""
import contextlib
import signal
import socket
import threading
import time

import requests
from conftest import ROOT, freeze, wait_until
from gateway_fleet import RawWorker, fleets  # noqa: F401 (fleets is a fixture)
from token_stand_ins import SchedulerStandIn, VllmStandIn

# Probes of healthy workers: the death of an idle one is seen by nothing else.
OFTEN = ("--health-check-interval-secs", "2", "--health-check-timeout-secs", "2")


def test_a_client_that_leaves_stops_the_worker(fleets):
    fleet = fleets(1, workers=("--mock-itl-ms", "50"))
    fleet.wait_healthy(1)
    answer = fleet.chat(stream=True, max_tokens=5000)
    lines = answer.iter_lines()
    next(lines)
    assert fleet.loads() == [1]
    answer.close()
    wait_until(lambda: fleet.loads() == [0], "the gateway has not noticed")
    wait_until(lambda: fleet.workers[0].metric("portico_requests_running") == 0, "the worker still runs it")


def test_no_whole_answer_fails_while_one_worker_lives(fleets):
    # The workers are probed every minute: that one is back sooner is seen because it is down.
    fleet = fleets(3, workers=("--mock-itl-ms", "5"))
    fleet.wait_healthy(3)
    wrong, done, stop = [], [0], threading.Event()

    def load():
        while not stop.is_set():
            try:
                answer = fleet.chat(max_tokens=10)
                if answer.status_code != 200:
                    wrong.append(answer.text)
            except requests.RequestException as error:
                wrong.append(str(error))
            done[0] += 1

    def more():
        enough = done[0] + 20
        wait_until(lambda: done[0] > enough, "requests do not end")

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for worker in fleet.workers[:2]:
            more()
            worker.kill()
        more()
        fleet.workers[0].start()
        fleet.workers[0].wait_ready()
        recovered = time.monotonic()
        wait_until(lambda: fleet.healthy() == 2, "the restarted worker is not used")
        assert time.monotonic() - recovered < 50
        more()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    wait_until(lambda: fleet.loads() == [0, 0, 0], fleet.loads)


def test_streams_of_a_killed_worker_end_with_an_error_and_done(fleets):
    fleet = fleets(2, "--policy", "round_robin", "--show-workers", workers=("--mock-itl-ms", "20"))
    fleet.wait_healthy(2)
    killed = next(worker["id"] for worker in fleet.state()["workers"] if worker["url"] == fleet.workers[0].url)
    answers = [fleet.chat(stream=True, max_tokens=5000) for _ in range(4)]
    lines = [answer.iter_lines(decode_unicode=True) for answer in answers]
    for line in lines:
        next(line)
    fleet.workers[0].kill()
    cut = 0
    for answer, line in zip(answers, lines):
        if answer.headers["x-portico-worker"] == killed:
            said = [text[6:] for text in line if text.startswith("data: ")]
            assert said[-1] == "[DONE]" and '"worker_lost"' in said[-2]
            cut += 1
        else:
            next(line)
            answer.close()
    assert cut == 2
    wait_until(lambda: fleet.loads() == [0, 0], fleet.loads)


def test_a_stopped_worker_loses_its_whole_answers_to_others(fleets):
    fleet = fleets(2, "--policy", "round_robin", "--worker-stall-timeout-secs", "4")
    fleet.wait_healthy(2)
    # It has been healthy, and its connections are still accepted.
    freeze(fleet.workers[0].process.pid)
    try:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(fleet.chat(timeout=120).status_code)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [200] * 4
        assert fleet.healthy() == 1
        assert fleet.chat().status_code == 200
    finally:
        fleet.workers[0].process.send_signal(signal.SIGCONT)
    fleet.wait_healthy(2)


def test_without_workers_the_reason_is_said_and_readiness_tells_the_truth(fleets):
    fleet = fleets(1, *OFTEN)
    fleet.wait_healthy(1)
    assert requests.get(fleet.url + "/readiness", timeout=60).status_code == 200
    assert [requests.post(fleet.url + path, timeout=60).status_code for path in ("/health", "/readiness", "/metrics")] == [405] * 3
    fleet.workers[0].kill()
    wait_until(lambda: requests.get(fleet.url + "/readiness", timeout=60).status_code == 503, "it is still ready")
    answer = fleet.chat()
    assert answer.status_code == 503 and answer.headers["retry-after"]
    assert "127.0.0.1" not in answer.text and "1 down" in requests.get(fleet.url + "/readiness", timeout=60).text
    fleet.workers[0].start()
    fleet.wait_healthy(1)
    assert fleet.chat().status_code == 200


def raw_fleet(fleets, count, answer, *flags):
    """That many workers of sockets and one of Portico's behind a gateway that has seen all of them."""
    dead = [RawWorker(answer) for _ in range(count)]
    fleet = fleets(1, "--policy", "round_robin", *flags, urls=[worker.url for worker in dead])
    fleet.wait_healthy(count + 1)
    return fleet, dead


def unasked(connection, head, body):
    """Of a worker that gets no request; asked() tells whether it did."""
    return False


def asked(workers):
    return [request for worker in workers for request in worker.requests]


def test_a_request_goes_on_until_it_finds_a_worker_that_lives(fleets):
    """With more workers gone than it may have attempts (5) it failed, though one was healthy."""
    fleet, dead = raw_fleet(fleets, 8, unasked)
    for worker in dead:
        worker.stop()
    for _ in range(3):
        answer = fleet.chat()
        assert answer.status_code == 200, answer.text
    assert fleet.healthy() == 1 and sum(fleet.loads()) == 0 and not asked(dead)


def test_a_request_goes_on_over_grpc_until_it_finds_a_worker_that_lives(fleets):
    dead = [SchedulerStandIn([5], ROOT / "models/demo") for _ in range(7)]
    fleet = fleets(1, "--policy", "round_robin", "--disable-load-monitoring", urls=[f"grpc://127.0.0.1:{worker.port}" for worker in dead])
    fleet.wait_healthy(8)
    for worker in dead:
        worker.server.stop(None).wait(60)
    for _ in range(3):
        answer = fleet.chat(model="")
        assert answer.status_code == 200, answer.text
    wait_until(lambda: fleet.healthy() == 1 and sum(fleet.loads()) == 0, fleet.gateway.output)


class Embedder(VllmStandIn):
    generates = False


def test_texts_for_vectors_go_on_over_grpc_until_they_find_a_worker_that_lives(fleets):
    """Each refused connection counted as an attempt, as if the worker had died of the request."""
    dead = [Embedder([5], ROOT / "models/demo") for _ in range(7)]
    said = b'{"object":"list","data":[]}'
    lives = RawWorker(lambda connection, head, body: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)))
    fleet = fleets(0, "--policy", "round_robin", "--disable-load-monitoring",
                   urls=[*(f"grpc://127.0.0.1:{worker.port}" for worker in dead), lives.url])
    fleet.wait_healthy(8)
    for worker in dead:
        worker.server.stop(None).wait(60)
    for _ in range(3):
        answer = requests.post(fleet.url + "/v1/embeddings", json={"input": "x"}, timeout=60)
        assert answer.status_code == 200 and answer.content == said, answer.text
    wait_until(lambda: fleet.healthy() == 1 and sum(fleet.loads()) == 0, fleet.gateway.output)
    lives.stop()


class Relay:
    """The place of a worker at `port`, until it dies."""

    def __init__(self, port):
        self.to, self.open = port, []
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.door.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
                self.open += [client, server]
                for source, to in [(client, server), (server, client)]:
                    threading.Thread(target=self.pump, args=(source, to), daemon=True).start()

    def pump(self, source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                to.sendall(data)

    def die(self):
        for one in (self.door, *self.open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.door.close()


def test_a_request_that_kills_workers_over_grpc_does_not_kill_all_of_them(fleets):
    relays = {}

    def kill(worker, _request, _context):
        relays[worker.port].die()
        return ()

    workers = [SchedulerStandIn([5], ROOT / "models/demo", act=kill) for _ in range(9)]
    relays.update({worker.port: Relay(worker.port) for worker in workers})
    fleet = fleets(0, "--policy", "round_robin", "--disable-load-monitoring",
                   urls=[f"grpc://127.0.0.1:{relay.port}" for relay in relays.values()])
    fleet.wait_healthy(9)
    assert fleet.chat(model="").status_code == 503
    assert sum(len(worker.asked) for worker in workers) == 5
    for worker in workers:
        relays[worker.port].die()
        worker.stop()


def test_a_request_that_kills_workers_does_not_kill_all_of_them(fleets):
    # What a worker that is lost had been sent may be what it died of: such attempts count.
    dying = [RawWorker(lambda connection, head, body: False) for _ in range(9)]
    fleet = fleets(0, "--policy", "round_robin", urls=[worker.url for worker in dying])
    fleet.wait_healthy(9)
    assert fleet.chat().status_code == 503
    assert sum(len(worker.requests) for worker in dying) == 5
    for worker in dying:
        worker.stop()


def test_without_retries_a_worker_that_is_gone_is_not_replaced(fleets):
    fleet, dead = raw_fleet(fleets, 1, unasked, "--disable-retries")
    dead[0].stop()
    assert sorted(fleet.chat().status_code for _ in range(2)) == [200, 503] and not asked(dead)


def test_a_model_is_listed_while_a_worker_for_it_lives(fleets):
    """It was listed for as long as the worker was configured."""
    fleet = fleets(1, *OFTEN)
    fleet.wait_healthy(1)
    other = RawWorker(unasked)
    other.models = b'{"data": [{"id": "other"}]}'
    assert requests.post(fleet.url + "/workers", json={"url": other.url}, timeout=60).status_code < 300

    def listed():
        return [card["id"] for card in requests.get(fleet.url + "/v1/models", timeout=60).json()["data"]]

    wait_until(lambda: listed() == ["demo", "other"], listed)
    other.stop()
    wait_until(lambda: listed() == ["demo"], listed)
    answer = fleet.chat(model="other")
    assert answer.status_code == 503 and "1 down" in answer.text
    again = RawWorker(unasked, port=other.port)
    again.models = other.models
    wait_until(lambda: listed() == ["demo", "other"], listed)
    again.stop()
    assert not asked([other, again])
