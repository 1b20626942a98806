"""What clients and checkers rely on at the edge: statuses, fields, names, limits."""
import json
import socket
import threading

import pytest
import requests

from conftest import ENDLESS, wait_until

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
HELLO = [{"role": "user", "content": "Hello!"}]


def post(server, path, body, **keywords):
    data = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return requests.post(server.url + path, data=data, headers={"content-type": "application/json"}, timeout=60,
                         **keywords)


WRONG_CHAT = [
    ("messages", {"messages": []}),
    ("messages", {"messages": "hello"}),
    ("messages", {"messages": [{"role": "wizard", "content": "x"}]}),
    ("messages", {"messages": [{"role": "user"}]}),
    ("messages", {"messages": [{"content": "x"}]}),
    ("messages", {"messages": [7]}),
    ("messages", {}),
    ("temperature", {"messages": HELLO, "temperature": "7"}),
    ("temperature", {"messages": HELLO, "temperature": -0.1}),
    ("top_p", {"messages": HELLO, "top_p": 0}),
    ("top_p", {"messages": HELLO, "top_p": 1.1}),
    ("top_k", {"messages": HELLO, "top_k": 0}),
    ("min_p", {"messages": HELLO, "min_p": 1.5}),
    ("n", {"messages": HELLO, "n": 0}),
    ("n", {"messages": HELLO, "n": 129}),
    ("n", {"messages": HELLO, "n": 1.5}),
    ("max_tokens", {"messages": HELLO, "max_tokens": 0}),
    ("max_completion_tokens", {"messages": HELLO, "max_completion_tokens": -1}),
    ("stream", {"messages": HELLO, "stream": "yes"}),
    ("stream_options", {"messages": HELLO, "stream_options": {"include_usage": True}}),
    ("top_logprobs", {"messages": HELLO, "top_logprobs": 3}),
    ("top_logprobs", {"messages": HELLO, "logprobs": True, "top_logprobs": 21}),
    ("frequency_penalty", {"messages": HELLO, "frequency_penalty": 2.5}),
    ("presence_penalty", {"messages": HELLO, "presence_penalty": -2.5}),
    ("repetition_penalty", {"messages": HELLO, "repetition_penalty": 0}),
    ("stop", {"messages": HELLO, "stop": 7}),
    ("stop", {"messages": HELLO, "stop": ["x"] * 33}),
    ("logit_bias", {"messages": HELLO, "logit_bias": {"99999999": 1}}),
    ("logit_bias", {"messages": HELLO, "logit_bias": {"1": 101}}),
    ("response_format", {"messages": HELLO, "response_format": {"type": "json_object"}}),
    ("tool_choice", {"messages": HELLO, "tool_choice": "required",
                     "tools": [{"type": "function", "function": {"name": "f"}}]}),
    ("regex", {"messages": HELLO, "regex": "a+"}),
    ("lora_path", {"messages": HELLO, "lora_path": "x"}),
    ("model", {"messages": HELLO, "model": 7}),
]


@pytest.mark.parametrize("param,body", WRONG_CHAT)
def test_a_wrong_chat_field_is_a_400_that_names_it(mock, param, body):
    answer = post(mock, CHAT, body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param and error["message"] and error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type", "param", "code"}


WRONG_COMPLETION = [
    ("prompt", {}),
    ("prompt", {"prompt": []}),
    ("prompt", {"prompt": ["a", 7]}),
    ("prompt", {"prompt": [99999999]}),
    ("prompt", {"prompt": [-1]}),
    ("suffix", {"prompt": "x", "suffix": "y"}),
    ("max_tokens", {"prompt": "x", "max_tokens": 0}),
    ("logprobs", {"prompt": "x", "logprobs": 21}),
    ("best_of", {"prompt": "x", "n": 3, "best_of": 2}),
]


@pytest.mark.parametrize("param,body", WRONG_COMPLETION)
def test_a_wrong_completion_field_is_a_400_that_names_it(mock, param, body):
    answer = post(mock, COMPLETIONS, body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"x"', b"nul", b'{"messages": NaN}', b'{"a": 1e999}',
                                  b'{"messages": "\xff"}', b"[" * 100000, b'{"a":' * 50000])
def test_what_is_no_json_object_is_a_400(mock, body):
    answer = post(mock, CHAT, body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, "/generate", "/tokenize"])
def test_a_body_that_stops_being_json_names_the_place(mock, path):
    answer = post(mock, path, '{"model": "é",\n "n": 1 "x"}')
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].endswith("is not valid JSON at line 2, column 9"), answer.text


def test_a_prompt_longer_than_the_context_names_both_numbers(mock):
    context = requests.get(mock.url + "/get_model_info", timeout=60).json()["max_model_len"]
    answer = post(mock, COMPLETIONS, {"prompt": [5] * (context + 7), "max_tokens": 4})
    message = answer.json()["error"]["message"]
    assert answer.status_code == 400 and str(context) in message and str(context + 7) in message
    answer = post(mock, COMPLETIONS, {"prompt": [5] * 10, "max_tokens": context})
    message = answer.json()["error"]["message"]
    assert answer.status_code == 400 and str(context) in message and str(context + 10) in message


@pytest.mark.parametrize("asked", [100_000_000, 3_000_000_000, 2**63 - 1])
@pytest.mark.parametrize("path, field, body", [
    (CHAT, "max_tokens", {"messages": HELLO}), (CHAT, "max_completion_tokens", {"messages": HELLO}),
    (COMPLETIONS, "max_tokens", {"prompt": "Hello!"}), ("/generate", "max_new_tokens", {"text": "Hello!"})])
def test_an_answer_longer_than_the_context_hears_of_the_context_however_long(mock, path, field, body, asked):
    # Beyond 32 bits it was "must be an integer of at least 1".
    more = {"sampling_params": {field: asked}} if path == "/generate" else {field: asked}
    answer = post(mock, path, {**body, **more})
    assert answer.status_code == 400
    assert "Requested token count exceeds the model's maximum context length of 32768 tokens" in answer.text
    assert f"{asked} tokens for the completion" in answer.text and field in answer.text


@pytest.mark.parametrize("body, text", [
    ({"min_tokens": 3_000_000_000}, "min_tokens must be an integer from 0 to 2147483647, got 3000000000"),
    ({"top_k": 3_000_000_000}, "top_k must be -1 (all tokens) or an integer from 1 to 2147483647, got 3000000000"),
    ({"n": 3_000_000_000}, "n must be an integer from 1 to 128, got 3000000000"),
    ({"priority": 2**40}, "priority must be an integer from -2147483647 to 2147483647, got 1099511627776"),
    ({"max_tokens": 2**63}, "max_tokens must be an integer from 1 to 9223372036854775807, got 9223372036854775808"),
    ({"max_tokens": 0}, "max_tokens must be an integer of at least 1, got 0")])
def test_a_number_out_of_range_hears_its_true_range(mock, body, text):
    answer = post(mock, CHAT, {"messages": HELLO, **body})
    assert answer.status_code == 400 and text in answer.json()["error"]["message"]


def test_a_model_that_is_not_served_is_a_404(mock):
    error = post(mock, CHAT, {"messages": HELLO, "model": "other"})
    assert error.status_code == 404
    assert error.json()["error"]["code"] == "model_not_found" and error.json()["error"]["param"] == "model"


def test_unknown_paths_and_methods_are_told(mock):
    assert requests.get(mock.url + "/no/such", timeout=60).status_code == 404
    answer = requests.get(mock.url + CHAT, timeout=60)
    assert answer.status_code == 405 and answer.headers["allow"] == "POST"


def test_a_body_over_the_limit_is_a_413_and_a_head_over_it_a_431(mock):
    with socket.create_connection(("127.0.0.1", mock.port)) as s:
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n")
        assert b" 413 " in s.recv(4096).split(b"\r\n")[0]
    answer = requests.get(mock.url + "/health", headers={"x-big": "x" * 70000}, timeout=60)
    assert answer.status_code == 431


def test_a_content_type_that_is_not_json_is_a_415(mock):
    answer = requests.post(mock.url + CHAT, data="x=1", timeout=60,
                           headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 415
    answer = requests.post(mock.url + CHAT, data=json.dumps({"messages": HELLO, "max_tokens": 2}), timeout=60)
    assert answer.status_code == 200


def test_the_mock_engine_repeats_the_prompt_exactly_max_tokens_long(mock):
    ids = post(mock, "/tokenize", {"prompt": "alpha beta gamma"}).json()["tokens"]
    answer = post(mock, COMPLETIONS, {"prompt": "alpha beta gamma", "max_tokens": 2 * len(ids) + 1,
                                      "return_token_ids": True}).json()
    choice = answer["choices"][0]
    assert choice["token_ids"] == ids + ids + ids[:1]
    assert choice["prompt_token_ids"] == ids
    assert choice["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": len(ids), "completion_tokens": 2 * len(ids) + 1,
                               "total_tokens": 3 * len(ids) + 1, "prompt_tokens_details": {"cached_tokens": 0},
                               "reasoning_tokens": 0}


def events(response):
    return [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]


def test_a_stream_has_one_event_a_token_and_ends_with_done(mock):
    answer = post(mock, CHAT, {"messages": HELLO, "max_tokens": 9, "stream": True,
                               "stream_options": {"include_usage": True}})
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = events(answer)
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "reasoning_content": None}
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] == 9
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert len(chunks) == 1 + 9 + 1 + 1
    assert len({c["id"] for c in chunks}) == 1


def test_continuous_usage_counts_up(mock):
    answer = post(mock, CHAT, {"messages": HELLO, "max_tokens": 4, "stream": True,
                               "stream_options": {"include_usage": True, "continuous_usage_stats": True}})
    counts = [json.loads(line)["usage"]["completion_tokens"] for line in events(answer)[:-1]]
    assert counts == sorted(counts) and counts[-1] == 4


def test_a_long_prompt_is_planned_off_the_shard_and_answered_the_same(mock):
    text = "one two three " * 6000  # above the length that a shard plans itself
    tokens = post(mock, "/tokenize", {"prompt": text}).json()["count"]
    for stream in (False, True):
        answer = post(mock, COMPLETIONS, {"prompt": text, "max_tokens": 5, "stream": stream})
        assert answer.status_code == 200
        if not stream:
            assert answer.json()["usage"]["prompt_tokens"] == tokens
    refused = post(mock, COMPLETIONS, {"prompt": text * 3, "max_tokens": 5})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "prompt"


def test_a_client_that_leaves_while_its_long_prompt_is_planned_leaves_nothing_behind(mock):
    body = json.dumps({"prompt": "one two three " * 6000, "max_tokens": 5000}).encode()
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", mock.port)) as s:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                      b"content-length: %d\r\n\r\n" % len(body) + body)
    mock.settle()


def test_a_stop_string_ends_the_answer_before_it(mock):
    whole = post(mock, COMPLETIONS, {"prompt": "one two three four", "max_tokens": 40}).json()["choices"][0]["text"]
    answer = post(mock, COMPLETIONS, {"prompt": "one two three four", "max_tokens": 40, "stop": ["ee fo"]}).json()
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "stop" and choice["matched_stop"] == "ee fo"
    assert choice["text"] == whole[:whole.index("ee fo")]


def test_tokenize_and_detokenize_are_inverse(mock):
    for text in ("Hello, wörld! 你好 🙂", "  two  spaces\n\n"):
        for prefix in ("", "/v1"):
            tokens = post(mock, prefix + "/tokenize", {"prompt": text}).json()
            assert tokens["count"] == len(tokens["tokens"]) and tokens["max_model_len"] > 0
            assert post(mock, prefix + "/detokenize", {"tokens": tokens["tokens"]}).json()["text"] == text
    rendered = post(mock, "/tokenize", {"messages": HELLO}).json()
    assert rendered["count"] > 2


def test_facts_are_told_without_secrets(start):
    server = start("--engine", "mock", "--api-key", "s3cret-key")
    headers = {"authorization": "Bearer s3cret-key"}
    for path in ("/get_server_info", "/server_info", "/get_model_info", "/model_info", "/version", "/v1/models",
                 "/v1/models/demo", "/health_generate", "/ping", "/readiness"):
        answer = requests.get(server.url + path, headers=headers, timeout=60)
        assert answer.status_code == 200, path
        assert "s3cret-key" not in answer.text, path


def test_an_api_key_is_asked_for_but_not_by_probes(start):
    server = start("--engine", "mock", "--api-key", "s3cret-key")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "s3cret-key"},
                    {"authorization": "Bearer s3cret-key2"}):
        answer = requests.post(server.url + CHAT, json={"messages": HELLO}, headers=headers, timeout=60)
        assert answer.status_code == 401 and answer.json()["error"]["message"]
    assert requests.get(server.url + "/health", timeout=60).status_code == 200
    answer = requests.post(server.url + CHAT, json={"messages": HELLO, "max_tokens": 1}, timeout=60,
                           headers={"authorization": "bearer s3cret-key"})
    assert answer.status_code == 200


def test_a_full_queue_is_a_429_with_retry_after(start):
    server = start("--engine", "mock", "--mock-itl-ms", 200, "--max-running-requests", 1, "--max-queued-requests", 1)
    body = {"messages": HELLO, "max_tokens": ENDLESS}
    threads = []
    for state in ("running", "waiting"):
        threads.append(threading.Thread(target=post, args=(server, CHAT, body)))
        threads[-1].start()
        server.wait_for(f"portico_requests_{state}", 1)
    answer = post(server, CHAT, body)
    assert answer.status_code == 429 and answer.headers["retry-after"]
    assert answer.json()["error"]["code"] == "queue_full"  # it was null, and the gateway's was not
    assert post(server, "/abort_request", {"abort_all": True}).status_code == 200
    for thread in threads:
        thread.join()
    assert post(server, CHAT, {"messages": HELLO, "max_tokens": 1}).status_code == 200


def test_abort_request_ends_a_stream_with_finish_reason_abort(patient):
    patient.settle()
    aborted = patient.metric("portico_requests_aborted_total")
    body = {"messages": HELLO, "max_tokens": ENDLESS, "stream": True, "rid": "to-be-ended"}
    with requests.post(patient.url + CHAT, json=body, stream=True, timeout=60) as answer:
        lines = answer.iter_lines()
        for _ in range(6):
            next(lines)
        assert post(patient, "/abort_request", {"rid": "to-be-ended"}).status_code == 200
        rest = [line for line in lines if line]
    assert rest[-1] == b"data: [DONE]"
    assert json.loads(rest[-2][6:])["choices"][0]["finish_reason"] == "abort"
    assert patient.metric("portico_requests_aborted_total") == aborted + 1


def test_the_request_id_is_taken_or_made(mock):
    answer = requests.get(mock.url + "/v1/models", headers={"x-request-id": "abc-123"}, timeout=60)
    assert answer.headers["x-request-id"] == "abc-123"
    assert len(requests.get(mock.url + "/v1/models", timeout=60).headers["x-request-id"]) >= 16


def test_the_access_log_has_the_id_of_the_answer(start):
    """It had only those that a client had sent."""
    server = start("--engine", "mock", "--access-log")
    made = requests.get(server.url + "/v1/models", timeout=60).headers["x-request-id"]
    bad = requests.get(server.url + "/v1/models", headers={"x-request-id": "a b"}, timeout=60).headers["x-request-id"]
    assert bad != "a b"
    wait_until(lambda: made in server.output() and bad in server.output(), server.output)


def test_metrics_have_the_promised_names(mock):
    post(mock, CHAT, {"messages": HELLO, "max_tokens": 3})
    text = requests.get(mock.url + "/metrics", timeout=60).text
    for name in ("portico_requests_running", "portico_requests_waiting", "portico_requests_aborted_total",
                 "portico_model_healthy",
                 'portico_request_success_total{model_name="demo",finish_reason="length"}', "portico_prompt_tokens_total",
                 "portico_generation_tokens_total", "portico_cached_prompt_tokens_total",
                 "portico_kv_cache_usage_ratio", "portico_time_to_first_token_seconds_count",
                 "portico_inter_token_latency_seconds_count", "portico_e2e_request_latency_seconds_count"):
        sample = name if "{" in name else name + '{model_name="demo"}'
        assert "\n" + sample + " " in "\n" + text, name


def test_sigterm_lets_requests_in_flight_finish(start):
    server = start("--engine", "mock", "--mock-itl-ms", 20)
    body = {"messages": HELLO, "max_tokens": 50, "stream": True}
    with requests.post(server.url + CHAT, json=body, stream=True, timeout=60) as answer:
        lines = answer.iter_lines()
        next(lines)
        server.process.terminate()
        rest = [line for line in lines if line]
    assert rest[-1] == b"data: [DONE]"
    assert server.process.wait(60) == 0


def test_cors_is_off_unless_asked_for(mock, start):
    assert "access-control-allow-origin" not in requests.get(mock.url + "/health", timeout=60).headers
    server = start("--engine", "mock", "--cors-origin", "*")
    answer = requests.options(server.url + CHAT, headers={"origin": "http://x", "access-control-request-method": "POST"},
                              timeout=60)
    assert answer.status_code in (200, 204) and answer.headers["access-control-allow-origin"] == "*"
