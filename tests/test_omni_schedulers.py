"""Schedulers of sglang-omni run as they are in stages of Python."""
import base64
import concurrent.futures
import json
import pathlib
import struct

import pytest
import requests

from conftest import Server, wait_until
from leaving import leave
from test_omni_cloning import data_url, wav

TESTS = pathlib.Path(__file__).resolve().parent


def stage(name, factory_path, more):
    return f"  - {{name: {name}, factory_path: schedulers_for_test.{factory_path}, env: {{PYTHONPATH: '{TESTS}'}}, {more}}}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("omni") / "p.yaml"
    path.write_text("name: talk\nstages:\n" + stage("talker", "talk", "factory: {chunks: 5}, stream_to: [reply, encode]") +
                    "  - {name: reply, factory_path: portico.pass, terminal: true}\n  - {name: encode, factory_path: portico.encode, terminal: true}\n")
    server = Server("--pipeline", str(path), "--engine", "mock")
    yield server
    server.stop()


def chat(server, content, **fields):
    body = {"messages": [{"role": "user", "content": content}], "modalities": ["text", "audio"], **fields}
    return requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)


def test_a_scheduler_speaks_and_a_result_that_repeats_itself_is_told_once(server):
    answer = requests.post(server.url + "/v1/audio/speech", json={"input": "hello", "response_format": "pcm"}, timeout=60)
    samples = struct.unpack(f"<{len(answer.content) // 2}h", answer.content)
    assert list(samples[::480]) == [0, 327, 655, 983, 1310]
    message = chat(server, "hello").json()
    assert message["choices"][0]["message"]["content"] == "w0 w1 w2 w3 w4 "
    assert len(base64.b64decode(message["choices"][0]["message"]["audio"]["data"])) == 44 + 4800
    assert message["choices"][0]["finish_reason"] == "length" and message["usage"]["completion_tokens"] == 5


def test_what_a_request_wants_reaches_the_scheduler(server):
    text = chat(server, "params", stage_sampling={"talker": {"top_k": 3}}, max_tokens=9, top_p=0.25, talker_temperature=0.5).json()["choices"][0]["message"]["content"]
    for wanted in ("('top_k', 3)", "('top_p', 0.25)", "('max_new_tokens', 9)", "('temperature', 0.5)", "('stream', True)"):
        assert wanted in text, text


def test_the_voice_to_imitate_reaches_the_scheduler(server):
    answer = requests.post(server.url + "/v1/audio/speech", timeout=60, json={
        "input": "imitate", "response_format": "pcm", "ref_audio": data_url(wav(0.5, 8000)), "ref_text": "hi", "task_type": "Base"})
    assert answer.status_code == 200, answer.text
    samples = struct.unpack(f"<{len(answer.content) // 2}h", answer.content)
    assert (samples[0], samples[480], samples[481]) == (len("Base"), 8000, len("hi"))


def test_a_scheduler_that_fails_tells_no_secrets(server):
    answer = chat(server, "fail-now")
    assert answer.status_code == 500 and "secret" not in answer.text and "talker" in answer.text


def test_clients_that_leave_are_aborted_in_the_scheduler(server):
    before = int(chat(server, "aborted").json()["choices"][0]["message"]["content"])
    client = leave(server, "/v1/audio/speech", {"input": "wait"})
    server.wait_for("portico_pipeline_requests_running", 1)
    client.close()
    wait_until(lambda: int(chat(server, "aborted").json()["choices"][0]["message"]["content"]) == before + 1, "nothing was aborted")


def test_requests_of_the_same_id_get_their_own_answers(server):
    # The scheduler's answers went to the later one, and the earlier one waited for ever.
    def one(_):
        return requests.post(server.url + "/v1/audio/speech", timeout=60,
                             json={"input": "hello", "response_format": "pcm", "request_id": "same"})
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(64)))
    assert {(answer.status_code, len(answer.content)) for answer in answers} == {(200, 4800)}


def test_payloads_go_from_scheduler_to_scheduler_across_processes(start, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("model_path: a/model\nstages:\n" + stage("prepare", "prepare", "process: p1, next: finish") +
                    stage("finish", "finish", "process: p2, terminal: true"))
    server = start("--pipeline", str(path), "--engine", "mock")
    answer = chat(server, "one two").json()
    assert answer["choices"][0]["message"]["content"].endswith(" by a/model"), json.dumps(answer)
    assert "one" in answer["choices"][0]["message"]["content"]


def test_functions_of_the_edges_get_and_give_payloads(start, tmp_path):
    path = tmp_path / "p.yaml"
    functions = "route_fn: schedulers_for_test.by_words, project_payload: {one: schedulers_for_test.without_blob}"
    path.write_text("model_path: a/model\nstages:\n" + stage("prepare", "prepare", f"process: p1, next: [one, two], {functions}") +
                    stage("one", "same", "process: p2, next: last") + stage("two", "same", "process: p3, next: last") +
                    stage("last", "same", "process: p4, wait_for: [one, two], merge_fn: schedulers_for_test.both, terminal: true"))
    server = start("--pipeline", str(path), "--engine", "mock")

    def said(content):
        answer = chat(server, content)
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"][0]["message"]["content"]
    whole = "['blob', 'deep', 'model', 'n', 'none']"
    assert said("several words") == f"one=['deep', 'model'] two={whole}"


@pytest.mark.parametrize("early", [False, True])
def test_chunks_wait_for_the_payload_unless_the_stage_accepts_them_before(start, tmp_path, early):
    path = tmp_path / "p.yaml"
    flag = ", can_accept_stream_before_payload: true" if early else ""
    path.write_text("stages:\n" + stage("first", "streamer", "process: p1, next: last, stream_to: [last, other]") +
                    stage("last", "in_order", f"process: p2, terminal: true{flag}") + stage("other", "same", "process: p3, terminal: true"))
    server = start("--pipeline", str(path), "--engine", "mock")
    answer = chat(server, "a b")
    assert answer.status_code == 200, answer.text
    wanted = "0a 1b new_request stream_done" if early else "new_request 0a 1b stream_done"
    assert answer.json()["choices"][0]["message"]["content"] == wanted


def test_a_scheduler_waits_for_the_payloads_that_a_function_tells(start, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("stages:\n" + stage("prepare", "prepare", "process: p1, next: [one, two]") +
                    stage("one", "unless_alone", "process: p2, next: last") + stage("two", "same", "process: p3, next: last") +
                    stage("last", "same", "process: p4, wait_for: [one, two], wait_for_fn: schedulers_for_test.one_or_both, "
                          "merge_fn: schedulers_for_test.both, terminal: true"))
    server = start("--pipeline", str(path), "--engine", "mock")
    whole = "['blob', 'deep', 'model', 'n', 'none']"
    for content, wanted in (("several words", f"one={whole} two={whole}"), ("alone", f"two={whole}")):
        answer = chat(server, content)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"] == wanted
