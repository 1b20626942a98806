"""The program smg before Portico's servers, which are its workers over gRPC (PyPI: smg, or where PORTICO_SMG says it is)."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import requests
from conftest import ROOT, free_port, wait_until
from gateway_fleet import Process

BESIDE = pathlib.Path(sys.executable).parent / "smg"
SMG = os.environ.get("PORTICO_SMG") or (str(BESIDE) if BESIDE.exists() else shutil.which("smg"))
pytestmark = pytest.mark.skipif(not SMG, reason="the program smg is not here: pip install smg==1.13.0, or name it by PORTICO_SMG")

DEMO = ROOT / "models/demo"
CHAT = {"model": "demo", "messages": [{"role": "user", "content": "Say something."}], "max_tokens": 8, "temperature": 0}


class Smg:
    def __init__(self):
        self.servers = [Process("serve", "--engine", "mock", "--served-model-name", "demo") for _ in range(2)]
        self.process = None
        try:
            for server in self.servers:
                server.wait_ready()
            port, metrics = free_port(), free_port()
            self.url = f"http://127.0.0.1:{port}"
            self.log = ROOT / f"build/test-smg-{port}.log"
            command = [SMG, "launch", "--host", "127.0.0.1", "--port", str(port), "--prometheus-host", "127.0.0.1", "--prometheus-port",
                       str(metrics), "--policy", "round_robin", "--model-path", str(DEMO), "--worker-urls",
                       *(f"grpc://127.0.0.1:{server.port}" for server in self.servers)]
            with open(self.log, "w") as log:
                # It must not ask a hub for what is in the folder.
                self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                                env={**os.environ, "HF_HUB_OFFLINE": "1"})
            wait_until(lambda: self.healthy() == 2, lambda: self.log.read_text(errors="replace")[-3000:])
        except BaseException:
            self.stop()
            raise

    def healthy(self):
        assert self.process.poll() is None, self.log.read_text(errors="replace")[-3000:]
        with contextlib.suppress(requests.RequestException):
            workers = requests.get(self.url + "/workers", timeout=60).json()["workers"]
            return sum(worker["is_healthy"] for worker in workers)
        return 0

    def post(self, path, body, **keywords):
        return requests.post(self.url + path, json=body, timeout=120, **keywords)

    def stop(self):
        for process in (self.process, *(server.process for server in self.servers)):
            if process is not None:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def smg():
    made = Smg()
    yield made
    made.stop()


def asked(server):
    """How many calls of Generate it has had."""
    lines = requests.get(server.url + "/metrics", timeout=60).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("portico_grpc_requests_total{") and "Generate" in line)


def test_it_takes_them_for_workers_and_finds_their_model(smg):
    workers = requests.get(smg.url + "/workers", timeout=60).json()["workers"]
    assert {worker["connection_mode"].lower() for worker in workers} == {"grpc"}
    assert [model["id"] for model in requests.get(smg.url + "/v1/models", timeout=60).json()["data"]] == ["demo"]


def test_its_chats_are_answered_by_both(smg):
    before = [asked(server) for server in smg.servers]
    answers = [smg.post("/v1/chat/completions", CHAT) for _ in range(4)]
    assert all(answer.status_code == 200 for answer in answers), answers[0].text
    choice = answers[0].json()["choices"][0]
    assert choice["message"]["content"] and choice["finish_reason"] in ("length", "stop")
    assert answers[0].json()["usage"]["completion_tokens"] == 8
    assert all(asked(server) > count for server, count in zip(smg.servers, before, strict=True))


def test_its_streams_are_whole(smg):
    whole = smg.post("/v1/chat/completions", CHAT).json()["choices"][0]["message"]["content"]
    with smg.post("/v1/chat/completions", {**CHAT, "stream": True}, stream=True) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]"
    choices = [chunk["choices"][0] for chunk in map(json.loads, lines[:-1]) if chunk["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == whole


def test_its_native_requests_are_answered(smg):
    answer = smg.post("/generate", {"model": "demo", "text": "Hello", "sampling_params": {"max_new_tokens": 5, "temperature": 0}})
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said[0] if isinstance(said, list) else said)["meta_info"]["completion_tokens"] == 5


def test_it_goes_on_with_one_when_the_other_is_killed(smg):
    """The last of this file."""
    smg.servers[0].kill()
    wait_until(lambda: all(smg.post("/v1/chat/completions", CHAT).status_code == 200 for _ in range(4)), "it does not go on")
