"""Requests for vectors, classes and relevance that meet disconnects, full queues, pauses, drains and dying engines."""
import signal
import threading

import grpc
import pytest
import requests

from grpc_client import Client
from pooling_client import SLOW, leave, post, refused


def test_a_rid_names_the_request_while_it_runs(serve):
    server = serve("--is-embedding", *SLOW)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(
        post(server, "/v1/embeddings", {"input": ["a", "b"], "rid": "mine"})))
    thread.start()
    server.wait_for("portico_requests_running", 1)
    assert refused(post(server, "/v1/embeddings", {"input": "a", "rid": "mine"}))["param"] == "rid"
    assert post(server, "/abort_request", {"rid": "mine"}).status_code == 200
    thread.join(60)
    refused(answers[0], 409)
    server.settle()


@pytest.mark.parametrize("flags, path, body", [
    (("--is-embedding",), "/v1/embeddings", {"input": ["a few words"] * 2000}),
    (("--is-embedding",), "/encode", {"text": "a"}),
    (("--mock-labels", "1"), "/v1/rerank", {"query": "q", "documents": ["a"] * 100}),
    (("--mock-labels", "1"), "/v1/score", {"query": "q", "items": ["a"] * 100}),
    (("--mock-labels", "1"), "/classify", {"text": ["a"] * 100}),
])
def test_a_client_that_leaves_takes_all_its_texts_along(serve, flags, path, body):
    server = serve(*flags, *SLOW)
    server.settle()
    gone = server.metric("portico_requests_aborted_total")
    sockets = [leave(server, path, body) for _ in range(5)]
    server.wait_for("portico_requests_running", 5)
    for s in sockets:
        s.close()
    server.settle()
    texts = max(len(value) if isinstance(value, list) else 1 for value in body.values())
    server.wait_for("portico_requests_aborted_total", gone + 5 * texts)


def test_hundreds_of_disconnects_leave_nothing_running(serve):
    server = serve("--is-embedding")
    for i in range(300):
        s = leave(server, "/v1/embeddings", {"input": ["a few words"] * (1 + i % 40)})
        if i % 3 == 0:
            s.recv(100)
        s.close()
    server.settle()
    assert post(server, "/v1/embeddings", {"input": "a"}).status_code == 200


def test_a_full_queue_is_a_429_with_a_time_to_retry(start):
    server = start("--engine", "mock", "--is-embedding", *SLOW, "--max-running-requests", "1",
                   "--max-queued-requests", "1")
    sockets = [leave(server, "/v1/embeddings", {"input": ["a"] * 3}) for _ in range(2)]
    server.wait_for("portico_requests_running", 1)
    server.wait_for("portico_requests_waiting", 1)
    answer = post(server, "/v1/embeddings", {"input": "a"})
    refused(answer, 429)
    assert "retry-after" in answer.headers
    with pytest.raises(grpc.RpcError) as error:
        Client(f"127.0.0.1:{server.port}").sglang.TextEmbed(text="a")
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    for s in sockets:
        s.close()
    server.settle()


def test_a_pause_holds_texts_back_until_it_ends(start):
    server = start("--engine", "mock", "--is-embedding")
    assert post(server, "/pause_generation", {"mode": "in_place"}).status_code == 200
    assert requests.get(server.url + "/health_generate", timeout=60).status_code == 200
    answers = []
    thread = threading.Thread(target=lambda: answers.append(post(server, "/v1/embeddings", {"input": "a"})))
    thread.start()
    server.wait_for("portico_requests_waiting", 1)
    assert not answers
    assert post(server, "/continue_generation", {}).status_code == 200
    thread.join(60)
    assert answers[0].status_code == 200


def test_a_drain_lets_texts_finish(start):
    server = start("--engine", "mock", "--is-embedding", "--mock-ttft-ms", "1500")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(post(server, "/v1/embeddings", {"input": ["a"] * 500})))
    thread.start()
    server.wait_for("portico_requests_running", 1)
    server.process.send_signal(signal.SIGTERM)
    thread.join(60)
    assert answers[0].status_code == 200 and len(answers[0].json()["data"]) == 500
    assert server.process.wait(60) == 0


def test_a_drain_that_takes_too_long_aborts_what_is_left(start):
    server = start("--engine", "mock", "--is-embedding", *SLOW, "--drain-timeout", "0.2")
    statuses = []

    def ask():
        try:
            statuses.append(post(server, "/v1/embeddings", {"input": ["a"] * 500}).status_code)
        except requests.ConnectionError:
            statuses.append(0)  # a slow machine did not answer before the end

    thread = threading.Thread(target=ask)
    thread.start()
    server.wait_for("portico_requests_running", 1)
    server.process.send_signal(signal.SIGTERM)
    thread.join(60)
    assert statuses[0] in (409, 0)
    assert server.process.wait(60) == 0


def test_engine_errors_and_deaths_are_told(start):
    server = start("--engine", "mock", "--is-embedding", "--mock-fault", "error:1")
    refused(post(server, "/v1/embeddings", {"input": ["a", "b"]}), 500)
    server.settle()
    server = start("--engine", "mock", "--is-embedding", "--mock-fault", "die:1")
    refused(post(server, "/v1/embeddings", {"input": ["a", "b"]}), 503)
    assert requests.get(server.url + "/health", timeout=60).status_code == 503


def test_metrics_count_texts(start):
    server = start("--engine", "mock", "--is-embedding")
    answer = post(server, "/v1/embeddings", {"input": ["one two", "three"]}).json()
    assert server.metric("portico_request_success_total", finish_reason="stop") == 2
    assert server.metric("portico_prompt_tokens_total") == answer["usage"]["prompt_tokens"]
    assert server.metric("portico_e2e_request_latency_seconds_count") == 2
