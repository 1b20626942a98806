"""Requests for vectors that meet aborts, pauses and failing engines, and their metrics."""
import threading

import requests

from pooling_client import SLOW, post, refused


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
