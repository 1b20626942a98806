"""What SGLang is after it has been started again, and what is asked of one that runs already before it is joined."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

import pytest
import requests
from conftest import Server, wait_until

from test_sglang import DEMO, STAND_IN, engine_pid, flags, generate, kill_engine
from test_sglang_controls import post, short


def model_info(server):
    info = requests.get(server.url + "/model_info", timeout=60).json()
    return info["model_path"], info["weight_version"]


def test_an_engine_that_is_started_again_has_its_first_weights(start, tmp_path):
    # The name and the path of the last update stayed.
    server = start(*flags(portico=("--restart-engine",)))
    first = model_info(server)
    assert first[1] == "default"
    weights = tmp_path / "new"
    weights.symlink_to(DEMO)
    updated = post(server, "/update_weights_from_disk", model_path=str(weights), weight_version="two")
    assert updated.status_code == 200, updated.text
    assert model_info(server) == (str(weights), "two")
    kill_engine(server)
    wait_until(lambda: generate(server, text="x").status_code == 503, "its death goes unnoticed")
    wait_until(lambda: short(server).status_code == 200, "it does not come back")
    assert model_info(server) == first
    assert short(server).json()["meta_info"]["weight_version"] == "default"
    assert requests.get(server.url + "/get_server_info", timeout=60).json()["weight_version"] == "default"
    assert post(server, "/update_weight_version", new_version="three").status_code == 200
    assert model_info(server) == (first[0], "three")


def test_vectors_name_the_weights_that_they_are_of(start):
    # They were "default" always.
    server = start(*flags("--is-embedding"))
    assert post(server, "/encode", text="one").json()["meta_info"]["weight_version"] == "default"
    assert post(server, "/update_weight_version", new_version="two").status_code == 200
    assert post(server, "/encode", text="one").json()["meta_info"]["weight_version"] == "two"


@contextlib.contextmanager
def running(folder, *engine):
    facts = folder / "facts.json"
    process = subprocess.Popen([sys.executable, STAND_IN, "--ipc-dir", folder, "--facts", facts, "--model-path", DEMO, *engine],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        while json.loads(process.stdout.readline())["event"] != "ready":
            pass
        yield facts
        assert process.poll() is None, "it did not live through it"
    finally:
        process.kill()
        process.wait()


def refusal(facts):
    server = Server("--engine", "sglang", "--attach", facts, "--model-path", DEMO, wait=False)
    assert server.process.wait(60) == 1
    return server.output()


def test_an_engine_proves_the_messages_of_those_that_join_it(start, tmp_path):
    with running(tmp_path) as facts:
        for _ in range(2):
            server = start("--engine", "sglang", "--attach", facts, "--model-path", DEMO)
            assert short(server).status_code == 200
            server.stop()
            server.stop = lambda: None


def test_a_launcher_starts_again_in_the_folder_of_one_that_was_killed(start, tmp_path):
    # The socket for proofs that was left there ended it.
    with running(tmp_path):
        pass
    with running(tmp_path) as facts:
        server = start("--engine", "sglang", "--attach", facts, "--model-path", DEMO)
        assert short(server).status_code == 200
        server.stop()
        server.stop = lambda: None


def test_the_sockets_of_a_killed_server_go_with_the_next_start(start, monkeypatch):
    # They stayed in /tmp for ever.
    with tempfile.TemporaryDirectory() as folder:  # names of sockets are short
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        killed = start(*flags())
        left = os.listdir(folder)
        assert len(left) == 1
        engine = engine_pid(killed)
        killed.process.kill()
        killed.process.wait()
        killed.stop = lambda: None
        wait_until(lambda: not os.path.exists(f"/proc/{engine}"), "the engine is left alone")
        assert os.listdir(folder) == left
        server = start(*flags())
        there = os.listdir(folder)
        assert len(there) == 1 and there != left
        server.stop()
        server.stop = lambda: None
        assert os.listdir(folder) == []


def test_an_engine_that_reads_a_message_otherwise_is_not_joined(tmp_path):
    with running(tmp_path, "--stand-in-disproves", "AbortReq") as facts:
        assert "AbortReq" in refusal(facts)


@pytest.mark.parametrize("change, why", [
    (lambda facts: facts.update(started=facts["started"] + 1), "is another now"),
    (lambda facts: facts.pop("started"), "older Portico"),
    (lambda facts: facts.pop("proof_socket"), "older Portico"),
    (lambda facts: facts.update(proof_socket=facts["proof_socket"] + "x"), "does not say whether it reads"),
])
def test_a_process_that_is_not_the_one_of_the_file_is_not_joined(tmp_path, change, why):
    with running(tmp_path) as file:
        whole = json.loads(file.read_text())
        change(whole["facts"])
        file.write_text(json.dumps(whole))
        assert why in refusal(file)
