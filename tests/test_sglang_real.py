"""Portico in front of an installed SGLang on the CPU, compared with SGLang's own server before the same model.

PORTICO_SGLANG_PYTHON names a Python that has SGLang (docs/sglang.md says how to install one without a GPU).
"""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest
import requests
from conftest import Server, wait_until
from real_sglang import CPU_FLAGS, DEMO, PYTHON, set_environment, sglang_server, start_ready

from sglang_requests import cases, difference, same

pytestmark = pytest.mark.skipif(not PYTHON, reason="PORTICO_SGLANG_PYTHON names no Python that has SGLang")


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch, tmp_path_factory.mktemp("stub"))
        yield


def flags(*engine, portico=()):
    # Without parsers, as SGLang's own server without flags.
    return ("--engine", "sglang", "--sglang-python", PYTHON, "--model-path", DEMO, "--served-model-name", "demo",
            "--reasoning-parser", "none", "--tool-call-parser", "none", *portico, "--", *CPU_FLAGS, *engine)


def embedding_flags():
    return flags("--is-embedding")


@pytest.fixture(scope="module")
def ours():
    server = start_ready(*flags())
    yield server
    server.stop()


@pytest.fixture(scope="module")
def theirs():
    with sglang_server() as url:
        yield url


def generate(server, **body):
    return requests.post(server.url + "/generate", json=body, timeout=120)


def test_answers_are_those_of_sglangs_own_server(ours, theirs):
    count = int(os.environ.get("PORTICO_SGLANG_CASES", "300"))
    wrong = [found for path, body in cases(count, constrained=False) if (found := difference(ours.url, theirs, path, body))]
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong[:10])


def test_answers_of_a_given_form_are_those_of_sglangs_own_server(ours, theirs):
    wrong = [found for path, body in cases(60, constrained=True) if (found := difference(ours.url, theirs, path, body))]
    assert not wrong, f"{len(wrong)} of 60\n" + "\n".join(wrong[:10])


def test_what_only_some_engines_can_do_is_answered_as_by_sglangs_own_server():
    more = ("--enable-return-hidden-states", "--enable-priority-scheduling")
    greedy = {"max_new_tokens": 5, "temperature": 0, "ignore_eos": True}
    server = start_ready(*flags(*more))
    try:
        with sglang_server(*more) as url:
            for body in ({"return_hidden_states": True}, {"priority": 3}, {"extra_key": "a", "cache_salt": "b"},
                         {"sampling_params": {**greedy, "stop_regex": "[a-f]"}}):
                body = {"text": "Once upon a time", "sampling_params": greedy, **body}
                mine, other = (requests.post(base + "/generate", json=body, timeout=120).json() for base in (server.url, url))
                keys = ("hidden_states", "finish_reason", "prompt_tokens", "completion_tokens")
                pick = lambda answer: [answer["text"], answer["output_ids"], *(answer["meta_info"].get(k) for k in keys)]
                assert same(pick(mine), pick(other)), body
            turns = []
            for base in (server.url, url):
                session = requests.post(base + "/open_session", json={"capacity_of_str_len": 1000}, timeout=60).json()
                first = {"text": "Once upon a time", "rid": "first", "session_params": {"id": session}, "sampling_params": greedy}
                second = {"text": " and then", "session_params": {"id": session, "rid": "first"}, "sampling_params": greedy}
                turns.append([requests.post(base + "/generate", json=b, timeout=120).json()["output_ids"] for b in (first, second)])
                assert requests.post(base + "/close_session", json={"session_id": session}, timeout=60).status_code == 200
            assert turns[0] == turns[1]
    finally:
        server.stop()


def test_controls_reach_the_scheduler_and_do_not_end_it(ours):
    for path, body in [("/slow_down", {"forward_sleep_time": 0.01}), ("/slow_down", {"forward_sleep_time": None}),
                       ("/set_internal_state", {"server_args": {"pp_max_micro_batch_size": 8}}), ("/freeze_gc", {}),
                       ("/weights_checker", {"action": "checksum"})]:
        assert requests.post(ours.url + path, json=body, timeout=60).status_code == 200, path
    # The scheduler would die of each.
    for path, body in [("/release_memory_occupation", {}), ("/start_expert_distribution_record", {}),
                       ("/generate", {"input_embeds": [[0.1] * 256]}),
                       ("/generate", {"text": "x", "sampling_params": {"stop_regex": "("}}),
                       ("/generate", {"text": "x", "custom_logit_processor": "7b7d"})]:
        assert requests.post(ours.url + path, json=body, timeout=60).status_code == 400, path
    assert "model_path" in requests.get(ours.url + "/get_internal_state", timeout=60).json()["replies"][0]["internal_state"]
    assert generate(ours, text="still here", sampling_params={"max_new_tokens": 1}).status_code == 200


def test_an_abort_ends_what_runs_in_the_scheduler(ours):
    response = requests.post(ours.url + "/generate", stream=True, timeout=60, json={
        "text": "Once", "stream": True, "rid": "mine", "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    lines = response.iter_lines()
    next(lines)
    requests.post(ours.url + "/abort_request", json={"rid": "mine"}, timeout=60)
    last = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")][-1]
    assert last["meta_info"]["finish_reason"]["type"] == "abort"
    wait_until(lambda: requests.post(ours.url + "/flush_cache", timeout=60).status_code == 200, "its cells stay taken")


def test_a_client_that_leaves_ends_its_request_in_the_scheduler(ours):
    response = requests.post(ours.url + "/generate", stream=True, timeout=60, json={
        "text": "Once", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    next(response.iter_lines())
    response.close()
    wait_until(lambda: requests.post(ours.url + "/flush_cache", timeout=60).status_code == 200, "its cells stay taken")


@pytest.mark.parametrize("mode", ["in_place", "retract"])
def test_a_stream_stands_still_during_a_pause_and_ends_as_without_one(ours, mode):
    body = {"text": "Once upon a time", "sampling_params": {"max_new_tokens": 400, "ignore_eos": True, "temperature": 0}}
    whole = generate(ours, **body).json()["output_ids"]
    got = []
    thread = threading.Thread(target=lambda: got.append(generate(ours, **body).json()["output_ids"]))
    thread.start()
    time.sleep(0.2)
    assert requests.post(ours.url + "/pause_generation", json={"mode": mode}, timeout=60).status_code == 200
    time.sleep(0.5)
    assert not got
    assert requests.post(ours.url + "/continue_generation", json={}, timeout=60).status_code == 200
    thread.join(120)
    assert got == [whole]


def test_a_pause_that_aborts_ends_what_runs_and_holds_what_comes(ours):
    got = []
    ask = lambda tokens: got.append(generate(ours, text="Once", sampling_params={
        "max_new_tokens": tokens, "ignore_eos": True}).json()["meta_info"]["finish_reason"]["type"])
    first = threading.Thread(target=ask, args=(1900,))
    first.start()
    time.sleep(0.5)
    assert requests.post(ours.url + "/pause_generation", json={"mode": "abort"}, timeout=60).status_code == 200
    first.join(60)
    second = threading.Thread(target=ask, args=(3,))
    second.start()
    time.sleep(0.5)
    assert got == ["abort"]
    requests.post(ours.url + "/continue_generation", json={}, timeout=60)
    second.join(60)
    assert got == ["abort", "length"]


def test_weights_come_from_a_folder_and_a_missing_one_changes_nothing(ours, tmp_path):
    url = ours.url + "/update_weights_from_disk"
    body = {"text": "Once upon a time", "sampling_params": {"max_new_tokens": 8, "temperature": 0}}
    before = generate(ours, **body).json()["text"]
    answer = requests.post(url, json={"model_path": str(tmp_path / "none")}, timeout=120)
    assert answer.status_code in (400, 404), answer.text
    answer = requests.post(url, json={"model_path": str(DEMO), "weight_version": "second"}, timeout=120)
    assert answer.status_code == 200, answer.text
    after = generate(ours, **body).json()
    assert after["text"] == before
    assert after["meta_info"]["weight_version"] == "second"


def test_what_the_scheduler_would_die_of_is_refused_before_it_is_sent(ours):
    for body in [{"input_ids": []}, {"input_ids": [99999999]}, {"input_ids": [-1]},
                 {"text": "x", "sampling_params": {"temperature": -1}},
                 {"input_ids": [1] * 2048, "sampling_params": {"max_new_tokens": 1}}]:
        assert generate(ours, **body).status_code == 400, body
    assert generate(ours, text="still here", sampling_params={"max_new_tokens": 1}).status_code == 200


def test_the_schedulers_are_reached_over_tcp_and_know_where_reasoning_ends(ours):
    body = {"text": "Once upon a time", "sampling_params": {"max_new_tokens": 40, "temperature": 0, "ignore_eos": True}}
    server = start_ready(*flags(portico=("--sglang-transport", "tcp", "--reasoning-parser", "deepseek_r1")))
    try:
        assert generate(server, **body).json()["output_ids"] == generate(ours, **body).json()["output_ids"]
        bound = {"text": "Once", "require_reasoning": True, "sampling_params": {"max_new_tokens": 3, "temperature": 0, "regex": "[0-9]"}}
        free = {**bound, "require_reasoning": False}
        assert not generate(server, **bound).json()["text"].strip().isdigit()
        assert generate(server, **free).json()["text"].strip().isdigit()
        refused = generate(ours, **bound)  # it has no parser, and would begin with the grammar
        assert refused.status_code == 400 or refused.json()["text"].strip().isdigit(), refused.text
        assert requests.post(server.url + "/flush_cache", timeout=60).status_code == 200
    finally:
        server.stop()


def test_a_key_a_name_and_parsers_in_a_file_of_arguments_are_the_front_ends(tmp_path):
    # The name and the reasoning parser were ignored, and the others kept the server from starting.
    (tmp_path / "sglang.yaml").write_text(f"model-path: {DEMO}\nserved-model-name: named-there\napi-key: kept-from-logs\n"
                                          "reasoning-parser: qwen3\ntool-call-parser: hermes\n")
    server = start_ready("--engine", "sglang", "--sglang-python", PYTHON, "--", *CPU_FLAGS, "--config", tmp_path / "sglang.yaml")
    try:
        body = {"text": "one two", "model": "named-there", "sampling_params": {"max_new_tokens": 2}}
        assert requests.post(server.url + "/generate", json=body, timeout=60).status_code == 401
        key = {"authorization": "Bearer kept-from-logs"}
        assert requests.post(server.url + "/generate", json=body, headers=key, timeout=60).status_code == 200
        state = requests.get(server.url + "/get_internal_state", headers=key, timeout=60)
        assert state.status_code == 200 and "kept-from-logs" not in state.text + server.output()
        assert "tool calls as hermes, reasoning as qwen3" in server.output()
    finally:
        server.stop()


def test_the_load_is_the_schedulers_own(ours):
    loads = requests.get(ours.url + "/v1/loads", timeout=60).json()["loads"]
    assert len(loads) == 1
    assert loads[0]["max_total_num_tokens"] == 8192


def engine_pid(server):
    """The launcher, which is the parent of the schedulers."""
    command = ["pgrep", "-P", str(server.process.pid), "-f", "sglang_launch.py"]
    children = subprocess.run(command, capture_output=True, text=True).stdout.split()
    assert len(children) == 1, children
    return int(children[0])


def family(pid):
    """A process and all that it started."""
    found = [pid]
    for one in found:
        found += map(int, subprocess.run(["pgrep", "-P", str(one)], capture_output=True, text=True).stdout.split())
    return found


def none_runs(pids):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_the_death_of_a_scheduler_is_a_503_at_once_and_a_new_one_serves_again(start):
    server = start_ready(*flags(portico=("--restart-engine",)))
    try:
        response = requests.post(server.url + "/generate", stream=True, timeout=60, json={
            "text": "Once", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
        lines = response.iter_lines()
        next(lines)
        everything = family(engine_pid(server))
        schedulers = [pid for pid in everything if "scheduler" in command_of(pid)]
        os.kill(schedulers[0], signal.SIGKILL)
        began = time.monotonic()
        assert b"the engine failed" in b"".join(lines)
        assert time.monotonic() - began < 20
        assert generate(server, text="x").status_code == 503
        wait_until(lambda: generate(server, text="x", sampling_params={"max_new_tokens": 1}).status_code == 200,
                   "it does not come back")
        assert none_runs(everything)
    finally:
        server.stop()


def command_of(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    return ""


@pytest.mark.parametrize("stage", ["importing SGLang", "loading the model"])
def test_ctrl_c_while_it_loads_ends_sglang_too(stage):
    server = Server(*flags(), wait=False)
    try:
        wait_until(lambda: stage in server.output(), "it does not load")
        time.sleep(1.5)
        everything = family(engine_pid(server))
        server.process.send_signal(signal.SIGINT)
        server.process.wait(60)
    finally:
        server.process.kill()
    wait_until(lambda: none_runs(everything), "a process of SGLang is left")


def test_sglang_ends_with_a_server_that_is_killed():
    server = start_ready(*flags())
    everything = family(engine_pid(server))
    server.process.kill()
    server.process.wait()
    wait_until(lambda: none_runs(everything), "a process of SGLang is left")


def test_vectors_are_those_of_sglangs_own_server():
    server = start_ready(*embedding_flags())
    try:
        with sglang_server("--is-embedding") as url:
            body = {"model": "demo", "input": ["One fox", "Two owls in a garden", "x"]}
            ours, theirs = (requests.post(base + "/v1/embeddings", json=body, timeout=120).json()
                            for base in (server.url, url))
            for a, b in zip(ours["data"], theirs["data"], strict=True):
                assert a["embedding"] == pytest.approx(b["embedding"], abs=1e-4)
            assert ours["usage"]["prompt_tokens"] == theirs["usage"]["prompt_tokens"]
        assert requests.post(server.url + "/v1/embeddings", json={"input": "word " * 3000}, timeout=60).status_code == 400
        assert requests.post(server.url + "/v1/embeddings", json={"input": "still"}, timeout=60).status_code == 200
    finally:
        server.stop()
