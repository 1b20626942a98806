"""A gateway before SGLang's own servers on the CPU. PORTICO_SGLANG_PYTHON names a Python that has SGLang."""
import contextlib
import json

import pytest
import requests
from conftest import wait_until
from gateway_fleet import Process
from real_sglang import PYTHON, SglangServer, set_environment

pytestmark = pytest.mark.skipif(not PYTHON, reason="PORTICO_SGLANG_PYTHON names no Python that has SGLang")

GREEDY = {"max_new_tokens": 12, "temperature": 0}


class Door:
    """Two servers of a model that generates, one of a model that embeds, and the gateway."""

    def __init__(self):
        self.servers = []
        try:
            for flags, name in ((), "demo"), ((), "demo"), (("--is-embedding",), "vectors"):
                self.servers.append(SglangServer(*flags, name=name))
                self.servers[-1].wait_ready()  # each takes some GB while it starts
            self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--show-workers",
                                   "--policy", "round_robin", "--health-check-timeout-secs", "30",
                                   "--worker-urls", *(server.url for server in self.servers))
            self.url = self.gateway.url
            wait_until(lambda: self.healthy() == 3, lambda: self.gateway.output()[-3000:])
            wait_until(lambda: all(worker["models"] for worker in self.listed()), "a worker does not name its model")
        except BaseException:
            self.kill()
            raise

    def listed(self):
        with contextlib.suppress(requests.RequestException):
            return requests.get(self.url + "/workers", timeout=60).json()["workers"]
        return []

    def healthy(self):
        return sum(worker["is_healthy"] for worker in self.listed())

    def post(self, path, timeout=120, **body):
        return requests.post(self.url + path, json=body, timeout=timeout, stream=bool(body.get("stream")))

    def kill(self):
        for server in self.servers:
            server.kill()


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch, tmp_path_factory.mktemp("stub"))
        made = Door()
        yield made
        try:
            assert made.gateway.end() == 0, made.gateway.output()[-3000:]
        finally:
            made.kill()


def test_models_are_those_of_all_servers(door):
    models = [model["id"] for model in requests.get(door.url + "/v1/models", timeout=60).json()["data"]]
    assert models == ["demo", "vectors"]
    assert requests.get(door.url + "/get_model_info", timeout=60).json()["model_path"]


def test_answers_are_those_of_the_servers(door):
    body = {"model": "demo", "text": "Once upon a time", "sampling_params": GREEDY}
    direct = requests.post(door.servers[0].url + "/generate", json=body, timeout=120).json()
    replies = [door.post("/generate", **body) for _ in range(4)]
    assert {reply.headers["x-portico-worker"] for reply in replies} == {"w1", "w2"}
    assert all(reply.json()["output_ids"] == direct["output_ids"] for reply in replies)
    chat = {"model": "demo", "messages": [{"role": "user", "content": "Tell a story."}], "max_tokens": 12, "temperature": 0}
    direct = requests.post(door.servers[1].url + "/v1/chat/completions", json=chat, timeout=120).json()
    routed = door.post("/v1/chat/completions", **chat).json()
    assert routed["choices"] == direct["choices"] and routed["usage"]["completion_tokens"] == 12
    assert door.post("/v1/completions", model="demo", prompt="Once", max_tokens=5,
                     ignore_eos=True).json()["usage"]["completion_tokens"] == 5


def test_streams_come_whole(door):
    body = {"model": "demo", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 24, "temperature": 0}
    whole = door.post("/v1/chat/completions", **body).json()["choices"][0]["message"]["content"]
    lines = [line[6:] for line in door.post("/v1/chat/completions", stream=True, **body).iter_lines() if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]"
    choices = [json.loads(line)["choices"] for line in lines[:-1]]
    assert "".join(some[0]["delta"].get("content") or "" for some in choices if some) == whole
    lines = [line for line in door.post("/generate", model="demo", text="Once", stream=True, sampling_params=GREEDY).iter_lines() if line]
    assert lines[-1] == b"data: [DONE]" and len(lines) > 2


def test_vectors_come_from_the_server_that_has_them(door):
    body = {"model": "vectors", "input": ["One fox", "Two owls in a garden"]}
    direct = requests.post(door.servers[2].url + "/v1/embeddings", json=body, timeout=120).json()
    routed = door.post("/v1/embeddings", **body)
    assert routed.headers["x-portico-worker"] == "w3"
    for a, b in zip(routed.json()["data"], direct["data"], strict=True):
        assert a["embedding"] == pytest.approx(b["embedding"], abs=1e-5)


def test_what_a_server_refuses_is_passed_on(door):
    refused = door.post("/v1/chat/completions", model="demo", messages=[{"role": "user", "content": "x"}], temperature=-1)
    assert refused.status_code == 400 and "temperature" in refused.text
    assert door.healthy() == 3


def test_controls_go_to_all_servers(door):
    wait_until(lambda: door.post("/flush_cache").status_code == 200, "a cache cannot be flushed")
    assert door.post("/abort_request", rid="nobody").status_code == 200


def test_a_server_that_is_killed_costs_no_whole_answer(door):
    door.servers[0].kill()
    for _ in range(6):
        reply = door.post("/generate", model="demo", text="Once", sampling_params=GREEDY)
        assert reply.status_code == 200 and reply.headers["x-portico-worker"] == "w2", reply.text
    assert door.healthy() == 2
    assert requests.get(door.url + "/readiness", timeout=60).status_code == 200
