"""Adapters, sessions, ranks and the scheduler's own controls, before the stand-in for SGLang's scheduler."""
import base64
import json
import pickle
import threading

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


TENSORS = base64.b64encode(pickle.dumps([])).decode()


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


def test_adapters_are_loaded_from_tensors(server):
    load = lambda **body: post(server, "/load_lora_adapter_from_tensors", lora_name="t", **body)
    loaded = load(config_dict={"r": 8, "target_modules": ["q_proj"]}, serialized_named_tensors=[TENSORS])
    assert loaded.status_code == 200 and loaded.json()["loaded_adapters"] == {"t": "__tensor__"}, loaded.text
    assert short(server, lora_path="t").status_code == 200
    assert post(server, "/unload_lora_adapter", lora_name="t").status_code == 200
    for body, named in [({"config_dict": {}, "serialized_named_tensors": [TENSORS]}, "no rank"),
                        ({"config_dict": {"r": 8}, "serialized_named_tensors": []}, "serialized_named_tensors"),
                        ({"config_dict": {"r": 8}, "serialized_named_tensors": ["MTIz"]}, "serialized_named_tensors"),
                        ({"config_dict": {"r": 8}, "serialized_named_tensors": [TENSORS], "lora_id": "x"}, "lora_id"),
                        ({"config_dict": {"r": 8}, "serialized_named_tensors": [TENSORS], "other": 1}, "other"),
                        ({"config_dict": {"r": 8}, "serialized_named_tensors": [TENSORS], "expected_checksums": {"a": "b"}},
                         "expected_checksums"),
                        ({"serialized_named_tensors": [TENSORS]}, "config_dict")]:
        refused = load(**body)
        assert refused.status_code == 400 and named in refused.text, (body, refused.text)
    assert short(server).status_code == 200  # it still runs


def test_an_adapter_in_use_is_not_unloaded(start, tmp_path):
    server = start(*flags("--enable-lora", "--stand-in-itl-ms", "20"))
    post(server, "/load_lora_adapter", lora_name="a", lora_path=str(tmp_path))
    stream = requests.post(server.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "lora_path": "a",
        "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    lines = stream.iter_lines()  # an iterator that is dropped closes the connection
    next(lines)
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
        assert answer.json()["error"]["param"] == field
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
    assert post(server, "/resume_memory_occupation", tags=["weights"]).status_code == 200
    answer = post(server, "/update_weights_from_tensor", serialized_named_tensors=[TENSORS])
    assert answer.json()["success"] and answer.json()["message"] == f"{len(pickle.dumps([]))} bytes"
    for path, body in [("/slow_down", {}), ("/slow_down", {"forward_sleep_time": "x"}), ("/slow_down", {"forward_sleep_time": 1e300}),
                       ("/slow_down", {"forward_sleep_time": 1 << 63}), ("/slow_down", {"forward_sleep_time": 3601}), ("/slow_down", {"other": 1}),
                       ("/set_internal_state", {"server_args": 7}), ("/release_memory_occupation", {"rid": "x"}),
                       ("/release_memory_occupation", {"tags": [1]}),
                       ("/update_weights_from_tensor", {"serialized_named_tensors": ["!"]}),
                       ("/update_weights_from_tensor", {"serialized_named_tensors": []}),
                       ("/update_weights_from_tensor", {"serialized_named_tensors": ["MTIzNDU="]}),
                       ("/update_weights_from_tensor", {"serialized_named_tensors": [TENSORS], "load_format": "x"}),
                       ("/update_weight_version", {}), ("/update_weight_version", {"new_version": ""}),
                       ("/init_weights_update_group", {"master_address": "127.0.0.1", "master_port": 1, "rank_offset": 0,
                                                       "world_size": 1, "group_name": ""}),
                       ("/freeze_gc", {"gc_threshold": []}), ("/freeze_gc", {"gc_threshold": [1, 2, 3, 4]})]:
        assert post(server, path, **body).status_code == 400, (path, body)
    assert short(server).status_code == 200  # it still runs


def test_a_control_that_the_scheduler_would_die_of_is_refused(start):
    server = start(*flags("--stand-in-itl-ms", "50"))
    stream = requests.post(server.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    lines = stream.iter_lines()  # an iterator that is dropped closes the connection
    next(lines)
    busy = post(server, "/release_memory_occupation")
    assert busy.status_code == 400 and "pause" in busy.text
    stream.close()
    server.settle()


def endless(server, **body):
    """A stream that runs until it is closed."""
    response = requests.post(server.url + "/generate", stream=True, timeout=60, json={
        "text": "one two", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}, **body})
    response.lines = response.iter_lines()  # a dropped iterator closes the connection
    next(response.lines)
    return response


def test_memory_is_released_and_given_back_once(start):
    # SGLang 0.5.23 dies of a resume without a release: it removes the tag from a set that does not have it.
    server = start(*flags())
    early = post(server, "/resume_memory_occupation")
    assert early.status_code == 400 and early.json()["error"]["param"] == "tags", early.text
    assert post(server, "/release_memory_occupation", tags=["kv_cache"]).status_code == 200
    assert post(server, "/release_memory_occupation").status_code == 400  # all, of which one is released
    refused = short(server)
    assert refused.status_code == 503 and "resume_memory_occupation" in refused.text
    assert post(server, "/continue_generation").status_code == 400
    assert post(server, "/resume_memory_occupation", tags=["weights"]).status_code == 400
    assert post(server, "/resume_memory_occupation", tags=["kv_cache"]).status_code == 200
    assert short(server).status_code == 200


def test_memory_that_a_pause_keeps_in_use_is_not_released(start):
    # Paused in place, requests keep their cells: SGLang asserts that it is idle, and dies.
    server = start(*flags("--stand-in-itl-ms", "20"))
    stream = endless(server)
    assert post(server, "/pause_generation", mode="in_place").status_code == 200
    for path, body in [("/release_memory_occupation", {}), ("/update_weights_from_disk", {"model_path": str(DEMO)}),
                       ("/update_weights_from_tensor", {"serialized_named_tensors": [TENSORS]})]:
        refused = post(server, path, **body)
        assert refused.status_code == 400 and "in_place" in refused.text, (path, refused.text)
    kept = post(server, "/update_weights_from_disk", model_path=str(DEMO), flush_cache=False)
    assert kept.status_code == 200, kept.text
    assert post(server, "/pause_generation", mode="retract").status_code == 200
    assert post(server, "/release_memory_occupation").status_code == 200
    assert post(server, "/resume_memory_occupation").status_code == 200
    assert post(server, "/continue_generation").status_code == 200
    stream.close()
    server.settle()


@pytest.mark.parametrize("path, body", [("/update_weights_from_disk", {"model_path": str(DEMO)}),
                                        ("/update_weights_from_tensor", {"serialized_named_tensors": [TENSORS]})])
def test_an_update_waits_for_the_requests_that_run_and_new_ones_wait_for_it(start, path, body):
    # SGLang's front end holds a lock meanwhile; its scheduler dies, or updates the weights and says that it has failed.
    server = start(*flags("--stand-in-itl-ms", "20"))
    stream = endless(server)
    answers, later = [], []
    update = threading.Thread(target=lambda: answers.append(post(server, path, **body)))
    update.start()

    def is_held_back():
        later.append(threading.Thread(target=lambda: answers.append(short(server))))
        later[-1].start()
        later[-1].join(1)
        return later[-1].is_alive()

    wait_until(is_held_back, "requests do not wait for the update")
    stream.close()
    for thread in (update, *later):
        thread.join(60)
    assert [answer.text for answer in answers if answer.status_code != 200] == []
    assert len(answers) == 1 + len(later)


def test_a_pause_does_not_wait_for_an_update_that_waits_for_requests(start):
    server = start(*flags("--stand-in-itl-ms", "20"))
    stream = endless(server)
    answers = []
    update = threading.Thread(target=lambda: answers.append(post(server, "/update_weights_from_disk", model_path=str(DEMO))))
    update.start()
    assert post(server, "/pause_generation", mode="retract").status_code == 200
    update.join(60)
    assert [answer.status_code for answer in answers] == [200]
    assert post(server, "/continue_generation").status_code == 200
    stream.close()
    server.settle()


def test_every_update_names_the_weights_of_the_answers_after_it(start):
    server = start(*flags("--stand-in-itl-ms", "20"))
    version = lambda: requests.get(server.url + "/model_info", timeout=60).json()["weight_version"]
    body = {"serialized_named_tensors": [TENSORS], "weight_version": "step-1"}
    answer = post(server, "/update_weights_from_tensor", **body).json()
    assert answer["success"] and answer["message"].endswith("Weight version updated to step-1.")
    assert version() == "step-1" and short(server).json()["meta_info"]["weight_version"] == "step-1"
    stream = endless(server)
    renamed = post(server, "/update_weight_version", new_version="step-2", abort_all_requests=False)
    assert renamed.status_code == 200 and renamed.json()["new_version"] == "step-2", renamed.text
    assert version() == "step-2"
    assert post(server, "/update_weight_version").status_code == 400  # and nothing is aborted
    assert requests.get(server.url + "/v1/loads", timeout=60).json()["loads"][0]["num_total_reqs"] == 1
    assert post(server, "/update_weight_version", new_version="step-3").status_code == 200  # SGLang's default aborts
    assert events(stream)[-1]["meta_info"]["finish_reason"]["type"] == "abort"
    assert short(server).json()["meta_info"]["weight_versions"][0]["version"] == "step-3"


def test_an_update_from_tensors_aborts_what_runs_where_that_is_asked_for(start):
    server = start(*flags("--stand-in-itl-ms", "20"))
    stream = endless(server)
    answer = post(server, "/update_weights_from_tensor", serialized_named_tensors=[TENSORS], abort_all_requests=True)
    assert answer.status_code == 200, answer.text
    assert events(stream)[-1]["meta_info"]["finish_reason"]["type"] == "abort"


def test_a_priority_and_a_rank_are_checked_against_the_engine(server):
    assert short(server, priority=3).status_code == 200
    assert short(server, routed_dp_rank=0).status_code == 200
    assert short(server, routed_dp_rank=1).status_code == 400
    assert short(server, bootstrap_host="h").status_code == 400


def test_a_half_of_a_pair_is_told_where_the_other_waits(start):
    # Every field of a pair was refused, whatever SGLang had been started as.
    server = start(*flags("--disaggregation-mode", "decode"))
    pair = {"bootstrap_host": "10.0.0.1", "bootstrap_port": 8998}
    answer = short(server, **pair, bootstrap_room=70)
    assert answer.status_code == 200, answer.text
    wait_until(lambda: "pair 10.0.0.1 8998 70" in server.output(), "the room is not told")
    batch = short(server, text=["one", "two"], **pair, bootstrap_room=100, sampling_params={"n": 2, "max_new_tokens": 2})
    assert batch.status_code == 200 and len(batch.json()) == 4, batch.text
    chat = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "x"}], max_tokens=1, n=2, **pair,
                bootstrap_room=200)
    assert chat.status_code == 200, chat.text
    for room in (100, 101, 102, 103, 200, 201):
        wait_until(lambda: f"pair 10.0.0.1 8998 {room}\n" in server.output(), f"nobody waits in room {room}")
    two = post(server, "/v1/completions", prompt=["one", "two"], max_tokens=1, n=2, **pair, bootstrap_room=300)
    assert two.status_code == 200, two.text
    for room in range(300, 304):
        wait_until(lambda: f"pair 10.0.0.1 8998 {room}\n" in server.output(), f"nobody waits in room {room}")
    large = post(server, "/v1/completions", prompt=["one", "two"], max_tokens=1, **pair, bootstrap_room=2**63 - 1)
    assert large.status_code == 400 and large.json()["error"]["param"] == "bootstrap_room"


def test_a_pause_ends_with_or_without_an_empty_cache(start):
    # false was refused, although the scheduler has the field.
    server = start(*flags())
    for emptied in (False, True):
        assert post(server, "/pause_generation", mode="retract").status_code == 200
        assert post(server, "/continue_generation", torch_empty_cache=emptied).status_code == 200
        wait_until(lambda: f"continue: torch_empty_cache {emptied}" in server.output(), "it does not reach the scheduler")


def test_a_profile_of_stages_is_merged_and_named(start):
    server = start(*flags())
    answer = post(server, "/start_profile", profile_by_stage=True, num_steps=4, merge_profiles=True, profile_prefix="run-1")
    assert answer.status_code == 200, answer.text
    wait_until(lambda: "4 steps, None, stages True, merged True, prefix run-1" in server.output(), "the scheduler has not got them")
    assert post(server, "/stop_profile").status_code == 200
    refused = post(server, "/start_profile", profile_by_stage=True)
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "num_steps", refused.text
    assert short(server).status_code == 200
