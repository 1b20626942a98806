"""GET /health_generate has the engine make a token, or a vector or logits of one, and answers by how that ends."""
import threading

import pytest
import requests

from conftest import ENDLESS
from leaving import leave
from pooling_client import SLOW, post

KINDS = [(), ("--is-embedding",), ("--mock-labels", "2")]


def probe(server):
    return requests.get(server.url + "/health_generate", timeout=120)


@pytest.mark.parametrize("flags", KINDS)
def test_an_engine_that_fails_its_probe_is_unhealthy(start, flags):
    server = start("--engine", "mock", *flags, "--mock-fault", "error:1")
    for _ in range(2):
        answer = probe(server)
        assert answer.status_code == 503 and "mock" in answer.json()["error"]["message"]
    assert requests.get(server.url + "/health", timeout=60).status_code == 200  # it lives, and may do so again
    server.settle()


@pytest.mark.parametrize("flags", KINDS)
def test_an_engine_that_dies_of_its_probe_is_unhealthy(start, flags):
    server = start("--engine", "mock", *flags, "--mock-fault", "die:1")
    for _ in range(2):
        assert probe(server).status_code == 503
    assert requests.get(server.url + "/health", timeout=60).status_code == 503


def probe_beside(server):
    """Starts a probe in a thread of its own; the list has its status once the thread has ended."""
    answers = []

    def ask():
        try:
            answers.append(probe(server).status_code)
        except requests.ConnectionError:
            answers.append(0)

    thread = threading.Thread(target=ask)
    thread.start()
    server.wait_for("portico_requests_running", 1)
    return thread, answers


@pytest.mark.parametrize("flags", KINDS)
def test_a_probe_that_is_aborted_shows_that_the_engine_lives(serve, flags):
    server = serve(*flags, *SLOW)
    thread, answers = probe_beside(server)
    assert post(server, "/abort_request", {"abort_all": True}).status_code == 200
    thread.join(60)
    assert answers == [200]
    server.settle()


@pytest.mark.parametrize("flags", KINDS)
def test_a_probe_that_a_drain_aborts_is_not_healthy(start, flags):
    server = start("--engine", "mock", *flags, *SLOW, "--drain-timeout", "0.2")
    thread, answers = probe_beside(server)
    server.process.terminate()
    thread.join(60)
    assert answers[0] in (503, 0)  # a slow machine does not answer before the end
    assert server.process.wait(60) == 0


def test_an_engine_that_is_busy_is_healthy_though_its_queue_is_full(start):
    server = start("--engine", "mock", "--mock-itl-ms", "100", "--max-running-requests", "1",
                   "--max-queued-requests", "1")
    body = {"messages": [{"role": "user", "content": "Count"}], "max_tokens": ENDLESS, "ignore_eos": True}
    sockets = []
    for name in ("running", "waiting"):
        sockets.append(leave(server, "/v1/chat/completions", body))
        server.wait_for("portico_requests_" + name, 1)
    assert server.chat("Count").status_code == 429
    assert probe(server).status_code == 200
    for s in sockets:
        s.close()
    server.settle()


def test_an_engine_that_works_for_others_is_not_sent_a_probe(start):
    """Each probe took a place in the batch, as SGLang's do not."""
    server = start("--engine", "mock", "--mock-itl-ms", "20")
    body = {"messages": [{"role": "user", "content": "Count"}], "max_tokens": ENDLESS, "ignore_eos": True}
    busy = leave(server, "/v1/chat/completions", body)
    server.wait_for("portico_requests_running", 1)
    for _ in range(5):
        assert probe(server).status_code == 200
    assert server.metric("portico_request_success_total") < 5  # 0, but where the machine stops for a second
    busy.close()
    server.settle()
    before = server.metric("portico_request_success_total")
    assert probe(server).status_code == 200
    assert server.metric("portico_request_success_total") == before + 1
