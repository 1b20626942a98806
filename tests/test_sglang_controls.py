"""Adapters, sessions, ranks and the scheduler's own controls, before the stand-in for SGLang's scheduler."""
import base64
import json

import pytest
import requests
from conftest import Server, wait_until

from test_sglang import DEMO, events, flags, generate


@pytest.fixture(scope="module")
def server():
    server = Server(*flags("--enable-lora", "--enable-return-hidden-states", "--enable-priority-scheduling",
                           "--disable-radix-cache", "--enable-custom-logit-processor"))
    yield server
    server.stop()


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=60)


def short(server, **body):
    return generate(server, **{"text": "one two", "sampling_params": {"max_new_tokens": 2}, **body})


def test_a_session_continues_the_request_that_its_client_names(server):
    session = post(server, "/open_session", capacity_of_str_len=1000).json()
    first = short(server, rid="turn-1", session_params={"id": session}, input_ids=[500, 501], text=None).json()
    assert first["meta_info"]["prompt_tokens"] == 2
    second = short(server, rid="turn-2", session_params={"id": session, "rid": "turn-1"}, input_ids=[502], text=None).json()
    assert second["meta_info"]["prompt_tokens"] == 3
    assert second["output_ids"] == [500, 501]
    assert post(server, "/close_session", session_id=session).status_code == 200


def test_a_session_that_is_not_open_or_has_no_such_request_is_the_clients_fault(server):
    assert post(server, "/open_session", capacity_of_str_len=10, session_id="named").json() == "named"
    again = post(server, "/open_session", capacity_of_str_len=10, session_id="named")
    assert again.status_code == 400 and "open already" in again.text
    for params in ({"id": "other"}, {"id": "named", "rid": "nobody"}, {"id": 7}):
        answer = short(server, session_params=params)
        assert answer.status_code == 400, params
        assert answer.json()["error"]["param"] == "session_params"
    assert post(server, "/close_session", session_id="named").status_code == 200
    assert post(server, "/close_session", session_id="named").status_code == 404
    for body in ({}, {"capacity_of_str_len": 0}, {"capacity_of_str_len": 10, "timeout": -1}):
        assert post(server, "/open_session", **body).status_code == 400


def test_adapters_are_loaded_used_and_unloaded(server, tmp_path):
    assert short(server, lora_path="a").status_code == 400
    loaded = post(server, "/load_lora_adapter", lora_name="a", lora_path=str(tmp_path))
    assert loaded.status_code == 200 and loaded.json()["loaded_adapters"] == {"a": str(tmp_path)}
    assert post(server, "/load_lora_adapter", lora_name="a", lora_path=str(tmp_path)).status_code == 400
    assert short(server, lora_path="a").status_code == 200
    both = short(server, text=["one", "two"], lora_path=["a", None])
    assert both.status_code == 200 and len(both.json()) == 2
    chat = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "x"}], max_tokens=1, lora_path="a")
    assert chat.status_code == 200
    assert post(server, "/unload_lora_adapter", lora_name="a").json()["loaded_adapters"] == {}
    assert post(server, "/unload_lora_adapter", lora_name="a").status_code == 404
    refused = post(server, "/load_lora_adapter", lora_name="b", lora_path="/nowhere/at/all")
    assert refused.status_code == 400 and refused.json()["error_message"] == "no such folder"


def test_an_adapter_in_use_is_not_unloaded(start, tmp_path):
    server = start(*flags("--enable-lora", "--stand-in-itl-ms", "20"))
    post(server, "/load_lora_adapter", lora_name="a", lora_path=str(tmp_path))
    stream = requests.post(server.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "lora_path": "a",
        "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    next(stream.iter_lines())
    refused = post(server, "/unload_lora_adapter", lora_name="a")
    assert refused.status_code == 400 and "in use" in refused.text
    stream.close()
    server.settle()
    wait_until(lambda: post(server, "/unload_lora_adapter", lora_name="a").status_code == 200, "it stays in use")


def test_hidden_states_come_as_sglang_nests_them(server):
    body = {"input_ids": [500, 501], "text": None, "return_hidden_states": True}
    meta = short(server, **body).json()["meta_info"]
    assert meta["hidden_states"] == [[[500.0, 0.25], [501.0, 0.25]], [501.0, 0.5]]
    meta = short(server, **{**body, "return_hidden_states": "last"}).json()["meta_info"]
    assert meta["hidden_states"] == [501.0, 0.5]
    assert "hidden_states" not in short(server).json()["meta_info"]


def last_event(response):
    """The choice in the last event that has one."""
    return [e["choices"][0] for e in events(response) if e["choices"]][-1]


@pytest.mark.parametrize("wanted, tokens, states", [(True, 2, [501.0, 0.5]), (True, 1, []), ("last", 1, [500.0, 0.5])])
def test_completions_have_the_hidden_states_of_their_last_token(server, wanted, tokens, states):
    body = dict(prompt=[500, 501], max_tokens=tokens, ignore_eos=True, return_hidden_states=wanted)
    whole = post(server, "/v1/completions", **body).json()
    assert whole["choices"][0]["hidden_states"] == states
    response = requests.post(server.url + "/v1/completions", json={**body, "stream": True}, stream=True, timeout=60)
    assert last_event(response) == {"index": 0, "text": "", "logprobs": None, "finish_reason": None, "hidden_states": states}
    assert "hidden_states" not in post(server, "/v1/completions", **{**body, "return_hidden_states": False}).text


def test_chats_have_the_hidden_states_of_every_choices_last_token(server):
    body = dict(messages=[{"role": "user", "content": "one two"}], max_tokens=3, n=2, return_hidden_states="last")
    choices = post(server, "/v1/chat/completions", **body).json()["choices"]
    assert [len(c["hidden_states"]) for c in choices] == [2, 2]
    response = requests.post(server.url + "/v1/chat/completions", json={**body, "n": 1, "stream": True}, stream=True, timeout=60)
    assert last_event(response)["delta"] == {"hidden_states": choices[0]["hidden_states"], "reasoning_content": None}
    refused = post(server, "/v1/chat/completions", **{**body, "return_hidden_states": "first"})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "return_hidden_states"


def test_rows_of_numbers_stand_for_a_prompt(server):
    width = json.loads((DEMO / "config.json").read_text())["hidden_size"]
    answer = short(server, text=None, input_embeds=[[0.5] * width] * 3)
    assert answer.status_code == 200
    assert answer.json()["output_ids"] == [width, width]
    assert short(server, text=None, input_embeds=[[0.5] * 3]).status_code == 400
    assert short(server, text=None, input_embeds=[[0.5] * width, [1.0]]).status_code == 400


def test_rows_of_numbers_are_refused_where_the_scheduler_would_die_of_them(start):
    """It makes bfloat16 of them whatever the weights are."""
    server = start(*flags("--disable-radix-cache", "--dtype", "float32"))
    refused = short(server, text=None, input_embeds=[[0.5] * 4])
    assert refused.status_code == 400 and "input_embeds" in refused.text


def test_patterns_and_processors_that_the_scheduler_would_die_of_are_refused(server):
    for sampling in ({"stop_regex": "("}, {"stop_regex": ["a", "b**"]}, {"stop_regex": "[z-a]"}):
        refused = short(server, sampling_params=sampling)
        assert refused.status_code == 400 and "stop_regex" in refused.text
    for processor in ("7b7d", "{}", '{"callable": "xyz"}', '{"callable": "abc"}'):
        refused = short(server, custom_logit_processor=processor)
        assert refused.status_code == 400 and "custom_logit_processor" in refused.text
    assert short(server, custom_logit_processor='{"callable": "80"}').status_code == 200
    assert short(server, sampling_params={"stop_regex": "[0-9]+", "max_new_tokens": 2}).status_code == 200


def test_what_other_engines_lack_is_refused_with_its_name(mock):
    for field, value in [("lora_path", "a"), ("session_params", {"id": "s"}), ("return_hidden_states", True),
                         ("custom_logit_processor", "x"), ("extra_key", "k"), ("bootstrap_host", "h"),
                         ("routed_dp_rank", 1), ("priority", 1), ("input_embeds", [[1.0]])]:
        body = {"text": "x", field: value}
        if field == "input_embeds":
            del body["text"]
        answer = requests.post(mock.url + "/generate", json=body, timeout=60)
        assert answer.status_code == 400, field
        named = "data_parallel_rank" if field == "routed_dp_rank" else field
        assert answer.json()["error"]["param"] == named
    assert requests.post(mock.url + "/open_session", json={"capacity_of_str_len": 5}, timeout=60).status_code == 400
    assert requests.post(mock.url + "/slow_down", json={"forward_sleep_time": 1}, timeout=60).status_code == 400


def test_the_schedulers_state_comes_without_keys(server):
    answer = requests.get(server.url + "/get_internal_state", timeout=60)
    assert answer.status_code == 200
    state = answer.json()["replies"][0]["internal_state"]
    assert state["effective_max_running_requests_per_dp"] == 256
    assert "secret" not in answer.text


def test_controls_pass_through_and_their_fields_are_checked(server):
    assert post(server, "/set_internal_state", server_args={"pp_max_micro_batch_size": 8}).json()["replies"] == [{"updated": True}]
    assert post(server, "/slow_down", forward_sleep_time=None).status_code == 200
    assert post(server, "/release_memory_occupation", tags=["weights"]).status_code == 200
    assert post(server, "/resume_memory_occupation").status_code == 200
    tensors = base64.b64encode(b"12345").decode()
    answer = post(server, "/update_weights_from_tensor", serialized_named_tensors=[tensors])
    assert answer.json()["success"] and answer.json()["message"] == "5 bytes"
    for path, body in [("/slow_down", {}), ("/slow_down", {"forward_sleep_time": "x"}), ("/slow_down", {"other": 1}),
                       ("/set_internal_state", {"server_args": 7}), ("/release_memory_occupation", {"rid": "x"}),
                       ("/release_memory_occupation", {"tags": [1]}),
                       ("/update_weights_from_tensor", {"serialized_named_tensors": ["!"]})]:
        assert post(server, path, **body).status_code == 400, (path, body)
    assert short(server).status_code == 200  # it still runs


def test_a_control_that_the_scheduler_would_die_of_is_refused(start):
    server = start(*flags("--stand-in-itl-ms", "50"))
    stream = requests.post(server.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    next(stream.iter_lines())
    busy = post(server, "/release_memory_occupation")
    assert busy.status_code == 400 and "pause" in busy.text
    stream.close()
    server.settle()


def test_a_priority_and_a_rank_are_checked_against_the_engine(server):
    assert short(server, priority=3).status_code == 200
    assert short(server, routed_dp_rank=0).status_code == 200
    assert short(server, routed_dp_rank=1).status_code == 400
    assert short(server, bootstrap_host="h").status_code == 400
