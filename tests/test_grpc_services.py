"""The services beside SglangService: health, reflection, and the workers' SglangScheduler."""
import hashlib
import io
import json
import zipfile

import grpc
import pytest
import requests
from google.protobuf import descriptor_pb2, descriptor_pool

from conftest import ENDLESS
from grpc_client import Client, fields_at_fault

Code = grpc.StatusCode
SERVICES = {"sglang.runtime.v1.SglangService", "sglang.grpc.scheduler.SglangScheduler", "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


@pytest.fixture(scope="module")
def client(mock):
    return Client(f"127.0.0.1:{mock.port}")


def tokens(server, text):
    return requests.post(server.url + "/tokenize", json={"prompt": text}, timeout=60).json()["tokens"]


def test_health_knows_the_server_and_each_service(client):
    assert client.health.Check().status == SERVING
    for service in SERVICES:
        assert client.health.Check(service=service).status == SERVING
    assert set(client.health.List().statuses) == SERVICES | {""}
    with pytest.raises(grpc.RpcError) as refused:
        client.health.Check(service="no.such.Service")
    assert refused.value.code() == Code.NOT_FOUND


def test_health_watch_sends_the_state_at_once(client):
    for service, status in (("", SERVING), ("sglang.runtime.v1.SglangService", SERVING),
                            ("no.such.Service", SERVICE_UNKNOWN)):
        watch = client.health.Watch(service=service)
        assert next(watch).status == status
        watch.cancel()


def test_a_drain_tells_watchers_and_does_not_wait_for_them(start):
    server = start("--engine", "mock")
    client = Client(f"127.0.0.1:{server.port}")
    watch, state = client.health.Watch(), client.sglang.WatchEngineState()
    assert next(watch).status == SERVING and next(state).healthy
    server.process.terminate()
    assert next(watch).status == NOT_SERVING and not next(state).healthy
    for call in (watch, state):
        with pytest.raises(grpc.RpcError) as ended:
            next(call)
        assert ended.value.code() == Code.UNAVAILABLE
    assert server.process.wait(60) == 0


def reflect(client, version, **request):
    service = client.reflection[version].ServerReflectionInfo
    answer, = service(iter([service.request(**request)]))
    return answer


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_gives_files_from_which_calls_can_be_made(client, version):
    listed = reflect(client, version, list_services="").list_services_response.service
    assert {service.name for service in listed} == SERVICES
    answer = reflect(client, version, file_containing_symbol="sglang.runtime.v1.SglangService")
    pool = descriptor_pool.DescriptorPool()
    files = [descriptor_pb2.FileDescriptorProto.FromString(data)
             for data in answer.file_descriptor_response.file_descriptor_proto]
    for file in reversed(files):
        pool.AddSerializedFile(file.SerializeToString())
    assert len(pool.FindServiceByName("sglang.runtime.v1.SglangService").methods) == 26
    name = files[0].name
    again = reflect(client, version, file_by_filename=name)
    assert again.file_descriptor_response == answer.file_descriptor_response


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_answers_what_it_does_not_know(client, version):
    assert reflect(client, version, file_containing_symbol="no.such").error_response.error_code == 5
    assert reflect(client, version, file_by_filename="no.proto").error_response.error_code == 5
    assert reflect(client, version, all_extension_numbers_of_type="no.such").error_response.error_code == 5
    known = "sglang.runtime.v1.GenerateRequest"
    answer = reflect(client, version, all_extension_numbers_of_type=known).all_extension_numbers_response
    assert answer.base_type_name == known and not answer.extension_number
    assert reflect(client, version, file_containing_extension={"containing_type": known, "extension_number": 9}
                   ).error_response.error_code == 5
    assert reflect(client, version).error_response.error_code == 3


def test_one_reflection_call_takes_many_requests(client):
    service = client.reflection["v1"].ServerReflectionInfo
    answers = list(service(iter([service.request(list_services=""), service.request(file_containing_symbol="grpc.health.v1.Health")])))
    assert len(answers) == 2 and answers[1].original_request.file_containing_symbol


# The scheduler protocol.


def generate(client, ids, **fields):
    sampling = {"temperature": 1, "top_p": 1, "top_k": -1, "repetition_penalty": 1, "n": 1,
                **fields.pop("sampling_params", {})}
    return list(client.scheduler.Generate(request_id=fields.pop("request_id", ""), tokenized={"input_ids": ids},
                                          sampling_params=sampling, **fields))


def test_scheduler_streams_deltas_and_ends_with_the_whole(mock, client):
    ids = tokens(mock, "one two three four")
    messages = generate(client, ids, stream=True, request_id="w1", sampling_params={"max_new_tokens": 4})
    assert {message.request_id for message in messages} == {"w1"}
    chunks = [message.chunk for message in messages if message.HasField("chunk")]
    assert [token for chunk in chunks for token in chunk.token_ids] == ids[:4]
    assert [chunk.completion_tokens for chunk in chunks] == [1, 2, 3, 4]
    complete = messages[-1].complete
    assert list(complete.output_ids) == ids[:4] and complete.finish_reason == "length"
    assert (complete.prompt_tokens, complete.completion_tokens) == (len(ids), 4)


def test_scheduler_answers_whole_and_each_choice(mock, client):
    ids = tokens(mock, "one two three four")
    messages = generate(client, ids, sampling_params={"max_new_tokens": 3, "n": 2}, return_logprob=True,
                        logprob_start_len=0, top_logprobs_num=1)
    assert sorted(message.complete.index for message in messages) == [0, 1]
    for message in messages:
        assert len(message.complete.output_logprobs.token_logprobs) == 3
        assert len(message.complete.output_logprobs.top_logprobs) == 3
        first = message.complete.input_logprobs.token_logprobs[0]
        assert not first.HasField("value") and len(message.complete.input_logprobs.token_ids) == len(ids)


def test_scheduler_says_what_stopped_it(mock, client):
    ids = tokens(mock, "one two three four")
    complete = generate(client, ids, sampling_params={"stop_token_ids": [ids[2]]})[-1].complete
    assert complete.finish_reason == "stop" and complete.matched_token_id == ids[2]


@pytest.mark.parametrize("fields, field", [
    ({"mm_inputs": {"image_urls": ["x"]}}, "mm_inputs"), ({"lora_id": "x"}, "lora_id"),
    ({"input_embeds": [0.5]}, "input_embeds"), ({"custom_logit_processor": "x"}, "custom_logit_processor"),
    ({"return_hidden_states": True}, "return_hidden_states"), ({"token_ids_logprob": [1]}, "token_ids_logprob"),
    ({"disaggregated_params": {"bootstrap_room": 3}}, "bootstrap_room"), ({"data_parallel_rank": 2}, "data_parallel_rank"),
    ({"sampling_params": {"regex": "a"}}, "regex"), ({"sampling_params": {"top_p": 1.5}}, "top_p"),
    ({"sampling_params": {"top_k": -2}}, "top_k"), ({"sampling_params": {"logit_bias": {"x": 1}}}, "logit_bias"),
    ({"sampling_params": {"logit_bias": {"99999999": 1}}}, "logit_bias"), ({"sampling_params": {"n": 200}}, "n"),
    ({"sampling_params": {"max_new_tokens": 2**32 - 1}}, "max_new_tokens")])
def test_scheduler_refuses_by_name(client, fields, field):
    with pytest.raises(grpc.RpcError) as refused:
        generate(client, [5, 6], **fields)
    assert refused.value.code() == Code.INVALID_ARGUMENT and fields_at_fault(refused.value)[0] == [field]


@pytest.mark.parametrize("ids", [[], [2**32 - 1], [2**31 - 1]])
def test_scheduler_refuses_bad_ids(client, ids):
    with pytest.raises(grpc.RpcError) as refused:
        generate(client, ids)
    assert refused.value.code() == Code.INVALID_ARGUMENT and fields_at_fault(refused.value)[0] == ["input_ids"]


def test_scheduler_aborts(patient):
    scheduler = Client(f"127.0.0.1:{patient.port}").scheduler
    stream = scheduler.Generate(request_id="w2", tokenized={"input_ids": [5]}, stream=True,
                                sampling_params={"max_new_tokens": ENDLESS, "ignore_eos": True})
    next(stream)
    assert scheduler.Abort(request_id="w2").success
    with pytest.raises(grpc.RpcError) as ended:
        list(stream)
    assert ended.value.code() == Code.CANCELLED
    patient.settle()


def test_scheduler_shows_model_server_and_load(mock, client):
    scheduler = client.scheduler
    assert scheduler.HealthCheck().healthy
    model = scheduler.GetModelInfo()
    info = requests.get(mock.url + "/model_info", timeout=60).json()
    assert (model.served_model_name, model.vocab_size) == (info["served_model_name"], info["vocab_size"])
    assert model.is_generation and model.max_context_length == info["max_model_len"]
    server = scheduler.GetServerInfo()
    assert server.server_args["engine"] == "mock" and server.start_time.seconds > 1_700_000_000
    loads = scheduler.GetLoads(include=["core"])
    assert loads.dp_rank_count == 1 and loads.loads[0].max_running_requests > 0
    assert not scheduler.GetLoads(dp_rank=4).loads
    mock.settle()
    assert scheduler.FlushCache().success
    assert not scheduler.ListLoadedLoRAAdapters().loaded_adapters


@pytest.mark.parametrize("method, fields", [
    ("Embed", {"tokenized": {"input_ids": [1]}}), ("LoadLoRAAdapter", {"lora_name": "a", "lora_path": "x"}),
    ("UnloadLoRAAdapter", {"lora_name": "a"}),
    ("StartProfile", {}), ("StopProfile", {}), ("SubscribeKvEvents", {})])
def test_scheduler_says_what_its_engine_cannot_do(client, method, fields):
    with pytest.raises(grpc.RpcError) as refused:
        result = getattr(client.scheduler, method)(**fields)
        list(result)
    assert refused.value.code() == Code.FAILED_PRECONDITION and len(refused.value.details()) > 10


def test_scheduler_sends_its_tokenizer_and_end_tokens(demo):
    client = Client(f"127.0.0.1:{demo.port}")
    assert client.scheduler.GetModelInfo().eos_token_ids
    chunks = list(client.scheduler.GetTokenizer())
    archive = b"".join(chunk.data for chunk in chunks)
    assert [bool(chunk.sha256) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].sha256 == hashlib.sha256(archive).hexdigest()
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        assert files.testzip() is None and "tokenizer.json" in files.namelist()
        assert json.loads(files.read("tokenizer.json"))["model"]
