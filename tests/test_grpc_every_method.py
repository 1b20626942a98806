"""What holds for each method of SglangService, and what SGLang tests of its OpenAI methods beyond their answers."""
import json

import grpc
import pytest

from conftest import ENDLESS
from grpc_client import POOL, Client, Service

Code = grpc.StatusCode
SERVICE = "sglang.runtime.v1.SglangService"
METHODS = {method.name: method for method in POOL.FindServiceByName(SERVICE).methods}
CHAT = {"messages": [{"role": "user", "content": "What is 7 plus 5?"}]}
# Each is a call that would go on for as long as a test looks.
ENDLESS_CALLS = {
    "TextGenerate": {"text": "hello", "sampling_params": {"max_new_tokens": ENDLESS, "ignore_eos": True}},
    "Generate": {"input_ids": [5, 6], "sampling_params": {"max_new_tokens": ENDLESS, "ignore_eos": True}},
    "ChatComplete": {"json_body": {**CHAT, "max_tokens": ENDLESS, "ignore_eos": True}},
    "Complete": {"json_body": {"prompt": "hello", "max_tokens": ENDLESS, "ignore_eos": True}},
}


@pytest.fixture(scope="module")
def client(mock):
    return Client(f"127.0.0.1:{mock.port}")


def code_of(call):
    """How a call ends, whole or streamed."""
    try:
        result = call()
        if not hasattr(result, "SerializeToString"):
            list(result)
        return Code.OK
    except grpc.RpcError as error:
        return error.code()


def test_they_are_the_26_of_upstream():
    assert len(METHODS) == 26


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_message_are_refused_with_the_name_of_the_message(client, method):
    for data in (b"\xff", b"\x0a\x7f", b"\x0b"):
        call = client.channel.unary_stream(f"/{SERVICE}/{method}")(data, timeout=60)
        with pytest.raises(grpc.RpcError) as refused:
            list(call)
        assert refused.value.code() == Code.INVALID_ARGUMENT
        assert METHODS[method].input_type.full_name in refused.value.details()


@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"WatchEngineState"}))
def test_an_empty_message_never_ends_in_an_error_of_the_servers_own(client, method):
    code = code_of(getattr(client.sglang, method))
    assert code in (Code.OK, Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION)


def test_no_method_answers_without_the_key(start):
    server = start("--engine", "mock", "--api-key", "secret")
    client = Client(f"127.0.0.1:{server.port}")
    for method in METHODS:
        assert code_of(getattr(client.sglang, method)) == Code.UNAUTHENTICATED, method


def endless_call(sglang, method, stream, **keywords):
    fields = dict(ENDLESS_CALLS[method])
    if "json_body" in fields:
        fields["json_body"] = json.dumps({**fields["json_body"], "stream": stream}).encode()
    else:
        fields["stream"] = stream
    return getattr(sglang, method)(**fields, **keywords)


@pytest.mark.parametrize("method", ENDLESS_CALLS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_cancelled_call_frees_the_engine(patient, method, stream):
    patient.settle()
    call = endless_call(Client(f"127.0.0.1:{patient.port}").sglang, method, stream)
    patient.wait_for("portico_requests_running", 1)
    call.cancel()
    patient.settle()
    assert call.code() == Code.CANCELLED


@pytest.mark.parametrize("method", ENDLESS_CALLS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_past_its_deadline_frees_the_engine(patient, method, stream):
    sglang = Client(f"127.0.0.1:{patient.port}").sglang
    assert code_of(lambda: endless_call(sglang, method, stream, timeout=0.3)) == Code.DEADLINE_EXCEEDED
    patient.settle()


def test_a_client_that_closes_its_channel_frees_the_engine(patient):
    patient.settle()
    with grpc.insecure_channel(f"127.0.0.1:{patient.port}") as channel:
        calls = [endless_call(Service(channel, SERVICE), method, True) for method in ENDLESS_CALLS]
        patient.wait_for("portico_requests_running", len(calls))
    patient.settle()


def test_trace_headers_change_nothing_else(client):
    # They were taken as headers of the HTTP request, so that a content-type among them had its body refused.
    headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "content-type": "text/plain",
               "authorization": "Bearer nobody", "not a header\r\n": "x\r\ny: z"}
    body = json.dumps({**CHAT, "max_tokens": 1}).encode()
    for method in ("ChatComplete", "Complete"):
        chunk, = getattr(client.sglang, method)(json_body=body if method == "ChatComplete" else b'{"prompt":"a"}',
                                                trace_headers=headers)
        assert chunk.status_code == 200, chunk
    assert client.sglang.Score(json_body=b'{"query":"a","items":["b"],"label_token_ids":[5]}',
                               trace_headers=headers).status_code == 200
