"""What one request may do to the server: end before it begins, cost too much, or bring a file that asks for all memory."""
import os
import re
import resource
import struct
import subprocess
import threading

import pytest
import requests

from conftest import SANITIZED, BINARY, ENDLESS, WAIT_SECONDS, wait_until

MOCK = ("--engine", "mock", "--mock-ttft-ms", "60000", "--context-length", "100000")


@pytest.mark.parametrize("way", ["abort_request", "pause_generation"])
def test_a_stream_may_end_before_its_prompt_is_computed(start, way):
    """Ended the process by SIGSEGV: no log-probabilities of the prompt, less the first one."""
    server = start(*MOCK)
    answers = []

    def ask(fields):
        answers.append(requests.post(server.url + "/generate", timeout=WAIT_SECONDS, json={
            "text": "the quick brown fox", "return_logprob": True, "top_logprobs_num": 2, **fields}))

    kinds = [{"logprob_start_len": 2}, {"logprob_start_len": 0}, {"logprob_start_len": 1, "stream": True},
             {"logprob_start_len": 2, "sampling_params": {"n": 2}}, {"logprob_start_len": -1}]
    threads = [threading.Thread(target=ask, args=(fields,)) for fields in kinds]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.metric("portico_requests_running") == 6, "the streams do not run")
    body = {"abort_all": True} if way == "abort_request" else {"mode": "abort"}
    assert requests.post(f"{server.url}/{way}", json=body, timeout=60).status_code == 200
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert [answer.status_code for answer in answers] == [200] * len(kinds)
    assert all('"abort"' in answer.text for answer in answers)
    assert requests.get(server.url + "/health", timeout=60).status_code == 200


def test_requests_that_would_cost_too_much_are_refused_with_both_numbers(start):
    server = start("--engine", "mock", "--context-length", "100000", "--max-request-cost-bytes", "4MiB")
    stops = ["x" * 4096] * 32
    cases = [
        ("/v1/completions", {"prompt": "a", "stop": ["x" * 4097]}, "stop"),
        ("/v1/completions", {"prompt": "a", "n": 128, "best_of": 128, "max_tokens": 90000}, "n"),
        ("/v1/completions", {"prompt": ["a"] * 2000, "max_tokens": 100}, "prompt"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "logprobs": True, "top_logprobs": 20,
                                  "max_tokens": 90000}, "top_logprobs"),
        ("/generate", {"text": "a", "sampling_params": {"stop_token_ids": [5] * 4097}}, "stop_token_ids"),
        ("/generate", {"text": ["a b"] * 4000, "sampling_params": {"max_new_tokens": 1}}, "text"),
        ("/v1/score", {"query": "q " * 5000, "items": ["a"] * 1000, "label_token_ids": [5]}, "items"),
    ]
    for path, body, field in cases:
        answer = requests.post(server.url + path, json=body, timeout=60)
        assert answer.status_code == 400, (path, answer.text)
        assert answer.json()["error"]["param"] == field, (path, answer.text)
    costs = re.search(r"at least (\d+) bytes, and --max-request-cost-bytes is (\d+)",
                      requests.post(server.url + "/v1/completions", timeout=60,
                                    json={"prompt": ["a"] * 2000, "max_tokens": 100}).text)
    assert int(costs[1]) > int(costs[2]) == 4 << 20
    fits = requests.post(server.url + "/v1/completions", timeout=60,
                         json={"prompt": "a", "stop": stops, "n": 16, "max_tokens": 8})
    assert fits.status_code == 200, fits.text


@pytest.mark.parametrize("path, options, prompts, field", [
    ("/v1/completions", '"n": 128, "max_tokens": 90000', '"prompt": ["a"%s]', "n"),
    ("/v1/completions", '"max_tokens": 90000', '"prompt": [[5]%s]', "prompt"),
    ("/v1/chat/completions", '"n": 128, "max_completion_tokens": 90000', '"messages": [{"role": "user"}%s]', "n"),
    ("/generate", '"sampling_params": {"n": 128, "max_new_tokens": 90000}', '"text": ["a"%s]', "sampling_params"),
    ("/generate", '"sampling_params": {"max_new_tokens": 90000}', '"input_ids": [[5]%s]', "input_ids"),
    ("/v1/score", '"query": [5' + ", 5" * 128 * 8 + '], "label_token_ids": [90000]', '"items": [[5]%s]', "items")])
def test_what_a_long_request_would_cost_is_known_without_its_prompts(start, path, options, prompts, field):
    """All of it was read first: 20 ms for 4 MiB. These prompts would be refused if they were."""
    server = start("--engine", "mock", "--context-length", "100000", "--max-request-cost-bytes", "4MiB")
    body = "{%s, %s}" % (options, prompts % ((", " + "nonsense" * 6) * 1400))
    answer = requests.post(server.url + path, data=body, headers={"content-type": "application/json"}, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field, answer.text
    assert "--max-request-cost-bytes is" in answer.text or "must be at most 4096, got" in answer.text
    cheap = body.replace("90000", "1").replace("128", "1").replace(", 5" * 1024, "")
    wrong = requests.post(server.url + path, data=cheap, headers={"content-type": "application/json"}, timeout=60)
    assert wrong.status_code == 400 and "not valid JSON" in wrong.text, wrong.text


def test_the_log_tells_how_each_request_ended(start):
    server = start("--engine", "mock", "--context-length", "100000", "--log-requests", "--mock-itl-ms", "5")
    requests.post(server.url + "/v1/completions", json={"prompt": "a b", "max_tokens": 3}, timeout=60)
    requests.post(server.url + "/generate", timeout=60,
                  json={"text": "a b", "rid": "native-1", "sampling_params": {"max_new_tokens": 2, "n": 2}})
    requests.post(server.url + "/v1/score", timeout=60,
                  json={"query": "a", "items": ["b", "c"], "label_token_ids": [5], "rid": "score-1"})
    with requests.post(server.url + "/generate", stream=True, timeout=60, json={
            "text": "a b", "rid": "left-1", "stream": True, "sampling_params": {"max_new_tokens": ENDLESS}}) as stream:
        next(stream.iter_lines())
    wait_until(lambda: "left-1: the client left" in server.output(), server.output)
    log = server.output()
    named = re.search(r"request (cmpl-\S+): model \S+, 1 prompt, 2 prompt tokens, n 1, max_tokens 3, temperature 1.00", log)
    assert named and f"request {named[1]}: ended after" in log, log
    assert "request native-1: model" in log and "n 2, max_tokens 2" in log
    assert re.search(r"request native-1: ended after .* ms: 2 length; .* prompt tokens .*, 4 new tokens", log), log
    assert "request score-1: ended" in log


def damaged_gguf(path):
    """The head of a GGUF file whose vocabulary has two billion tokens, and no tokenizer."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    def entry(key, kind, value):
        return text(key) + struct.pack("<I", kind) + value

    def number(key, value):
        return entry(key, 4, struct.pack("<I", value))

    entries = [entry("general.architecture", 8, text("qwen3")), entry("tokenizer.ggml.model", 8, text("none")),
               number("qwen3.vocab_size", 0x80000180), number("qwen3.block_count", 1),
               number("qwen3.context_length", 64), number("qwen3.embedding_length", 32),
               number("qwen3.feed_forward_length", 32), number("qwen3.attention.head_count", 2),
               entry("qwen3.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-6))]
    tensors = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 32, 384, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(entries)) + b"".join(entries) + tensors
    path.write_bytes(head + bytes(-len(head) % 32) + bytes(32 * 384 * 4))


def test_a_damaged_gguf_file_is_refused_by_name(start, tmp_path):
    """Ended the process by SIGABRT in the allocator, at the start and by an update of the weights."""
    bad = tmp_path / "bad.gguf"
    damaged_gguf(bad)
    limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2)  # ASan maps terabytes
    ended = subprocess.run([BINARY, "serve", "--port", "0", "--model-path", bad], capture_output=True, text=True,
                           timeout=WAIT_SECONDS, preexec_fn=limit)
    assert ended.returncode == 1, ended.stderr
    assert "qwen3.vocab_size is 2147484032, but token_embd.weight has 384" in ended.stderr
    server = start()
    answer = requests.post(server.url + "/update_weights_from_disk", json={"model_path": str(bad)}, timeout=60)
    assert answer.status_code == 400, answer.text
    assert "vocab_size" in answer.json()["message"]
    assert server.chat("hello", max_tokens=2).status_code == 200


def test_an_update_names_its_weights(start):
    server = start()
    model = requests.get(server.url + "/get_model_info", timeout=60).json()
    assert model["weight_version"] == "default"
    answer = requests.post(server.url + "/update_weights_from_disk", timeout=WAIT_SECONDS,
                           json={"model_path": model["model_path"], "weight_version": "step-7"})
    assert answer.status_code == 200, answer.text
    assert requests.get(server.url + "/get_model_info", timeout=60).json()["weight_version"] == "step-7"
    meta = requests.post(server.url + "/generate", timeout=60,
                         json={"text": "hello", "sampling_params": {"max_new_tokens": 3}}).json()["meta_info"]
    assert meta["weight_version"] == "step-7"
    assert meta["num_retractions"] == 0
    assert meta["weight_versions"] == [{"version": "step-7", "start": 0, "end": meta["completion_tokens"]}]


def test_health_answers_while_weights_are_read(start):
    """Weights are read on a thread of their own: long prompts and controls go on meanwhile."""
    server = start()
    model = requests.get(server.url + "/get_model_info", timeout=60).json()["model_path"]
    statuses = []

    def update():
        for _ in range(3):
            statuses.append(requests.post(server.url + "/update_weights_from_disk", timeout=WAIT_SECONDS,
                                          json={"model_path": model}).status_code)

    thread = threading.Thread(target=update)
    thread.start()
    long_prompt = "word " * 20000  # planned on the pool
    while thread.is_alive():
        assert requests.post(server.url + "/v1/completions", timeout=60,
                             json={"prompt": long_prompt}).status_code == 400
    assert statuses == [200] * 3


def test_threads_follow_the_affinity_mask(start):
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them)})
    try:
        server = start("--engine", "mock")
    finally:
        os.sched_setaffinity(0, all_of_them)
    assert server.metric("portico_cpu_pool_threads") == 1
