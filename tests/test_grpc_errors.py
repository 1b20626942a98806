"""What bad gRPC input gets: the right status, the field's name, and a server that goes on."""
import asyncio

import grpc
import grpc.aio
import pytest

from conftest import ENDLESS, wait_until
from grpc_client import LARGE, Client, Service, fields_at_fault

Code = grpc.StatusCode
GENERATE = "/sglang.runtime.v1.SglangService/Generate"


@pytest.fixture(scope="module")
def client(mock):
    return Client(f"127.0.0.1:{mock.port}")


def refusal(call):
    with pytest.raises(grpc.RpcError) as refused:
        result = call()
        if not hasattr(result, "SerializeToString"):
            list(result)
    return refused.value


BAD_SAMPLING = [
    ("temperature", -1.0), ("temperature", float("nan")), ("top_p", 0.0), ("top_p", 1.5), ("top_k", 0), ("top_k", -7),
    ("min_p", -0.5), ("min_p", 1.5), ("frequency_penalty", 3.0), ("presence_penalty", -3.0),
    ("repetition_penalty", 0.0), ("repetition_penalty", 3.0), ("max_new_tokens", -1), ("max_new_tokens", 2**31 - 1),
    ("min_new_tokens", -1), ("min_new_tokens", 5000), ("stop", [""]), ("stop", ["x"] * 33), ("stop_token_ids", [-1]),
    ("stop_token_ids", [2**31 - 1]), ("n", -1), ("n", 129), ("regex", "a+"), ("json_schema", "{}"),
    ("guided_decoding", {}), ("guided_decoding", {"choice": {"values": ["a"]}}),
]


@pytest.mark.parametrize("field, value", BAD_SAMPLING)
def test_bad_sampling_values_name_their_field(client, field, value):
    for call in (lambda p: client.sglang.TextGenerate(text="hello", sampling_params=p),
                 lambda p: client.sglang.Generate(input_ids=[5, 6], sampling_params=p)):
        error = refusal(lambda: call({field: value}))
        assert error.code() == Code.INVALID_ARGUMENT
        named, kinds = fields_at_fault(error)
        # What does not fit the context also has a reason.
        beyond_context = (field, value) == ("max_new_tokens", 2**31 - 1)
        assert kinds == ["BadRequest"] + ["ErrorInfo"] * beyond_context and named[0] in error.details()
        assert named == [field] or field == "guided_decoding" and named == ["choice"]


@pytest.mark.parametrize("field, value", [
    ("lora_path", "adapter"), ("session_id", "s"), ("disaggregated_params", {"bootstrap_port": 1}), ("priority", 1),
    ("routed_dp_rank", 3),
    ("kv_hints", {"actions": [{"action_id": "a"}]}), ("image_data", ["x"]), ("video_data", ["x"]),
    ("audio_data", ["x"]), ("top_logprobs_num", 21), ("logprob_start_len", -2), ("rid", "r" * 300)])
def test_what_cannot_be_honoured_is_refused_by_name(client, field, value):
    error = refusal(lambda: client.sglang.Generate(input_ids=[5], **{field: value}))
    # The engine's name of what it lacks.
    named = {"disaggregated_params": "bootstrap_port"}.get(field, field)
    assert error.code() == Code.INVALID_ARGUMENT and fields_at_fault(error)[0] == [named]


@pytest.mark.parametrize("fields, field", [({"text": ""}, "text"), ({}, "text")])
def test_empty_text_is_refused(client, fields, field):
    error = refusal(lambda: client.sglang.TextGenerate(**fields))
    assert error.code() == Code.INVALID_ARGUMENT and fields_at_fault(error)[0] == [field]


@pytest.mark.parametrize("ids", [[], [-1], [2**31 - 1], [5, 99999999]])
def test_bad_ids_are_refused_and_the_engine_lives(client, ids):
    error = refusal(lambda: client.sglang.Generate(input_ids=ids))
    assert error.code() == Code.INVALID_ARGUMENT and fields_at_fault(error)[0] == ["input_ids"]
    assert list(client.sglang.Generate(input_ids=[5], sampling_params={"max_new_tokens": 1}))[-1].finished


def test_input_beyond_the_context_is_refused(client):
    error = refusal(lambda: client.sglang.Generate(input_ids=[5] * 100_000))
    assert error.code() == Code.INVALID_ARGUMENT and fields_at_fault(error)[0] == ["input_ids"]
    assert error.details().startswith("input_ids: ") and "context length" in error.details()


def test_bytes_that_are_no_message_are_refused(client):
    for data in (b"\xff", b"\x0a\x7f", b"\x08"):
        error = refusal(lambda: client.raw(GENERATE, data))
        assert error.code() == Code.INVALID_ARGUMENT and "sglang.runtime.v1.GenerateRequest" in error.details()


def test_a_string_that_is_not_utf8_is_refused_by_name(client):
    error = refusal(lambda: client.raw("/sglang.runtime.v1.SglangService/TextGenerate", b"\x0a\x02\xff\xfe"))
    assert error.code() == Code.INVALID_ARGUMENT and fields_at_fault(error)[0] == ["text"]


def test_unknown_fields_are_ignored_as_protobuf_says(client):
    assert client.raw("/sglang.runtime.v1.SglangService/HealthCheck", b"\xf8\x07\x01") == b"\x08\x01"


@pytest.mark.parametrize("method", ["/sglang.runtime.v1.SglangService/GetIsReady", "/no.such.Service/Method", "/x"])
def test_unknown_methods_are_unimplemented(client, method):
    assert refusal(lambda: client.raw(method)).code() == Code.UNIMPLEMENTED


def test_messages_of_ten_megabytes_arrive(client):
    text = "word " * 2_000_000
    answer = client.sglang.Tokenize(text=text)
    assert answer.input_text == text and answer.count == len(answer.tokens) > 1_000_000
    assert client.sglang.Detokenize(tokens=answer.tokens).text == text


def test_the_api_key_is_asked_for_everywhere_but_in_health(start):
    server = start("--engine", "mock", "--api-key", "secret")
    client = Client(f"127.0.0.1:{server.port}")
    assert client.health.Check().status == 1
    for metadata in (None, [("authorization", "Bearer wrong")], [("authorization", "secret")]):
        for call in (lambda: client.sglang.HealthCheck(metadata=metadata),
                     lambda: client.sglang.TextGenerate(text="hello", metadata=metadata),
                     lambda: client.scheduler.GetModelInfo(metadata=metadata),
                     lambda: client.reflection["v1"].ServerReflectionInfo(iter([]), metadata=metadata)):
            assert refusal(call).code() == Code.UNAUTHENTICATED
    key = [("authorization", "Bearer secret")]
    assert client.sglang.HealthCheck(metadata=key).healthy
    body = b'{"messages":[{"role":"user","content":"hello"}],"max_tokens":1}'
    assert list(client.sglang.ChatComplete(json_body=body, metadata=key))[0].status_code == 200
    assert "secret" not in client.sglang.GetServerInfo(metadata=key).json_info


def test_a_failing_engine_gives_its_status(start):
    server = start("--engine", "mock", "--mock-fault", "error:1")
    client = Client(f"127.0.0.1:{server.port}")
    error = refusal(lambda: client.sglang.TextGenerate(text="hello", stream=True))
    assert error.code() == Code.INTERNAL


def test_a_dead_engine_is_unhealthy(start):
    server = start("--engine", "mock", "--mock-fault", "die:1")
    client = Client(f"127.0.0.1:{server.port}")
    watch = client.health.Watch()
    assert next(watch).status == 1
    assert refusal(lambda: client.sglang.TextGenerate(text="hello")).code() == Code.UNAVAILABLE
    assert next(watch).status == 2
    assert not client.sglang.HealthCheck().healthy
    watch.cancel()


def says_nothing(service):
    try:
        service.HealthCheck(timeout=3)
    except grpc.RpcError as error:
        return error.code() == Code.DEADLINE_EXCEEDED
    return False


def test_an_engine_that_hangs_is_not_said_to_be_healthy(start):
    # The server answered for it: a gateway went on to send it requests.
    server = start("--engine", "mock", "--mock-fault", "stall:1")
    client = Client(f"127.0.0.1:{server.port}")
    stream = client.sglang.TextGenerate(text="hello", stream=True, sampling_params={"max_new_tokens": 100})
    server.wait_for("portico_requests_running", 1)
    # Its last token may come after the first question.
    wait_until(lambda: says_nothing(client.sglang), "it is said to be healthy")
    assert says_nothing(client.scheduler)
    stream.cancel()
    server.settle()
    # Without requests too, until it has generated something.
    assert says_nothing(client.sglang)


def test_aio_clients_cancel_and_time_out(patient):
    async def run():
        async with grpc.aio.insecure_channel(f"127.0.0.1:{patient.port}") as channel:
            service = Service(channel, "sglang.runtime.v1.SglangService")
            call = service.TextGenerate(text="hello", stream=True, sampling_params={"max_new_tokens": ENDLESS})
            await call.read()
            call.cancel()
            late = service.TextGenerate(text="hello", stream=True, timeout=0.2,
                                        sampling_params={"max_new_tokens": ENDLESS})
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                async for _ in late:
                    pass
            assert ended.value.code() == Code.DEADLINE_EXCEEDED
            assert (await service.HealthCheck()).healthy

    asyncio.run(run())
    patient.settle()


def test_gzip_and_metrics(mock, client):
    packed = grpc.insecure_channel(f"127.0.0.1:{mock.port}", compression=grpc.Compression.Gzip)
    answer = Service(packed, "sglang.runtime.v1.SglangService").Tokenize(text="hello " * 1000)
    assert answer.count > 1000
    assert mock.metric("portico_grpc_requests_total",
                       method="/sglang.runtime.v1.SglangService/Tokenize", code="OK") >= 1
