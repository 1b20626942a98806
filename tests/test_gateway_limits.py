"""How many requests the gateway lets in and where they go when a worker is slow: rates, limits that change, hedging; and what
browsers, histograms and log files get."""
import contextlib
import threading
import time

import pytest
import requests
from conftest import wait_until
from gateway_fleet import Process, RawWorker, front


def ok(connection, head, body):
    connection.sendall(b"HTTP/1.1 200 OK\r\nVary: accept\r\nContent-Length: 2\r\n\r\nok")


@pytest.fixture
def route():
    """route([answer, …], *flags) -> (workers, gateway)"""
    with contextlib.ExitStack() as made:
        yield lambda answers, *flags: made.enter_context(front(answers, *flags))


def state(gateway):
    return requests.get(gateway.url + "/workers", timeout=60).json()["workers"]


def post(gateway, **keywords):
    return requests.post(gateway.url + "/v1/completions", json={}, timeout=60, **keywords)


class Slow:
    """Answers after a hedge has gone out, never, or when it is told to."""

    def __init__(self):
        self.go, self.left = threading.Event(), threading.Event()

    def __call__(self, connection, head, body):
        connection.settimeout(0.1)
        while not self.go.is_set():
            try:
                if connection.recv(1) == b"":
                    self.left.set()
                    return False
            except TimeoutError:
                continue
            except OSError:
                self.left.set()
                return False
        return ok(connection, head, body)


def test_a_slow_request_goes_to_a_second_worker_and_the_first_answer_counts(route):
    slow = Slow()
    workers, gateway = route([slow, ok], "--policy", "round_robin", "--hedge-after-ms", "50")
    for _ in range(2):
        assert post(gateway).text == "ok"
    assert slow.left.wait(60), "the slow worker's connection is closed"
    assert len(workers[1].requests) == 2
    # On a slow machine the quick worker's request is hedged too, and is over before the slow one has read the hedge.
    assert 1 <= len(workers[0].requests) <= gateway.metric("portico_gateway_hedges_total") <= 2
    wait_until(lambda: [worker["load"] for worker in state(gateway)] == [0, 0], gateway.output)


def test_the_slow_worker_may_win_and_a_hedge_that_fails_harms_nobody(route):
    slow = Slow()

    def fail(connection, head, body):
        if len(workers[0].requests):
            connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            slow.go.set()
        else:
            ok(connection, head, body)

    workers, gateway = route([slow, fail], "--policy", "round_robin", "--hedge-after-ms", "50")
    while not workers[0].requests:
        assert post(gateway).text == "ok"
    assert gateway.metric("portico_gateway_hedges_total") >= 1  # more where the slow worker reads the first hedged request late
    wait_until(lambda: [worker["load"] for worker in state(gateway)] == [0, 0], gateway.output)


def test_a_rate_lets_so_many_requests_begin_in_a_second(route):
    _, gateway = route([ok], "--rate-limit-tokens-per-second", "4", "--queue-size", "2")
    begun = time.time()
    codes = []
    threads = [threading.Thread(target=lambda: codes.append(post(gateway).status_code)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = codes.count(200)
    assert codes.count(429) == 8 - passed
    assert 6 <= passed <= 6 + 4 * (time.time() - begun)


def test_requests_wait_for_a_worker_that_is_at_its_limit(route):
    """They got 503 within milliseconds, and the gateway said that it was not ready."""
    hold = threading.Event()
    workers, gateway = route([lambda connection, head, body: (hold.wait(60), ok(connection, head, body))[1]],
                             "--worker-max-requests", "1", "--queue-size", "2")
    codes = []
    threads = [threading.Thread(target=lambda: codes.append(post(gateway).status_code)) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        wait_until(lambda: gateway.metric("portico_gateway_queued") == 2, gateway.output)
        refused = post(gateway)
        assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
        assert refused.json()["error"]["code"] == "queue_full"
        assert gateway.answers("/readiness")
        wait_until(lambda: len(workers[0].requests) == 1, gateway.output)
    finally:
        hold.set()
    for thread in threads:
        thread.join()
    assert codes == [200] * 3
    wait_until(lambda: gateway.metric("portico_gateway_queued") == gateway.metric("portico_gateway_worker_requests") == 0, gateway.output)


def test_a_request_waits_for_a_place_no_longer_than_the_queue_allows(route):
    hold = threading.Event()
    workers, gateway = route([lambda connection, head, body: (hold.wait(60), ok(connection, head, body))[1]],
                             "--worker-max-requests", "1", "--queue-timeout-secs", "0.2")
    first = threading.Thread(target=lambda: post(gateway))
    try:
        first.start()
        wait_until(lambda: workers[0].requests, gateway.output)
        late = post(gateway)
        assert late.status_code == 429 and late.json()["error"]["code"] == "queue_timeout"
    finally:
        hold.set()
        first.join()


def test_a_reload_changes_limits(tmp_path):
    hold = threading.Event()
    worker = RawWorker(lambda connection, head, body: (hold.wait(60), ok(connection, head, body))[1])
    file = tmp_path / "fleet.yaml"
    text = f"workers: ['{worker.url}']\nqueue-size: 10\nmax-concurrent-requests: "
    file.write_text(text + "1\n")
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--config", file)
    codes = []
    threads = [threading.Thread(target=lambda: codes.append(post(gateway).status_code)) for _ in range(3)]
    try:
        gateway.wait_ready("/readiness")
        for thread in threads:
            thread.start()
        wait_until(lambda: gateway.metric("portico_gateway_queued") == 2, "nobody waits")
        file.write_text(text + "3\n")
        gateway.process.send_signal(1)
        wait_until(lambda: len(worker.requests) == 3, gateway.output)
        wait_until(lambda: "limits changed" in gateway.output(), gateway.output)
        hold.set()
        for thread in threads:
            thread.join()
        assert codes == [200] * 3
        assert gateway.end() == 0
    finally:
        hold.set()
        gateway.kill()
        worker.stop()


def test_pages_of_allowed_origins_may_read_answers(route):
    _, gateway = route([ok], "--cors-allowed-origins", "https://a.example", "https://b.example", "--api-key", "k")
    ask = {"Origin": "https://b.example", "Access-Control-Request-Method": "POST",
           "Access-Control-Request-Headers": "authorization, content-type"}
    said = requests.options(gateway.url + "/v1/completions", headers=ask, timeout=60)
    assert said.status_code == 204 and said.headers["access-control-allow-origin"] == "https://b.example"
    assert said.headers["access-control-allow-headers"] == "authorization, content-type"
    key = {"Authorization": "Bearer k"}
    said = post(gateway, headers={"Origin": "https://a.example", **key})
    assert said.text == "ok" and said.headers["access-control-allow-origin"] == "https://a.example"
    assert said.headers["vary"] == "origin"
    assert "access-control-allow-origin" not in post(gateway, headers={"Origin": "https://c.example", **key}).headers
    assert "access-control-allow-origin" not in post(gateway, headers=key).headers


def test_histograms_have_the_buckets_that_are_named_and_the_log_goes_to_a_folder(route, tmp_path):
    _, gateway = route([ok], "--prometheus-duration-buckets", "0.5", "2.5", "--log-dir", tmp_path / "logs")
    post(gateway)
    lines = requests.get(gateway.url + "/metrics", timeout=60).text.splitlines()
    assert [line.split('le="')[1].split('"')[0] for line in lines
            if line.startswith("portico_gateway_request_seconds_bucket")] == ["0.5", "2.5", "+Inf"]
    assert "is healthy" in (tmp_path / "logs/portico.log").read_text()


def test_a_worker_that_breaks_the_protocol_is_told_once_and_counted(route):
    def garble(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc")
        return False

    _, gateway = route([garble], "--disable-retries")
    for _ in range(3):
        assert post(gateway).status_code in (502, 503)
    assert gateway.output().count("breaks the protocol") == 1
    assert gateway.metric("portico_gateway_attempt_failures_total") >= 1


def test_failures_and_retries_are_counted_for_each_worker(route):
    """Which of many workers made requests slow could not be told."""
    def fail(connection, head, body):
        connection.sendall(b"HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nno")

    def leave(connection, head, body):
        return False

    workers, gateway = route([fail, ok], "--policy", "round_robin", "--cb-failure-threshold", "100")
    wait_until(lambda: post(gateway).status_code == 200 and len(workers[0].requests) >= 2, gateway.output)
    metrics = requests.get(gateway.url + "/metrics", timeout=60).text.splitlines()

    def count(name, worker, kind=""):
        label = f'{{worker="{worker}"' + (f',kind="{kind}"}}' if kind else "}")
        return next(float(line.split()[-1]) for line in metrics if line.startswith(f"portico_gateway_worker_{name}_total{label}"))

    failing = next(one["id"] for one in state(gateway) if one["url"] == workers[0].url)
    good = next(one["id"] for one in state(gateway) if one["url"] == workers[1].url)
    assert count("failures", failing, "status") == count("retries", failing) == len(workers[0].requests)
    assert count("failures", failing, "lost") == count("retries", good) == count("failures", good, "status") == 0
    _, gateway = route([leave], "--retry-max-retries", "2")
    assert post(gateway).status_code == 503
    said = requests.get(gateway.url + "/metrics", timeout=60).text
    assert 'portico_gateway_worker_failures_total{worker="w1",kind="lost"}' in said
    assert gateway.metric("portico_gateway_worker_failures_total") >= 1
    assert gateway.metric("portico_gateway_worker_retries_total") >= 1


def test_control_keys_guard_workers_and_controls_and_are_audited(route):
    _, gateway = route([ok])
    assert gateway.end() == 0
    gateway.flags += ["--api-key", "client", "--control-plane-audit-enabled", "--control-plane-api-keys",
                      "ops:Operations:admin:k1", "eye:Reader:user:k2"]
    gateway.start()
    gateway.wait_ready("/readiness")

    def ask(method, path, key):
        return requests.request(method, gateway.url + path, headers={"Authorization": "Bearer " + key}, timeout=60,
                                json={"url": "http://127.0.0.1:1"}).status_code

    assert ask("POST", "/v1/completions", "client") == 200
    assert ask("POST", "/v1/completions", "k1") == 401
    assert [ask("GET", "/workers", key) for key in ("client", "k1", "k2")] == [401, 200, 200]
    assert [ask("POST", "/workers", key) for key in ("client", "k2", "k1")] == [401, 403, 202]
    assert ask("POST", "/flush_cache", "k2") == 403
    # Clients may ask for loads, and only operators see where the workers are.
    named = {}
    for key in ("client", "k1", "k2"):
        answer = requests.get(gateway.url + "/get_loads", headers={"Authorization": "Bearer " + key}, timeout=60)
        named[key] = [worker["worker"].split(":")[0] for worker in answer.json()["workers"]]
    assert set(named["client"]) == {"w1", "w2"} and set(named["k1"]) == set(named["k2"]) == {"http"}
    assert [ask(method, "/get_loads", "nobody") for method in ("GET", "POST")] == [401, 401]
    assert "control: POST /workers of ops from 127.0.0.1" in gateway.output() and "k1" not in gateway.output().split(
        "listening")[-1]


def fail(connection, head, body):
    connection.sendall(b"HTTP/1.1 500 Failed\r\nContent-Length: 2\r\n\r\nno")


def test_a_failure_after_which_nothing_is_tried_costs_no_retry(route):
    """Each took one: after a hundred failures of a model with a single worker, requests for others were not retried."""
    workers, gateway = route([fail, ok], "--policy", "round_robin", "--disable-circuit-breaker")
    other = next(worker["id"] for worker in state(gateway) if worker["url"] == workers[1].url)

    def drain(draining):
        assert requests.put(f"{gateway.url}/workers/{other}", json={"draining": draining}, timeout=60).status_code < 300

    drain(True)
    with requests.Session() as session:
        assert {session.post(gateway.url + "/v1/completions", json={}, timeout=60).status_code for _ in range(200)} == {500}
    assert len(workers[0].requests) == 200
    drain(False)
    assert [post(gateway).status_code for _ in range(20)] == [200] * 20
    assert gateway.metric("portico_gateway_retries_total") >= 9


def test_retries_of_answers_have_a_budget(route):
    """One for five requests, and a hundred: a worker that fails all must not double the load of the other."""
    workers, gateway = route([fail, ok], "--policy", "round_robin", "--disable-circuit-breaker", "--retry-max-retries", "2")
    with requests.Session() as session:
        statuses = [session.post(gateway.url + "/v1/completions", json={}, timeout=60).status_code for _ in range(600)]
    first_failed = len(workers[0].requests)
    assert first_failed >= 200 and len(workers[1].requests) == statuses.count(200)
    assert set(statuses[:100]) == {200}, "the hundred are enough for them"
    retries = gateway.metric("portico_gateway_retries_total")
    assert first_failed - retries == statuses.count(500) > 0
    assert 100 <= retries <= 100 + 600 / 5
