"""Token workers: a server whose model is computed by other Portico servers, over sglang.grpc.scheduler."""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading

import pytest
import requests

import conftest
from conftest import Server, wait_until

DEMO = ["--engine", "llama", "--threads", "1"]


def worker_urls(*servers):
    return ",".join(f"grpc://127.0.0.1:{server.port}" for server in servers)


def front_of(start, *workers, flags=()):
    front = start("--engine", "grpc", "--worker-urls", worker_urls(*workers), *flags, wait=False)
    front.wait_ready()
    return front


@pytest.fixture(scope="module")
def demo_workers():
    servers = [Server(*DEMO), Server(*DEMO)]
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def front(demo_workers):
    server = Server("--engine", "grpc", "--worker-urls", worker_urls(*demo_workers))
    yield server
    server.stop()


# The second of two equal prompts is read from the worker's cache but for its last token: the last bits of bfloat16 differ.
ROUNDING = 0.02


def served(server):
    return server.metric("portico_generation_tokens_total")


def answer(server, **fields):
    reply = server.chat("Tell a story.", temperature=0, max_tokens=24, **fields)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_texts_are_those_of_the_worker(front, demo_workers):
    direct = answer(demo_workers[0])
    routed = answer(front)
    assert routed["choices"][0]["message"] == direct["choices"][0]["message"]
    assert routed["choices"][0]["finish_reason"] == direct["choices"][0]["finish_reason"]
    assert routed["usage"]["completion_tokens"] == direct["usage"]["completion_tokens"]


def test_log_probabilities_are_those_of_the_worker(front, demo_workers):
    direct = answer(demo_workers[0], logprobs=True, top_logprobs=2)
    routed = answer(front, logprobs=True, top_logprobs=2)
    pairs = zip(routed["choices"][0]["logprobs"]["content"], direct["choices"][0]["logprobs"]["content"], strict=True)
    for mine, theirs in pairs:
        assert mine["token"] == theirs["token"]
        assert mine["logprob"] == pytest.approx(theirs["logprob"], abs=ROUNDING)


def test_a_stream_comes_in_pieces_and_ends_once(front):
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 16, "temperature": 0, "stream": True}
    with requests.post(front.url + "/v1/chat/completions", json=body, stream=True, timeout=60) as reply:
        lines = [line[6:] for line in reply.iter_lines() if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    finishes = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
    assert finishes.count(None) == len(finishes) - 1 and finishes[-1] in ("stop", "length")
    assert len(chunks) > 3


@pytest.mark.parametrize("fields, pattern", [
    ({"regex": "[0-9]{3}"}, "[0-9]{3}"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["red", "green"]}}}},
     '"(red|green)"'),
    ({"ebnf": 'root ::= "a" [bc]'}, "a[bc]"),
    ({"guided_choice": ["a.b", "(c|d)\\", "\u00e9 \n"]}, r"a\.b|\(c\|d\)\\|\u00e9 \n"),
    ({"structural_tag": {"type": "structural_tag", "format": {"type": "const_string", "value": "yes"}}}, "yes"),
])
def test_workers_hold_answers_to_what_they_must_look_like(front, fields, pattern):
    for _ in range(3):
        reply = front.chat("Tell a story.", temperature=1, max_tokens=200, n=2, **fields)
        assert reply.status_code == 200, reply.text
        for choice in reply.json()["choices"]:
            assert re.fullmatch(pattern, choice["message"]["content"]), choice


def test_a_constraint_that_a_worker_refuses_is_the_clients_400(front):
    reply = front.chat("Hi", max_tokens=4, regex="[a")
    assert reply.status_code == 400 and reply.json()["error"]["message"], reply.text


def test_several_choices_and_stop_strings(front, demo_workers):
    direct = answer(demo_workers[0])["choices"][0]["message"]["content"]
    word = direct.split()[3]
    stopped = answer(front, stop=[word], n=2)
    assert len(stopped["choices"]) == 2
    for choice in stopped["choices"]:
        assert choice["finish_reason"] == "stop"
        assert choice["message"]["content"] == direct[:direct.index(word)]


def test_what_the_workers_cannot_do_is_refused_by_name(front):
    reply = front.chat("Hi", seed=3, max_tokens=4)
    assert reply.status_code == 400
    assert "seed" in reply.json()["error"]["message"]


def test_a_client_that_leaves_stops_the_worker(start):
    worker = start("--engine", "mock", "--mock-itl-ms", "100")
    front = front_of(start, worker)
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20000, "stream": True}
    reply = requests.post(front.url + "/v1/chat/completions", json=body, stream=True, timeout=60)
    lines = reply.iter_lines()  # kept: requests closes the connection of an iterator that is dropped
    next(lines)
    worker.wait_for("portico_requests_running", 1)
    reply.close()
    worker.wait_for("portico_requests_running", 0)
    front.settle()


def test_a_dead_worker_costs_no_answer_and_is_used_again(start):
    first = start("--engine", "mock", "--mock-ttft-ms", "20")
    second = Server("--engine", "mock", "--mock-ttft-ms", "20")
    front = front_of(start, first, second, flags=["--policy", "round_robin"])
    statuses = []
    stop = threading.Event()

    def load():
        while not stop.is_set():
            statuses.append(front.chat("Hello there", max_tokens=1).status_code)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: served(second) > 0, "the second worker gets nothing")
        os.kill(second.process.pid, signal.SIGKILL)
        second.process.wait()
        again = start("--engine", "mock", port=second.port)
        wait_until(lambda: served(again) > 0, "the worker that has come back gets nothing")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}


def test_without_workers_the_answer_is_503_and_names_no_address(start):
    worker = Server("--engine", "mock")
    front = front_of(start, worker)
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.wait()
    wait_until(lambda: front.chat("Hi", max_tokens=2).status_code == 503, "the front still answers")
    reply = front.chat("Hi", max_tokens=2)
    assert reply.status_code == 503
    assert str(worker.port) not in reply.text and "127.0.0.1" not in reply.text


def test_route_takes_token_workers(demo_workers):
    port = conftest.free_port()
    urls = [f"grpc://127.0.0.1:{server.port}" for server in demo_workers]
    process = subprocess.Popen([str(conftest.BINARY), "route", "--port", str(port), "--worker-urls", *urls,
                                "--policy", "round_robin", "--prometheus-port", "0"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def ready():
            with contextlib.suppress(requests.ConnectionError):
                return requests.get(f"http://127.0.0.1:{port}/readiness", timeout=60).status_code == 200
        wait_until(ready, "the gateway is not ready")
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
        for _ in range(4):
            assert requests.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body, timeout=60).ok
    finally:
        process.terminate()
        assert process.wait(60) == 0
