"""A gateway before two of Portico's servers that generate with the demo model, over each of the two ways to a worker."""
import json

import pytest
import requests
from conftest import ROOT, wait_until
from gateway_fleet import Process

DEMO = ROOT / "models/demo"
QUESTION = {"messages": [{"role": "user", "content": "What is 7 plus 5?"}], "max_tokens": 12, "temperature": 0}
CHATS = "/v1/chat/completions"


class Door:
    """The servers name their model differently: a client may choose one, or leave it open."""

    def __init__(self, scheme):
        self.servers, self.gateway = [], None
        try:
            for name in ("demo", "demo-again"):
                self.servers.append(Process("serve", "--model-path", DEMO, "--served-model-name", name))
            for server in self.servers:
                server.wait_ready()
            self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--show-workers", "--policy", "round_robin",
                                   "--worker-urls", *(f"{scheme}127.0.0.1:{server.port}" for server in self.servers))
            wait_until(lambda: self.gateway.answers("/readiness") and self.models() == ["demo", "demo-again"], self.gateway.output)
        except BaseException:
            self.kill()
            raise

    def models(self):
        return [model["id"] for model in requests.get(self.gateway.url + "/v1/models", timeout=60).json()["data"]]

    def post(self, **fields):
        return requests.post(self.gateway.url + CHATS, json={**QUESTION, **fields}, timeout=120, stream=fields.get("stream", False))

    def kill(self):
        for process in (*self.servers, self.gateway):
            if process is not None:
                process.kill()


@pytest.fixture(scope="module", params=["http://", "grpc://"])
def door(request):
    made = Door(request.param)
    try:
        yield made
        assert made.gateway.end() == 0, made.gateway.output()[-3000:]
    finally:
        made.kill()


def direct(door):
    answer = requests.post(door.servers[0].url + CHATS, json=QUESTION, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_chat_is_what_a_server_answers_itself(door):
    expected = direct(door)
    answers = [door.post(model=model) for model in ("demo", "demo-again")]
    assert {answer.headers["x-portico-worker"] for answer in answers} == {"w1", "w2"}
    for answer in answers:
        assert answer.json()["choices"] == expected["choices"], answer.text
        assert answer.json()["usage"]["total_tokens"] == expected["usage"]["total_tokens"]


def test_a_streamed_chat_is_the_whole_one_in_pieces(door):
    expected = direct(door)["choices"][0]
    with door.post(model="demo-again", stream=True) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]"
    choices = [chunk["choices"][0] for chunk in map(json.loads, lines[:-1]) if chunk["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == expected["message"]["content"]
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == [expected["finish_reason"]]


def test_models_are_those_of_both_servers_and_each_is_described(door):
    assert door.models() == ["demo", "demo-again"]
    for model in door.models():
        told = requests.get(f"{door.gateway.url}/v1/models/{model}", timeout=60).json()
        assert told["id"] == model and told["max_model_len"] > 0


def test_the_one_that_is_killed_costs_no_whole_answer(door):
    """The last of this file: nobody needs it any more."""
    door.servers[0].kill()
    for _ in range(6):
        answer = door.post()
        assert answer.status_code == 200 and answer.headers["x-portico-worker"] == "w2", answer.text
    wait_until(lambda: [one["is_healthy"] for one in requests.get(door.gateway.url + "/workers", timeout=60).json()["workers"]] == [False, True],
               door.gateway.output)
    assert requests.get(door.gateway.url + "/readiness", timeout=60).status_code == 200
