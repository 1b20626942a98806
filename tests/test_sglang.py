"""Portico in front of SGLang's scheduler, which a stand-in plays (sglang_stand_in.py): the wire is the real one."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc
import pytest
import requests
from conftest import ROOT, Server, wait_until
from grpc_client import Client

DEMO = ROOT / "models/demo"
STAND_IN = ROOT / "tests/sglang_stand_in.py"


def flags(*engine, portico=()):
    return ("--engine", "sglang", "--sglang-python", sys.executable, "--sglang-launcher", STAND_IN,
            "--model-path", DEMO, "--served-model-name", "demo", *portico, "--", *engine)


@pytest.fixture(scope="module")
def server():
    server = Server(*flags())
    yield server
    server.stop()


@pytest.fixture(scope="module")
def slow():
    server = Server(*flags("--stand-in-itl-ms", "20"))
    yield server
    server.stop()


def generate(server, **body):
    return requests.post(server.url + "/generate", json=body, timeout=60)


def in_engine(server):
    return server.metric("portico_requests_running") + server.metric("portico_requests_waiting")


def events(response):
    lines = [line for line in getattr(response, "lines", None) or response.iter_lines() if line.startswith(b"data: ")]
    assert lines[-1] == b"data: [DONE]"
    return [json.loads(line[6:]) for line in lines[:-1]]


def test_a_prompt_is_answered_with_ids_text_and_counts(server):
    answer = generate(server, input_ids=[514, 965, 379], sampling_params={"max_new_tokens": 5, "ignore_eos": True}).json()
    assert answer["output_ids"] == [514, 965, 379, 514, 965]
    meta = answer["meta_info"]
    assert meta["finish_reason"] == {"type": "length", "length": 5}
    assert (meta["prompt_tokens"], meta["completion_tokens"], meta["cached_tokens"]) == (3, 5, 2)


def test_speculation_is_counted_in_the_last_message(server, start):
    body = {"input_ids": [514, 965, 379], "sampling_params": {"max_new_tokens": 5, "ignore_eos": True}}
    drafting = start(*flags("--speculative-num-draft-tokens", "3"))
    meta = generate(drafting, **body).json()["meta_info"]
    assert {name: value for name, value in meta.items() if name.startswith("spec_")} == {
        "spec_accept_rate": 2 / 6, "spec_accept_length": 5 / 3, "spec_num_correct_drafts": 2, "spec_num_proposed_drafts": 6,
        "spec_verify_ct": 3, "spec_correct_drafts_histogram": [1, 2]}
    call = Client(f"127.0.0.1:{drafting.port}").sglang.Generate(input_ids=body["input_ids"], sampling_params={"max_new_tokens": 5, "ignore_eos": True})
    last = list(call)[-1]
    assert json.loads(last.meta_info["spec_verify_ct"]) == 3 and json.loads(last.meta_info["spec_accept_rate"]) == 2 / 6
    assert not [name for name in generate(server, **body).json()["meta_info"] if name.startswith("spec_")]


def test_a_chat_is_streamed_token_by_token(server):
    response = requests.post(server.url + "/v1/chat/completions", stream=True, timeout=60, json={
        "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 7, "stream": True})
    parts = [e["choices"][0]["delta"].get("content", "") for e in events(response)]
    assert "".join(parts) == "user\none two three"
    assert len([p for p in parts if p]) >= 4


def test_log_probabilities_of_prompt_and_answer_come_in_their_places(server):
    meta = generate(server, input_ids=[10, 11, 12], return_logprob=True, logprob_start_len=0, top_logprobs_num=2,
                    token_ids_logprob=[5, 6], sampling_params={"max_new_tokens": 2}).json()["meta_info"]
    assert meta["output_token_logprobs"] == [[-0.75, 10, None], [-1.0, 11, None]]
    assert meta["input_token_logprobs"] == [[None, 10, None], [-1.0, 11, None], [-1.25, 12, None]]
    assert [[t[1] for t in row] for row in meta["output_top_logprobs"]] == [[10, 11], [11, 12]]
    assert [[t[1] for t in row] for row in meta["output_token_ids_logprobs"]] == [[5, 6], [5, 6]]


def test_a_stop_string_ends_the_answer_and_is_cut_off(server):
    answer = generate(server, text="one two three four", sampling_params={"max_new_tokens": 50, "stop": "four"}).json()
    assert answer["text"] == "one two three "
    assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": "four"}
    server.settle()


def test_a_refusal_of_the_scheduler_is_the_clients_400(server):
    body = {"text": "x", "sampling_params": {"regex": "BROKEN"}}
    answer = requests.post(server.url + "/generate", json=body, timeout=60)
    assert answer.status_code == 400


SCHEMA = {"title": "SHOW", "type": "object", "properties": {"a": {"type": "integer"}}}
CLOSED = {**SCHEMA, "additionalProperties": False}


def named(schema, **fields):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, **fields}}}


def compact(value):
    return json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize("fields, sent", [
    (named(SCHEMA), {"json_schema": compact(SCHEMA)}),
    (named(CLOSED, strict=True), {"json_schema": compact(CLOSED)}),
    ({"json_schema": json.dumps(SCHEMA)}, {"json_schema": json.dumps(SCHEMA)}),
    ({"regex": "SHOW[a-z]"}, {"regex": "SHOW[a-z]"}),
    ({"ebnf": 'root ::= "SHOW"'}, {"ebnf": 'root ::= "SHOW"'}),
    ({"response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "SHOW"}}},
     {"structural_tag": compact({"type": "structural_tag", "format": {"type": "const_string", "value": "SHOW"}})}),
    ({"guided_choice": ["SHOW.", "a|b"]}, {"regex": r"(SHOW\.|a\|b)"}),
])
def test_the_scheduler_gets_a_constraint_as_the_client_wrote_it(server, fields, sent):
    answer = server.chat("Hi", max_tokens=4, **fields)
    assert answer.status_code == 400
    assert json.loads(answer.json()["error"]["message"]) == sent


@pytest.mark.parametrize("fields, param", [
    (named(SCHEMA, strict=True), "response_format"),
    ({"structured_outputs": {"json": SCHEMA, "disable_additional_properties": True}}, "structured_outputs"),
    ({"structured_outputs": {"json": CLOSED, "disable_any_whitespace": True}}, "structured_outputs"),
    ({"json_schema": "{"}, "json_schema"),
    ({"json_schema": '{"items":' * 100 + "true" + "}" * 100}, "json_schema"),
    ({"regex": "(" * 1000 + ")" * 1000}, "regex"),
    ({"regex": "a", "ebnf": 'root ::= "a"'}, None),
])
def test_what_a_constraints_text_cannot_say_or_the_scheduler_not_bear_is_refused(server, fields, param):
    answer = server.chat("Hi", max_tokens=4, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == (param or "regex"), answer.text


def test_an_answer_under_a_constraint_streams_like_any_other(server):
    text = server.chat("one two", max_tokens=4, regex="[a-z ]*").json()["choices"][0]["message"]["content"]
    response = requests.post(server.url + "/v1/chat/completions", stream=True, timeout=60, json={
        "messages": [{"role": "user", "content": "one two"}], "max_tokens": 4, "stream": True, "regex": "[a-z ]*"})
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in events(response)) == text


def test_what_the_scheduler_would_die_of_is_refused_before_it_is_sent(server):
    for body, field in [({"input_ids": []}, "input_ids"), ({"input_ids": [99999999]}, "input_ids"),
                        ({"input_ids": [-1]}, "input_ids"),
                        ({"text": "x", "sampling_params": {"temperature": -1}}, "temperature")]:
        answer = generate(server, **body)
        assert answer.status_code == 400, body
        assert field in answer.text
    assert generate(server, text="still here", sampling_params={"max_new_tokens": 1}).status_code == 200


def test_a_client_that_leaves_ends_its_request_in_the_engine(slow):
    response = requests.post(slow.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    next(response.iter_lines())
    response.close()
    slow.settle()
    wait_until(lambda: requests.post(slow.url + "/flush_cache", timeout=60).status_code == 200, "the cache is in use")


def test_an_abort_call_ends_a_stream_with_its_reason(slow):
    response = requests.post(slow.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "rid": "mine", "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    lines = response.iter_lines()
    next(lines)
    requests.post(slow.url + "/abort_request", json={"rid": "mine"}, timeout=60)
    last = [json.loads(l[6:]) for l in lines if l.startswith(b"data: {")][-1]
    assert last["meta_info"]["finish_reason"]["type"] == "abort"
    slow.settle()


def test_an_abort_takes_no_request_whose_name_begins_alike(slow):
    streams = []
    for rid, tokens in (("r-1", 1900), ("r-10", 40)):
        response = requests.post(slow.url + "/generate", stream=True, timeout=60, json={
            "text": "one two", "stream": True, "rid": rid, "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True}})
        streams.append(response.iter_lines())
        next(streams[-1])
    requests.post(slow.url + "/abort_request", json={"rid": "r-1"}, timeout=60)
    ends = [[json.loads(line[6:]) for line in lines if line.startswith(b"data: {")][-1] for lines in streams]
    assert [end["meta_info"]["finish_reason"]["type"] for end in ends] == ["abort", "length"]


@pytest.mark.parametrize("mode", ["in_place", "retract"])
def test_requests_wait_while_the_engine_is_paused(server, mode):
    assert requests.post(server.url + "/pause_generation", json={"mode": mode}, timeout=60).status_code == 200
    answers = []
    thread = threading.Thread(target=lambda: answers.append(
        generate(server, text="one two", sampling_params={"max_new_tokens": 3}).json()))
    thread.start()
    wait_until(lambda: in_engine(server) == 1, "it does not come")
    assert not answers
    assert requests.post(server.url + "/continue_generation", json={}, timeout=60).status_code == 200
    thread.join(60)
    assert answers[0]["meta_info"]["completion_tokens"] == 3


def test_a_pause_that_aborts_ends_what_runs_and_holds_what_comes(slow):
    answers = []
    ask = lambda: answers.append(generate(slow, text="one two", sampling_params={"max_new_tokens": 1900, "ignore_eos": True}).json())
    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: in_engine(slow) > 0, "it does not run")
    assert requests.post(slow.url + "/pause_generation", json={"mode": "abort"}, timeout=60).status_code == 200
    thread.join(60)
    assert answers[0]["meta_info"]["finish_reason"]["type"] == "abort"
    later = threading.Thread(target=lambda: answers.append(
        generate(slow, text="one two", sampling_params={"max_new_tokens": 2}).json()))
    later.start()
    wait_until(lambda: in_engine(slow) == 1, "it does not come")
    assert len(answers) == 1
    requests.post(slow.url + "/continue_generation", json={}, timeout=60)
    later.join(60)
    assert answers[1]["meta_info"]["completion_tokens"] == 2


def test_weights_are_updated_from_a_folder(server, tmp_path):
    url = server.url + "/update_weights_from_disk"
    assert requests.post(url, json={"model_path": str(DEMO)}, timeout=60).status_code == 200
    answer = requests.post(url, json={"model_path": str(tmp_path / "none")}, timeout=60)
    assert answer.status_code in (400, 404)
    assert "Failed to find the weights" in answer.text


def test_requests_are_aborted_before_their_weights_are_replaced(slow):
    # Its scheduler makes nothing of abort_all_requests, and dies where its cache is flushed while requests run.
    answers = []
    body = {"text": "one two", "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}}
    threads = [threading.Thread(target=lambda: answers.append(generate(slow, **body).json())) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: in_engine(slow) == 3, "they do not all run")
    answer = requests.post(slow.url + "/update_weights_from_disk", timeout=60,
                           json={"model_path": str(DEMO), "abort_all_requests": True})
    assert answer.status_code == 200, answer.text
    for thread in threads:
        thread.join(60)
    assert [answer["meta_info"]["finish_reason"]["type"] for answer in answers] == ["abort"] * 3
    assert generate(slow, text="a", sampling_params={"max_new_tokens": 2}).status_code == 200


def test_what_an_update_asks_for_reaches_the_scheduler_or_is_refused_by_name(start):
    server = start(*flags())
    url = server.url + "/update_weights_from_disk"
    body = {"model_path": str(DEMO), "flush_cache": False, "token_step": 7, "torch_empty_cache": True, "keep_pause": True}
    assert requests.post(url, json=body, timeout=60).status_code == 200
    wait_until(lambda: "weights: flush_cache False, token_step 7, torch_empty_cache True" in server.output(), "it does not reach it")
    assert requests.get(server.url + "/get_server_info", timeout=60).json()["is_pause"] is True
    assert requests.post(server.url + "/continue_generation", timeout=60).status_code == 200
    for wrong in ({"token_step": "7"}, {"draft_only": True}, {"manifest": []}):
        answer = requests.post(url, json={"model_path": str(DEMO), **wrong}, timeout=60)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == next(iter(wrong)), answer.text


def test_embeddings_come_from_an_embedding_engine(start):
    server = start(*flags("--is-embedding"))
    answer = requests.post(server.url + "/v1/embeddings", json={"input": ["one", "two words", "one"]}, timeout=60).json()
    vectors = [row["embedding"] for row in answer["data"]]
    assert vectors[0] == vectors[2] != vectors[1]
    assert len(vectors[0]) == json.loads((DEMO / "config.json").read_text())["hidden_size"]
    assert requests.post(server.url + "/v1/embeddings", json={"input": "word " * 3000}, timeout=60).status_code == 400


def test_sparse_embeddings_are_weights_by_token(start):
    # They ended as frames that cannot be read.
    server = start(*flags("--is-embedding", "--stand-in-sparse"))
    post = lambda path, **body: requests.post(server.url + path, json=body, timeout=60)
    for answer in (post("/v1/embeddings", input=[[7, 9, 7]]), post("/v1/embeddings", input=[[7, 9, 7]], encoding_format="base64")):
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"][0]["embedding"] == {"7": 0.5, "9": 0.25}
    assert post("/encode", input_ids=[7]).json()["embedding"] == {"7": 0.25}
    cut = post("/v1/embeddings", input=[[7]], normalize=True)
    assert cut.status_code == 400 and "sparse" in cut.text, cut.text
    stub = Client(f"127.0.0.1:{server.port}").sglang
    with pytest.raises(grpc.RpcError) as refused:
        stub.Embed(input_ids=[7])
    assert "sparse" in refused.value.details()
    assert server.metric("portico_engine_bad_frames_total") == 0


def test_the_death_of_the_engine_is_a_503_at_once(start):
    server = start(*flags("--stand-in-itl-ms", "20"))
    response = requests.post(server.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    lines = response.iter_lines()
    next(lines)
    kill_engine(server)
    began = time.monotonic()
    rest = b"".join(lines)
    assert time.monotonic() - began < 30
    assert b"the engine failed" in rest
    answer = generate(server, text="x")
    assert answer.status_code == 503
    assert requests.get(server.url + "/metrics", timeout=60).status_code == 200


def engine_pid(server):
    # A process that has just been forked still has the server's own command line.
    children = subprocess.run(["pgrep", "-P", str(server.process.pid), "-f", "--", "--ipc-dir"], capture_output=True, text=True).stdout.split()
    assert len(children) == 1, children
    return int(children[0])


def kill_engine(server):
    os.kill(engine_pid(server), signal.SIGKILL)


def test_a_dead_engine_is_started_again_where_that_is_wanted(start):
    server = start(*flags(portico=("--restart-engine",)))
    kill_engine(server)
    wait_until(lambda: generate(server, text="x").status_code == 503, "its death goes unnoticed")
    wait_until(lambda: generate(server, text="x", sampling_params={"max_new_tokens": 1}).status_code == 200,
               "it does not come back")


@pytest.mark.parametrize("fault", ["truncated", "unknown", "garbage"])
def test_a_bad_frame_ends_no_more_than_the_requests_it_names(start, fault):
    server = start(*flags("--stand-in-fault", fault, "--stand-in-every", "7"))
    good = 0
    for _ in range(10):
        try:
            answer = requests.post(server.url + "/generate", timeout=10, json={
                "text": "one two", "sampling_params": {"max_new_tokens": 2}})
            good += answer.status_code == 200
        except requests.Timeout:
            pass  # the frame did not say whose it was
    assert good >= 7
    wait_until(lambda: "cannot be read" in server.output(), "the log is silent")
    assert server.metric("portico_engine_bad_frames_total") >= 1


def test_a_peer_that_does_not_speak_the_protocol_is_disconnected_and_counted(start):
    server = start(*flags())
    command = pathlib.Path(f"/proc/{engine_pid(server)}/cmdline").read_text().split("\0")
    folder = command[command.index("--ipc-dir") + 1]
    for name in ("tokenizer", "detokenizer"):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(60)
            peer.connect(f"{folder}/{name}")
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while peer.recv(100):
                pass
    assert generate(server, text="x", sampling_params={"max_new_tokens": 1}).status_code == 200
    assert server.metric("portico_engine_bad_frames_total") == 2
    assert server.output().count("is disconnected: it does not speak ZMTP") == 2


def test_the_engine_ends_with_the_server(start):
    server = start(*flags())
    pid = engine_pid(server)
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the engine is left alone")
    server.stop = lambda: None


def test_an_engine_that_fails_to_start_says_why(tmp_path):
    server = Server(*flags("--stand-in-fail", "no such device"), wait=False)
    assert server.process.wait(60) == 1
    assert "SGLang cannot be started: no such device" in server.output()


def test_a_running_engine_is_joined_and_outlives_the_server(tmp_path, start):
    facts = tmp_path / "facts.json"
    engine = subprocess.Popen([sys.executable, STAND_IN, "--ipc-dir", tmp_path, "--facts", facts,
                               "--model-path", DEMO], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        wait_until(facts.exists, "it does not start")
        for _ in range(2):
            server = Server("--engine", "sglang", "--attach", facts, "--model-path", DEMO)
            assert generate(server, text="one two", sampling_params={"max_new_tokens": 2}).status_code == 200
            server.stop()
            assert engine.poll() is None
    finally:
        engine.kill()
        engine.wait()
