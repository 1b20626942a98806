"""Workers that say what cannot be: it is ignored, counted for each worker, and logged once."""
import json

import pytest
import requests
from conftest import ROOT, wait_until
from gateway_fleet import Process, RawWorker
from token_stand_ins import SchedulerStandIn


def ok(connection, head, body):
    del head, body
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def route(*urls):
    return Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--worker-urls", *urls)


def malformed(gateway, kind):
    lines = requests.get(gateway.url + "/metrics", timeout=60).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines
               if line.startswith("portico_gateway_worker_malformed_total{") and f'kind="{kind}"' in line)


def models(gateway):
    return {card["id"]: card for card in requests.get(gateway.url + "/v1/models", timeout=60).json()["data"]}


@pytest.mark.parametrize("said, listed, why", [
    (json.dumps({"data": [{"id": "m", "max_model_len": -4, "created": "now"}]}), ["m"], 'created is "now"'),
    (json.dumps({"data": [{"id": "m", "max_model_len": 10**30}]}), ["m"], "max_model_len is"),
    (json.dumps({"data": [{"id": 7}, "x", {"id": "m"}]}), ["m"], "id is no short text"),
    (json.dumps({"data": {"id": "m"}}), [], "it is not an object with a list"),
    ("<html>", [], "it is not an object with a list"),
    (json.dumps({"data": [{"id": f"m{number}"} for number in range(3000)]}), 1024, "more than 1024 models"),
    (json.dumps({"data": [{"id": "m" * 100 + str(number)} for number in range(60_000)]}), [], "too large"),
])
def test_a_list_of_models_that_lies_is_taken_as_far_as_it_makes_sense(said, listed, why):
    """A busy machine may answer a probe late: then the worker is down for a while, and asked once more."""
    liar = RawWorker(ok)
    liar.models = said.encode()
    gateway = route(liar.url)
    try:
        gateway.wait_ready("/readiness")

        def worker():
            return requests.get(gateway.url + "/workers", timeout=60).json()["workers"][0]

        def cards():
            return sorted(models(gateway))

        wait_until(lambda: why in gateway.output() and malformed(gateway, "models") >= 1, gateway.output)
        wait_until(lambda: len(cards()) == listed if isinstance(listed, int) else cards() == listed, lambda: f"{cards()}: {gateway.output()}")
        assert all(card["max_model_len"] is None for card in models(gateway).values())
        wait_until(lambda: worker()["is_healthy"], gateway.output)
        assert worker()["malformed_answers"] >= 1
        assert gateway.output().count("answers /v1/models with what cannot be used") == 1
        assert gateway.end() == 0
    finally:
        gateway.kill()
        liar.stop()


def test_a_list_of_models_that_is_as_it_should_be_counts_for_nothing():
    honest = RawWorker(ok)
    honest.models = json.dumps({"object": "list", "data": [
        {"id": "m", "object": "model", "created": 0, "owned_by": "x", "root": None, "parent": None, "max_model_len": 32}]}).encode()
    gateway = route(honest.url)
    try:
        wait_until(lambda: gateway.answers("/readiness") and models(gateway), gateway.output)
        assert malformed(gateway, "models") == 0 and models(gateway)["m"]["max_model_len"] == 32
        assert gateway.end() == 0
    finally:
        gateway.kill()
        honest.stop()


def test_tokens_that_a_model_does_not_have_are_counted_and_logged_once():
    # Over gRPC nobody was told but the client, by a status.
    liar = SchedulerStandIn([5, 99_999_999], ROOT / "models/demo")
    gateway = route(f"grpc://127.0.0.1:{liar.port}")
    try:
        gateway.wait_ready("/readiness")
        for number in range(3):
            body = {"messages": [{"role": "user", "content": f"Hi {number}"}], "max_tokens": 9}
            answer = requests.post(gateway.url + "/v1/chat/completions", json=body, timeout=60)
            assert answer.status_code == 500, answer.text
        assert malformed(gateway, "answer") == len(liar.asked) >= 3
        assert gateway.output().count("breaks the protocol: the worker sent a token that the model does not have") == 1
        assert gateway.end() == 0
    finally:
        gateway.kill()
        liar.stop()
