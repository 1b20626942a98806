"""Streams of SglangService that end early: aborts, cancels, deadlines, pauses, a full queue."""
import json

import grpc
import pytest

from conftest import ENDLESS, wait_until
from grpc_client import Client, fields_at_fault
from test_grpc import TEXT, meta, post

Code = grpc.StatusCode


@pytest.fixture(scope="module")
def patient_sglang(patient):
    return Client(f"127.0.0.1:{patient.port}").sglang


def first_message(stream):
    """The first message, and the rest of the stream still open."""
    return next(iter(stream))


def long_stream(sglang, rid, **fields):
    return sglang.TextGenerate(text=TEXT, stream=True, rid=rid, **fields,
                               sampling_params={"max_new_tokens": ENDLESS, "ignore_eos": True})


def test_abort_ends_the_stream_with_cancelled(patient, patient_sglang):
    stream = long_stream(patient_sglang, "to-abort")
    first_message(stream)
    assert patient_sglang.Abort(rid="to-abort").success
    with pytest.raises(grpc.RpcError) as ended:
        list(stream)
    assert ended.value.code() == Code.CANCELLED and "to-abort" in ended.value.details()
    patient.settle()


def test_abort_all_interrupts_every_stream(patient, patient_sglang):
    streams = [long_stream(patient_sglang, f"all-{i}") for i in range(4)]
    chat = patient_sglang.ChatComplete(json_body=json.dumps(
        {"messages": [{"role": "user", "content": TEXT}], "max_tokens": ENDLESS, "stream": True}).encode())
    for stream in [*streams, chat]:
        first_message(stream)
    assert patient_sglang.Abort(abort_all=True).success
    for stream in [*streams, chat]:
        with pytest.raises(grpc.RpcError) as ended:
            list(stream)
        assert ended.value.code() == Code.CANCELLED
    patient.settle()


def test_http_aborts_grpc_streams_too(patient, patient_sglang):
    stream = long_stream(patient_sglang, "over-http")
    first_message(stream)
    assert post(patient, "/abort_request", rid="over-http").status_code == 200
    with pytest.raises(grpc.RpcError) as ended:
        list(stream)
    assert ended.value.code() == Code.CANCELLED


def test_a_rid_is_refused_while_it_runs_and_free_when_its_client_has_left(patient, patient_sglang):
    stream = long_stream(patient_sglang, "twice")
    first_message(stream)
    with pytest.raises(grpc.RpcError) as refused:
        list(patient_sglang.TextGenerate(text=TEXT, rid="twice"))
    assert refused.value.code() == Code.ALREADY_EXISTS
    assert fields_at_fault(refused.value)[0] == ["rid"]
    stream.cancel()
    patient.settle()
    call = {"text": TEXT, "rid": "twice", "sampling_params": {"max_new_tokens": 1}}
    assert list(patient_sglang.TextGenerate(**call))[-1].finished


def test_cancel_frees_the_engine(patient, patient_sglang):
    patient.settle()
    aborted = patient.metric("portico_requests_aborted_total")
    stream = long_stream(patient_sglang, None)
    first_message(stream)
    stream.cancel()
    patient.wait_for("portico_requests_aborted_total", aborted + 1)
    patient.settle()


def test_a_deadline_frees_the_engine(patient, patient_sglang):
    stream = patient_sglang.TextGenerate(text=TEXT, stream=True, timeout=0.3, sampling_params={"max_new_tokens": ENDLESS})
    with pytest.raises(grpc.RpcError) as ended:
        list(stream)
    assert ended.value.code() == Code.DEADLINE_EXCEEDED
    patient.settle()


def test_pause_in_place_and_retract_let_the_stream_go_on(start):
    server = start("--engine", "mock", "--mock-itl-ms", "5")
    sglang = Client(f"127.0.0.1:{server.port}").sglang
    for mode in ("in_place", "retract"):
        stream = sglang.TextGenerate(text=TEXT, stream=True, sampling_params={"max_new_tokens": 40})
        messages = [first_message(stream)]
        assert sglang.PauseGeneration(mode=mode).message
        waiting = sglang.TextGenerate(text=TEXT, sampling_params={"max_new_tokens": 2})
        # Where the stream is retracted, or has ended before the pause, it waits too or does not run any more.
        wait_until(lambda: server.metric("portico_requests_waiting") >= 1, "nothing waits")
        assert sglang.HealthCheck().healthy
        assert sglang.ContinueGeneration().message
        messages += list(stream)
        assert messages[-1].finished and meta(messages[-1])["completion_tokens"] == 40
        assert list(waiting)[-1].finished


def test_pause_abort_ends_streams_with_finish_reason_abort(start):
    server = start("--engine", "mock", "--mock-itl-ms", "200")
    sglang = Client(f"127.0.0.1:{server.port}").sglang
    stream = long_stream(sglang, "paused")
    first_message(stream)
    sglang.PauseGeneration(mode="abort")
    last = list(stream)[-1]
    assert last.finished and meta(last)["finish_reason"]["type"] == "abort"
    waiting = sglang.TextGenerate(text=TEXT, rid="paused", sampling_params={"max_new_tokens": 2})
    sglang.ContinueGeneration()
    assert list(waiting)[-1].finished


def test_a_full_queue_says_when_to_try_again(start):
    server = start("--engine", "mock", "--mock-itl-ms", "200", "--max-running-requests", "1",
                   "--max-queued-requests", "1")
    sglang = Client(f"127.0.0.1:{server.port}").sglang
    running = long_stream(sglang, "runs")
    first_message(running)
    waiting = long_stream(sglang, "waits")
    server.wait_for("portico_requests_waiting", 1)
    with pytest.raises(grpc.RpcError) as refused:
        list(sglang.TextGenerate(text=TEXT, timeout=60, sampling_params={"max_new_tokens": 1}))
    assert refused.value.code() == Code.RESOURCE_EXHAUSTED and "RetryInfo" in fields_at_fault(refused.value)[1]
    waiting.cancel()
    running.cancel()
    server.settle()
