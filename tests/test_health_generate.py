"""GET /health_generate has the engine make a token, or a vector or logits of one, and answers by how that ends."""
import pytest
import requests

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
