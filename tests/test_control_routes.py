"""What operators ask is done as it is asked, or refused by the name of what cannot be done. Half of it was answered with
success and left undone: requests went on through abort_all_requests, misspelled fields and other types were passed over."""
import json
import threading

import grpc
import pytest
import requests

from conftest import ENDLESS, WAIT_SECONDS
from grpc_client import Client, fields_at_fault

RUNTIME = "/sglang.runtime.v1.SglangService/"
SCHEDULER = "/sglang.grpc.scheduler.SglangScheduler/"


def post(server, path, body=None):
    return requests.post(server.url + path, json=body, timeout=WAIT_SECONDS)


def info(server):
    return requests.get(server.url + "/get_model_info", timeout=60).json()


def is_paused(server):
    return requests.get(server.url + "/get_server_info", timeout=60).json()["is_pause"]


class Running:
    """A request that runs until somebody ends it, and its answer."""

    def __init__(self, server, **sampling):
        self.answer = requests.post(server.url + "/generate", stream=True, timeout=WAIT_SECONDS, json={
            "text": "Count from one to forty: one two three", "stream": True,
            "sampling_params": {"ignore_eos": True, "temperature": 0, "max_new_tokens": ENDLESS, **sampling}})
        assert self.answer.status_code == 200, self.answer.text
        self.lines = self.answer.iter_lines()
        self.event()

    def event(self):
        return json.loads(next(line for line in self.lines if line.startswith(b"data: {"))[6:])

    def finish(self):
        last = None
        for line in self.lines:
            if line.startswith(b"data: {"):
                last = json.loads(line[6:])
        return last["meta_info"]["finish_reason"]["type"]


@pytest.mark.parametrize("path, body, field", [
    ("/pause_generation", {"mode": "in_place", "models": ["demo"]}, "models"),
    ("/pause_generation", {"Mode": "in_place"}, "Mode"),
    ("/pause_generation", {"mode": 7}, "mode"),
    ("/pause_generation", {"model": 7}, "model"),
    ("/pause_generation", {"rid": "mine"}, "rid"),
    ("/pause_generation?mode=in_place", {}, "mode"),
    ("/continue_generation", {"mode": "in_place"}, "mode"),
    ("/continue_generation", {"torch_empty_cache": 0}, "torch_empty_cache"),
    ("/continue_generation?model=demo", None, "model"),
    ("/flush_cache", {"models": "demo"}, "models"),
    ("/flush_cache", {"timeout": "1"}, "timeout"),
    ("/flush_cache?timeout=soon", None, "timeout"),
    ("/flush_cache?timeout=-1", None, "timeout"),
    ("/flush_cache?timeout=nan", None, "timeout"),
    ("/flush_cache?timeout=1", {"timeout": 1}, "timeout"),
    ("/flush_cache?model=demo", {"model": "other"}, "model"),
    ("/flush_cache?force=true", None, "force"),
    ("/abort_request", {"abort_all": "true"}, "abort_all"),
    ("/abort_request", {"abort_all": True, "model": "demo"}, "model"),
    ("/abort_request", {"rid": ["a", "b"]}, "rid"),
    ("/abort_request", {"rid": "a", "abort_message": "enough"}, "abort_message"),
    ("/abort_request", {"abort_al": True}, "abort_al"),
    ("/abort_request?rid=a", {"rid": "a"}, "rid"),
    ("/start_profile", {"num_step": 3}, "num_step"),
    ("/start_profile", {"num_steps": "3"}, "num_steps"),
    ("/start_profile", {"detailed_annotations": True}, "detailed_annotations"),
    ("/start_profile?num_steps=3", {}, "num_steps"),
    ("/stop_profile", {"runid": "x"}, "runid"),
    ("/stop_profile?run_id=x", {}, "run_id"),
    ("/start_request_profile", {"num_steps": 3}, "num_steps"),
    ("/stop_request_profile", {"all": True}, "all"),
    ("/open_session", {"capacity_of_str_len": 100, "time_out": 3}, "time_out"),
    ("/close_session", {"session_id": "a", "force": True}, "force"),
    ("/load_lora_adapter", {"lora_name": "a", "lora_path": "/x", "pin": True}, "pin"),
    ("/unload_lora_adapter", {"lora_name": "a", "lora_path": "/x"}, "lora_path"),
    ("/start_expert_distribution_record", {"layers": 3}, "layers"),
    ("/update_weights_from_disk", {"model_path": "/x", "model-path": "/y"}, "model-path"),
    ("/update_weights_from_disk?model_path=/y", {"model_path": "/x"}, "model_path"),
])
def test_what_a_control_route_does_not_know_is_refused_by_name_and_nothing_is_done(mock, path, body, field):
    answer = post(mock, path, body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == field and field in error["message"]
    assert not is_paused(mock)
    assert mock.metric("portico_profile_running") == 0


def test_what_asks_for_nothing_is_taken(mock):
    nothing = {"rid": None, "http_worker_ipc": None, "whatever": None}
    for path, body in [("/pause_generation", {"mode": None, "model": None}), ("/continue_generation", {"torch_empty_cache": True}),
                       ("/continue_generation", {"torch_empty_cache": False}),
                       ("/flush_cache", {"timeout": 0}), ("/flush_cache?timeout=0.5&model=demo", None),
                       ("/abort_request", {"abort_all": True, "abort_message": None, "finished_reason": None})]:
        mock.settle()
        answer = post(mock, path, body and {**nothing, **body})
        assert answer.status_code == 200, (path, answer.text)
    assert requests.get(mock.url + "/flush_cache?timeout=1", timeout=60).status_code == 200


def test_a_flush_waits_for_running_requests_as_long_as_it_is_told(patient):
    patient.settle()
    running = Running(patient)
    assert post(patient, "/flush_cache").status_code == 400
    assert post(patient, "/flush_cache?timeout=0.2").status_code == 400
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(post(patient, f"/flush_cache?timeout={WAIT_SECONDS}")))
    waiting.start()
    assert post(patient, "/abort_request", {"abort_all": True}).status_code == 200
    waiting.join(WAIT_SECONDS)
    assert answers[0].status_code == 200 and answers[0].text == "Cache flushed.\n"
    assert running.finish() == "abort"


def test_a_client_that_leaves_takes_its_flush_along(patient):
    patient.settle()
    running = Running(patient)
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.post(patient.url + "/flush_cache?timeout=3600", timeout=0.5)
    assert post(patient, "/abort_request", {"abort_all": True}).status_code == 200
    assert running.finish() == "abort"
    patient.settle()


@pytest.mark.parametrize("field, wrong", [
    ("model_path", [7, None]), ("load_format", [7, "dummy", "gguf"]), ("abort_all_requests", ["yes", 1]),
    ("weight_version", [7, "x" * 257]), ("keep_pause", [1]), ("flush_cache", ["false", False]), ("is_async", [True, "no"]),
    ("torch_empty_cache", [True]), ("recapture_cuda_graph", [True]), ("token_step", [1, "1", -1]), ("manifest", [{}, "x"]),
    ("flush_cach", [True]), ("draft_only", [False])])
def test_an_update_of_the_weights_refuses_what_it_cannot_do_by_name(demo, field, wrong):
    before = info(demo)
    for value in wrong:
        answer = post(demo, "/update_weights_from_disk", {"model_path": before["model_path"], field: value})
        assert answer.status_code == 400, (value, answer.text)
        assert answer.json()["success"] is False
        assert answer.json()["error"]["param"] == field, value
    assert info(demo) == before


def test_an_update_takes_every_field_that_says_what_happens_anyway(start):
    server = start()
    path = info(server)["model_path"]
    answer = post(server, "/update_weights_from_disk", {
        "model_path": path, "load_format": "auto", "abort_all_requests": False, "weight_version": None, "is_async": False,
        "torch_empty_cache": False, "keep_pause": False, "recapture_cuda_graph": False, "token_step": 0, "flush_cache": True,
        "manifest": None, "rid": None, "http_worker_ipc": None})
    assert answer.status_code == 200 and answer.json()["success"] is True
    assert (info(server)["weight_version"], is_paused(server)) == ("default", False)
    answer = post(server, "/update_weights_from_disk", {"model_path": path, "load_format": "safetensors", "weight_version": "v2"})
    assert answer.status_code == 200 and "v2" in answer.json()["message"]
    assert info(server)["weight_version"] == "v2"


def test_an_update_aborts_the_requests_that_there_are_where_it_is_told_to(start):
    server = start()
    path = info(server)["model_path"]
    assert post(server, "/pause_generation", {"mode": "in_place"}).status_code == 200
    answers = []
    body = {"text": "one two", "sampling_params": {"max_new_tokens": 100, "ignore_eos": True}}
    threads = [threading.Thread(target=lambda: answers.append(post(server, "/generate", body).json())) for _ in range(2)]
    for thread in threads:
        thread.start()
    server.wait_for("portico_requests_waiting", 2)
    answer = post(server, "/update_weights_from_disk",
                  {"model_path": path, "abort_all_requests": True, "weight_version": "v2"})
    assert answer.status_code == 200, answer.text
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert [answer["meta_info"]["finish_reason"]["type"] for answer in answers] == ["abort"] * 2
    assert post(server, "/continue_generation").status_code == 200
    assert post(server, "/generate", body).json()["meta_info"]["weight_version"] == "v2"


def test_an_update_leaves_the_model_paused_where_it_is_told_to(start):
    server = start()
    path = info(server)["model_path"]
    assert post(server, "/update_weights_from_disk", {"model_path": path, "keep_pause": True}).status_code == 200
    assert is_paused(server)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(server.chat("hello", max_tokens=2)))
    waiting.start()
    server.wait_for("portico_requests_waiting", 1)
    assert post(server, "/update_weights_from_disk", {"model_path": path}).json()["num_paused_requests"] == 1
    assert is_paused(server) and not answers  # who has paused it ends it
    assert post(server, "/continue_generation").status_code == 200
    waiting.join(WAIT_SECONDS)
    assert answers[0].status_code == 200


def test_prefixes_are_dropped_with_the_weights_that_have_computed_them(start):
    server = start()
    path = info(server)["model_path"]

    def ask():
        answer = post(server, "/generate", {"text": "Count from one to forty: one two three four five six seven eight",
                                            "sampling_params": {"max_new_tokens": 20, "temperature": 0}}).json()
        return answer["text"], answer["meta_info"]["cached_tokens"]

    text, cached = ask()
    assert cached == 0
    refused = post(server, "/update_weights_from_disk", {"model_path": path, "flush_cache": False})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "flush_cache"
    again, cached = ask()
    assert again == text and cached > 0
    assert post(server, "/update_weights_from_disk", {"model_path": path, "flush_cache": True}).status_code == 200
    assert ask() == (text, 0)


def varint_field(number, value=1):
    return bytes([number << 3, value])


@pytest.mark.parametrize("method, message", [
    (RUNTIME + "Abort", varint_field(2)), (RUNTIME + "FlushCache", b""), (RUNTIME + "PauseGeneration", b"\n\x08in_place"),
    (RUNTIME + "ContinueGeneration", b""), (RUNTIME + "StartProfile", b""), (RUNTIME + "StopProfile", b""),
    (RUNTIME + "UpdateWeightsFromDisk", b"\n\x02/x"), (SCHEDULER + "Abort", b"\n\x01a"), (SCHEDULER + "FlushCache", b""),
    (SCHEDULER + "StartProfile", b""), (SCHEDULER + "StopProfile", b"")])
def test_grpcs_forms_refuse_a_field_that_they_do_not_define(mock, method, message):
    client = Client(f"127.0.0.1:{mock.port}")
    with pytest.raises(grpc.RpcError) as refused:
        client.raw(method, message + varint_field(13))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "no field 13" in refused.value.details()
    assert not is_paused(mock)


def test_grpcs_flush_waits_too(patient):
    scheduler = Client(f"127.0.0.1:{patient.port}").scheduler
    patient.settle()
    running = Running(patient)
    assert not scheduler.FlushCache().success
    waiting = scheduler.FlushCache.raw.future(scheduler.FlushCache.request(timeout_s=WAIT_SECONDS), timeout=WAIT_SECONDS)
    assert post(patient, "/abort_request", {"abort_all": True}).status_code == 200
    assert waiting.result().success
    assert running.finish() == "abort"
    for seconds in (-1, 1e6, float("nan")):
        with pytest.raises(grpc.RpcError) as refused:
            scheduler.FlushCache(timeout_s=seconds)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert fields_at_fault(refused.value)[0] == ["timeout_s"]


def test_grpcs_update_of_the_weights_reads_the_format(demo):
    sglang = Client(f"127.0.0.1:{demo.port}").sglang
    path = info(demo)["model_path"]
    refused = sglang.UpdateWeightsFromDisk(model_path=path, load_format="dummy", timeout=WAIT_SECONDS)
    assert not refused.success and "load_format" in refused.message
    assert sglang.UpdateWeightsFromDisk(model_path=path, load_format="auto", timeout=WAIT_SECONDS).success
