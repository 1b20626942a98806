"""`portico route` before real workers: what clients send and get, what they see when workers die, and how it ends."""
import json
import signal
import socket
import subprocess
import threading
import time

import pytest
import requests
from conftest import BINARY, free_port, wait_until
from gateway_fleet import Fleet, Process, RawWorker


@pytest.fixture(scope="module")
def pair():
    fleet = Fleet(2, "--policy", "round_robin", "--access-log", "--show-workers")
    fleet.wait_healthy(2)
    yield fleet
    fleet.stop()


# Probes of healthy workers: the death of an idle one is seen by nothing else.
OFTEN = ("--health-check-interval-secs", "2", "--health-check-timeout-secs", "2")


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


def test_whole_answers_take_turns_among_the_workers(pair):
    workers = {pair.chat().headers["x-portico-worker"] for _ in range(4)}
    assert len(workers) == 2


def test_a_stream_arrives_as_the_worker_sends_it(pair):
    said = events(pair.chat(stream=True))
    assert said[-1] == "[DONE]"
    assert all(json.loads(event)["object"] == "chat.completion.chunk" for event in said[:-1])
    assert len(said) > 4


def test_errors_of_a_worker_pass_as_they_are(pair):
    answer = pair.chat(temperature="hot")
    assert answer.status_code == 400
    assert "temperature" in answer.json()["error"]["message"]


def test_models_are_the_union_and_facts_come_from_a_worker(pair):
    models = requests.get(pair.url + "/v1/models", timeout=60).json()
    assert [model["id"] for model in models["data"]] == ["demo"]
    assert requests.get(pair.url + "/get_model_info", timeout=60).json()["served_model_name"] == "demo"


def test_controls_go_to_all_workers(pair):
    answer = requests.post(pair.url + "/flush_cache", timeout=60).json()
    assert answer["success"] and len(answer["workers"]) == 2


def test_unknown_paths_below_v1_are_the_workers_to_judge_and_others_are_not_found(pair):
    assert requests.get(pair.url + "/v1/nothing", timeout=60).status_code == 404
    assert requests.get(pair.url + "/nothing", timeout=60).json()["error"]["message"].startswith("Unknown path")


def test_workers_can_be_added_drained_and_removed(pair):
    extra = Process("serve", "--engine", "mock")
    extra.wait_ready()
    try:
        added = requests.post(pair.url + "/workers", json={"url": extra.url}, timeout=60)
        assert added.status_code == 202
        worker = added.json()["id"]
        assert requests.post(pair.url + "/workers", json={"url": extra.url}, timeout=60).status_code == 409
        pair.wait_healthy(3)
        drained = requests.put(f"{pair.url}/workers/{worker}", json={"draining": True}, timeout=60)
        assert drained.json()["draining"] is True
        assert worker not in {pair.chat().headers["x-portico-worker"] for _ in range(6)}
        assert requests.delete(f"{pair.url}/workers/{worker}", timeout=60).status_code == 200
        assert requests.get(f"{pair.url}/workers/{worker}", timeout=60).status_code == 404
        assert requests.post(f"{pair.url}/add_worker?url={extra.url}", timeout=60).status_code == 200
        assert extra.url in requests.get(pair.url + "/list_workers", timeout=60).json()["urls"]
        assert requests.post(f"{pair.url}/remove_worker?url={extra.url}", timeout=60).status_code == 200
    finally:
        extra.kill()
    for wrong in ({}, {"url": 1}, {"url": "ftp://a:1"}, *({"url": "http://a:1", **field} for field in (
            {"nothing": 1}, {"max_requests": "x"}, {"max_requests": -1}, {"max_requests": 1.5}, {"api_key": 5},
            {"api_key": "k\r\nx: y"}, {"model_id": 5}, {"worker_type": 5}, {"bootstrap_port": 2**32 + 80}))):
        assert requests.post(pair.url + "/workers", json=wrong, timeout=60).status_code == 400


def test_metrics_tell_of_each_worker(pair):
    pair.chat()
    said = requests.get(pair.url + "/metrics", timeout=60).text
    assert 'portico_gateway_worker_healthy{worker="w1"} 1' in said
    assert pair.gateway.metric("portico_gateway_worker_requests_total") >= 1
    assert pair.gateway.metric("portico_gateway_worker_requests") == 0
    assert "127.0.0.1" not in said


def test_the_access_log_says_where_a_request_went_and_why(pair):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    requests.post(pair.url + "/v1/completions", json={"prompt": "x", "max_tokens": 1}, timeout=60,
                  headers={"traceparent": trace, "x-request-id": "mine"})
    line = next(line for line in pair.gateway.output().splitlines() if '"mine"' in line)
    entry = json.loads(line[line.index("{"):])
    assert entry["reason"] == "turn" and entry["worker"].startswith("w") and entry["traceparent"] == trace


def test_a_request_passes_byte_by_byte(raw):
    def answer(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nServer: x\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok")

    worker, gateway = raw(answer)
    body = b'{"model":"m",  "n":1.0e0,"unknown":{"b":[1,2.50]},"messages":[]}'
    said = requests.post(gateway.url + "/v1/chat/completions?a=1&b=%20", data=body, timeout=60,
                         headers={"Content-Type": "application/json", "X-Own": "1", "Connection": "keep-alive, x-own"})
    assert said.text == "ok" and said.headers["x-kept"] == "1" and said.headers["server"] == "portico"
    head, passed = worker.requests[-1]
    assert passed == body
    assert head.startswith(b"POST /v1/chat/completions?a=1&b=%20 HTTP/1.1\r\n")
    assert b"x-own" not in head.lower()


def test_a_multipart_body_passes_as_it_is(raw):
    worker, gateway = raw(lambda connection, head, body: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    requests.post(gateway.url + "/v1/audio/transcriptions", files={"file": b"\0\1\2" * 5000}, data={"model": "m"},
                  timeout=60)
    head, body = worker.requests[-1]
    assert b"multipart/form-data; boundary=" in head and body.count(b"\0\1\2") == 5000


@pytest.mark.parametrize("answer", [
    b"garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
    b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 100_000,
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
])
def test_an_answer_that_breaks_the_protocol_does_not_reach_the_client(raw, answer):
    def say(connection, head, body):
        connection.sendall(answer)
        return False

    worker, gateway = raw(say, "--retry-max-retries", "1")
    said = requests.post(gateway.url + "/v1/completions", json={}, timeout=60)
    assert said.status_code in (502, 503)
    assert str(worker.port) not in said.text
    assert gateway.answers()


def test_what_follows_an_answer_is_no_others(raw):
    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmineHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    _, gateway = raw(say)
    for _ in range(5):
        assert requests.post(gateway.url + "/v1/completions", json={}, timeout=60).text == "mine"


@pytest.mark.parametrize("request_bytes", [
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n 2\r\nContent-Length : 2\r\n\r\n{}",
])
def test_a_request_that_could_be_read_in_two_ways_is_refused(raw, request_bytes):
    worker, gateway = raw(lambda connection, head, body: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(request_bytes)
        client.settimeout(60)
        assert client.recv(100).startswith(b"HTTP/1.1 400")
    assert not worker.requests


def test_a_cut_stream_ends_with_an_error_and_done(raw):
    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"9\r\ndata: 1\n\n\r\n6\r\ndata: \r\n")
        return False

    worker, gateway = raw(say)
    said = requests.post(gateway.url + "/v1/completions", json={"stream": True}, stream=True, timeout=60)
    got = events(said)
    assert got[0] == "1" and got[-1] == "[DONE]" and len(got) == 3
    assert json.loads(got[1])["error"]["code"] == "worker_lost"
    assert len(worker.requests) == 1, "a stream that has begun is not sent again"


def test_a_slow_client_holds_its_worker_up(raw):
    sent = [0]

    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        event = b"data: " + b"x" * 1000 + b"\n\n"
        for _ in range(64_000):
            connection.sendall(event)
            sent[0] += len(event)
        return False

    _, gateway = raw(say)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", gateway.port))
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        client.recv(100)
        last = [-1]

        def stands():
            before, last[0] = last[0], sent[0]
            time.sleep(0.5)
            return before == sent[0] > 0

        wait_until(stands, "the worker is never held up")
        assert sent[0] < 32 << 20
        client.settimeout(60)
        while client.recv(1 << 20):
            pass
    wait_until(lambda: sent[0] >= 64_000 * 1000, lambda: f"{sent[0]} bytes")


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

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for worker in fleet.workers[:2]:
            time.sleep(0.5)
            worker.kill()
        time.sleep(1)
        fleet.workers[0].start()
        fleet.workers[0].wait_ready()
        recovered = time.time()
        wait_until(lambda: fleet.healthy() == 2, "the restarted worker is not used")
        assert time.time() - recovered < 2
        time.sleep(0.5)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong and done[0] > 50
    assert fleet.loads() == [0, 0, 0]


def test_streams_of_a_killed_worker_end_with_an_error_and_done(fleets):
    fleet = fleets(2, "--policy", "round_robin", workers=("--mock-itl-ms", "20"))
    fleet.wait_healthy(2)
    answers = [fleet.chat(stream=True, max_tokens=100) for _ in range(4)]
    lines = [answer.iter_lines(decode_unicode=True) for answer in answers]
    for line in lines:
        next(line)
    fleet.workers[0].kill()
    cut = 0
    for line in lines:
        said = [text[6:] for text in line if text.startswith("data: ")]
        assert said[-1] == "[DONE]"
        cut += '"worker_lost"' in said[-2]
    assert cut == 2
    assert fleet.loads() == [0, 0]


def test_a_stopped_worker_loses_its_whole_answers_to_others(fleets):
    fleet = fleets(2, "--policy", "round_robin", "--worker-stall-timeout-secs", "2", workers=("--mock-ttft-ms", "500"))
    fleet.wait_healthy(2)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(fleet.chat().status_code)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    fleet.workers[0].process.send_signal(signal.SIGSTOP)
    try:
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


def test_the_limit_of_requests_is_exact_and_the_queue_bounded(fleets):
    fleet = fleets(1, "--max-concurrent-requests", "2", "--queue-size", "1", workers=("--mock-ttft-ms", "800"))
    fleet.wait_healthy(1)
    codes = []
    threads = [threading.Thread(target=lambda: codes.append(fleet.chat())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in codes) == [200, 200, 200, 429, 429]
    assert all("retry-after" in answer.headers for answer in codes if answer.status_code == 429)


def test_a_drain_lets_requests_finish(fleets):
    fleet = fleets(1, workers=("--mock-itl-ms", "50"))
    fleet.wait_healthy(1)
    answer = fleet.chat(stream=True, max_tokens=20)
    fleet.gateway.process.terminate()
    assert events(answer)[-1] == "[DONE]"
    assert fleet.gateway.process.wait(60) == 0


def test_a_reload_takes_workers_in_and_out_and_refuses_a_wrong_file(tmp_path):
    workers = [Process("serve", "--engine", "mock") for _ in range(2)]
    file = tmp_path / "fleet.yaml"
    file.write_text(f"policy: round_robin\nworkers:\n  - url: {workers[0].url}\n")
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--config", file)

    def urls():
        return requests.get(gateway.url + "/list_workers", timeout=60).json()["urls"]

    try:
        for worker in workers:
            worker.wait_ready()
        gateway.wait_ready("/readiness")
        file.write_text(f"policy: random\nworkers:\n  - {workers[1].url}\n")
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: urls() == [workers[1].url], lambda: str(urls()))
        file.write_text("nonsense: 1\n")
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "nonsense" in gateway.output(), "the fault is not told")
        assert urls() == [workers[1].url]
        assert gateway.end() == 0
    finally:
        for process in (*workers, gateway):
            process.kill()


def test_keys_guard_the_gateway_and_go_to_workers(raw):
    worker, gateway = raw(lambda connection, head, body: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "--api-key", "secret")
    assert requests.post(gateway.url + "/v1/completions", json={}, timeout=60).status_code == 401
    assert requests.get(gateway.url + "/workers", timeout=60).status_code == 401
    assert not worker.requests
    requests.post(gateway.url + "/v1/completions", json={}, timeout=60, headers={"Authorization": "Bearer secret"})
    assert b"authorization: Bearer secret" in worker.requests[-1][0]


def test_workers_report_their_load_and_their_metrics_are_merged(fleets):
    fleet = fleets(2, "--load-monitor-interval", "0.2", workers=("--max-total-tokens", "4096"))
    fleet.wait_healthy(2)
    fleet.chat()
    wait_until(lambda: all(worker["reported_load"] for worker in fleet.state()["workers"]), fleet.state)
    for worker in fleet.state()["workers"]:
        assert worker["reported_load"]["running_requests"] == 0
        assert worker["reported_load"]["age_secs"] < 60
    merged = requests.get(fleet.url + "/engine_metrics", timeout=60)
    assert merged.headers["content-type"].startswith("text/plain")
    lines = merged.text.splitlines()
    assert len([line for line in lines if line.startswith("# TYPE")]) == len({line for line in lines if line.startswith("# TYPE")})
    for worker in ("w1", "w2"):
        assert any(f'worker="{worker}"' in line for line in lines)
    assert "127.0.0.1" not in merged.text


def test_a_worker_that_has_no_report_is_left_alone(fleets):
    fleet = fleets(1, "--disable-load-monitoring")
    fleet.wait_healthy(1)
    assert fleet.state()["workers"][0]["reported_load"] is None


def test_top_shows_the_workers_of_a_gateway(pair):
    def top(*words):
        return subprocess.run([str(BINARY), "top", *words], capture_output=True, text=True, timeout=60, check=False)

    pair.chat()
    shown = top(pair.url, "--count", "1")
    assert shown.returncode == 0, shown.stderr
    head, _, names, *rows = shown.stdout.splitlines()
    assert head.startswith(f"{pair.url}  2 of 2 workers healthy") and names.split()[:2] == ["WORKER", "STATE"]
    assert [row.split()[:3] for row in rows] == [["w1", "healthy", "closed"], ["w2", "healthy", "closed"]]
    assert len(top(pair.url, "--count", "2", "--interval", "0.1").stdout.splitlines()) == 10
    gone = top(f"127.0.0.1:{free_port()}", "--count", "1")
    assert gone.returncode == 1 and "127.0.0.1" in gone.stderr
    other = top(pair.workers[0].url, "--count", "1")
    assert other.returncode == 1 and "404" in other.stderr
    assert top("ftp://a:1").returncode == 2


def test_a_last_event_without_an_end_fills_the_clients_backlog_and_arrives(raw):
    data = b"data: " + b"x" * 1_000_000  # more than the gateway holds of a client before it pauses the worker's call

    def answer(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s"
                           % (len(data), data))

    _, gateway = raw(answer)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as client:
        client.sendall(b"POST /generate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        received = b""
        while piece := client.recv(1 << 16):
            received += piece
    assert received.count(b"x") >= 1_000_000
    assert gateway.answers()
