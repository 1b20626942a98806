"""Other names for models: a request for an alias goes to the workers of the model, which see its own name."""
import signal
import subprocess

import pytest
import requests
from conftest import BINARY, wait_until
from gateway_fleet import Process, RawWorker, mock_worker

CONFIG = """
policy: round_robin
enable-igw: true
show-workers: true
prometheus-port: 0
aliases:
  fast: small
  '{alias}': large
workers:
{workers}
"""


class Models:
    """Workers of two models, over HTTP and with tokens, behind a gateway with a file."""

    def __init__(self, folder):
        self.raw = RawWorker(self.take)
        self.small = mock_worker("--served-model-name", "small")
        self.large = mock_worker("--served-model-name", "large")
        for worker in (self.small, self.large):
            worker.wait_ready()
        self.file = folder / "gateway.yaml"
        self.write("best")
        self.gateway = Process("route", "--host", "127.0.0.1", "--config", str(self.file))
        self.url = self.gateway.url
        wait_until(lambda: self.models()[:2] == ["large", "plain"] and "small" in self.models(),
                   lambda: f"{self.models()}: {self.gateway.output()[-2000:]}")

    def write(self, alias):
        workers = [f"  - {self.small.url}", f"  - grpc://127.0.0.1:{self.large.port}",
                   f"  - {{url: '{self.raw.url}', models: [plain]}}"]
        text = CONFIG.format(alias=alias, workers="\n".join(workers))
        self.file.write_text(text.replace("  fast: small", "  fast: small\n  bare: plain\n  nobody: nothing"))

    @staticmethod
    def take(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def models(self):
        try:
            return [model["id"] for model in requests.get(self.url + "/v1/models", timeout=60).json()["data"]]
        except requests.RequestException:
            return []

    def chat(self, model):
        body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
        return requests.post(self.url + "/v1/chat/completions", json=body, timeout=60)

    def stop(self):
        assert self.gateway.end() == 0, self.gateway.output()[-3000:]
        for worker in (self.small, self.large):
            worker.kill()
        self.raw.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Models(tmp_path_factory.mktemp("aliases"))
    yield made
    made.stop()


def test_aliases_are_listed_beside_the_models_that_are_served(served):
    assert served.models() == ["large", "plain", "small", "bare", "best", "fast"]
    listed = requests.get(served.url + "/v1/models", timeout=60).json()["data"]
    assert {model["id"]: model.get("root") for model in listed}["best"] == "large"


def test_cards_tell_what_the_workers_do(served):
    """Clients that read max_model_len from the models before they ask found none behind a gateway."""
    own = requests.get(served.small.url + "/v1/models", timeout=60).json()["data"][0]
    cards = {card["id"]: card for card in requests.get(served.url + "/v1/models", timeout=60).json()["data"]}
    assert own["max_model_len"] > 0
    for name in ("small", "fast"):
        assert {key: cards[name][key] for key in ("max_model_len", "created", "root")} == {
            "max_model_len": own["max_model_len"], "created": own["created"], "root": "small"}
    for name in ("large", "best"):
        assert cards[name]["max_model_len"] > 0 and cards[name]["created"] > 0 and cards[name]["root"] == "large"
    assert cards["plain"]["max_model_len"] is None


@pytest.mark.parametrize("name, model", [("fast", "small"), ("best", "large"), ("small", "small"), ("large", "large")])
def test_a_model_is_described_by_a_worker_that_serves_it(served, name, model):
    """Any worker was asked, and most did not know it."""
    for _ in range(3):
        card = requests.get(f"{served.url}/v1/models/{name}", timeout=60)
        assert card.status_code == 200 and card.json()["id"] == model, card.text


@pytest.mark.parametrize("alias, model, worker", [("fast", "small", "w1"), ("best", "large", "w2"), ("small", "small", "w1")])
def test_a_request_for_an_alias_goes_to_the_workers_of_its_model(served, alias, model, worker):
    reply = served.chat(alias)
    assert reply.status_code == 200, reply.text
    assert reply.headers["x-portico-worker"] == worker
    assert reply.json()["model"] == model


def test_only_the_value_of_the_model_differs_in_what_a_worker_gets(served):
    sent = b'{"temperature":1.50e0, "model" : "b\\u0061re"\n ,"unknown":{"model":"bare"},  "prompt":"x","user":"bare"}'
    reply = requests.post(served.url + "/v1/completions", data=sent, headers={"content-type": "application/json"}, timeout=60)
    assert reply.status_code == 200, reply.text
    assert served.raw.requests[-1][1] == sent.replace(b'"b\\u0061re"', b'"plain"')
    form = {"file": ("a.wav", b"RIFF\0\xff", "audio/wav")}
    reply = requests.post(served.url + "/v1/audio/transcriptions", files=form, data={"model": "bare", "prompt": "bare"}, timeout=60)
    assert reply.status_code == 200, reply.text
    body = served.raw.requests[-1][1]
    assert b'name="model"\r\n\r\nplain\r\n' in body and b'name="prompt"\r\n\r\nbare\r\n' in body and b"RIFF\0\xff" in body


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_a_form_may_name_its_model_behind_its_file(served, size):
    """curl's users put the file first. Such a form went to a worker of any model, and an alias in it was not resolved."""
    for model in ("bare", "plain"):
        form = [("file", ("a.wav", b'name="model"\r\n\r\nsmall\r\n' + b"x" * size, "audio/wav")), ("model", (None, model, "text/plain"))]
        reply = requests.post(served.url + "/v1/audio/transcriptions", files=form, timeout=60)
        assert reply.status_code == 200, reply.text
        body = served.raw.requests[-1][1]
        assert len(body) > size and b"\r\n\r\nplain\r\n--" in body and b"\r\n\r\nsmall\r\nxx" in body


def test_a_retry_stays_with_its_model_when_the_last_worker_of_it_is_removed(tmp_path):
    """It went to a worker of another model, --enable-igw or not."""
    def leave(_connection, _head, _body):
        requests.delete(gateway.url + "/workers/w1", timeout=60)
        return False

    going, other = RawWorker(leave), RawWorker(Models.take)
    file = tmp_path / "fleet.yaml"
    file.write_text(f"workers:\n  - {{url: '{going.url}', models: [going]}}\n  - {{url: '{other.url}', models: [other]}}\n")
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--enable-igw", "--config", str(file))
    try:
        gateway.wait_ready("/readiness")
        wait_until(lambda: all(worker["is_healthy"] for worker in requests.get(gateway.url + "/workers", timeout=60).json()["workers"]),
                   gateway.output)
        reply = requests.post(gateway.url + "/v1/completions", json={"model": "going", "prompt": "x"}, timeout=60)
        assert reply.status_code == 503, reply.text
        assert going.requests and not any(head.startswith(b"POST") for head, _body in other.requests)
        assert gateway.end() == 0
    finally:
        gateway.kill()
        going.stop()
        other.stop()


def test_an_alias_whose_model_nobody_serves_is_refused(served):
    for model in ("nobody", "nothing", "unheard"):
        reply = served.chat(model)
        assert reply.status_code == 404 and reply.json()["error"]["code"] == "model_not_found", reply.text
        assert reply.json()["error"]["param"] == "model"  # as of a server; it was null
        # Nothing told what could be asked for.
        assert reply.json()["error"]["message"].endswith(f"this gateway has: {', '.join(served.models())}"), reply.text


def test_aliases_follow_the_file(served):
    served.write("latest")
    served.gateway.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "latest" in served.models() and "best" not in served.models(), lambda: served.gateway.output()[-2000:])
    assert served.chat("latest").json()["model"] == "large"
    assert served.chat("best").status_code == 404


@pytest.mark.parametrize("aliases, fault", [
    ("{a: b, b: c}", "`a` stands for `b`, which is an alias"), ("[a]", "`a` is not ALIAS=MODEL"),
    ("[a=b, a=c]", "`a` is named twice")])
def test_a_file_with_wrong_aliases_is_refused(tmp_path, aliases, fault):
    file = tmp_path / "wrong.yaml"
    file.write_text(f"aliases: {aliases}\n")
    checked = subprocess.run([str(BINARY), "check", str(file)], capture_output=True, text=True, timeout=60)
    assert checked.returncode != 0 and fault in checked.stderr + checked.stdout
