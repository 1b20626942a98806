"""SglangService over gRPC: SGLang's own tests for it, method by method, then the engine's state and weights."""
import json
import threading

import grpc
import pytest
import requests

from conftest import WAIT_SECONDS
from grpc_client import Client, fields_at_fault

Code = grpc.StatusCode
TEXT = "What is 7 plus 5?"


@pytest.fixture(scope="module")
def client(mock):
    return Client(f"127.0.0.1:{mock.port}")


@pytest.fixture(scope="module")
def sglang(client):
    return client.sglang


def meta(message):
    return {key: json.loads(value) for key, value in message.meta_info.items()}


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=60)


# SGLang's list.


def test_http_still_works(mock):
    assert mock.chat("hello", max_tokens=2).status_code == 200
    assert requests.get(mock.url + "/health", timeout=60).status_code == 200
    assert requests.get(mock.url + "/model_info", timeout=60).status_code == 200
    assert requests.get(mock.url + "/server_info", timeout=60).status_code == 200


def test_health_check(sglang):
    assert sglang.HealthCheck().healthy


def test_get_model_info(mock, sglang):
    answer = sglang.GetModelInfo()
    info = json.loads(answer.json_info)
    assert info == requests.get(mock.url + "/model_info", timeout=60).json()
    assert answer.model_path == info["model_path"] and info["is_generation"]


def test_get_server_info_says_how_it_streams(sglang):
    info = json.loads(sglang.GetServerInfo().json_info)
    assert info["incremental_streaming_output"] is True and info["version"]
    assert "api_key" not in info


@pytest.mark.parametrize("engine", ["mock", "demo"])
def test_get_server_info_names_the_model_that_is_served(request, engine):
    # Both were empty for the model that is served where none is named.
    server = request.getfixturevalue(engine)
    info = json.loads(Client(f"127.0.0.1:{server.port}").sglang.GetServerInfo().json_info)
    model = requests.get(server.url + "/model_info", timeout=60).json()
    for key in ("model_path", "tokenizer_path", "served_model_name", "weight_version"):
        assert info[key] == model[key] and info[key], key


def test_text_generate(mock, sglang):
    messages = list(sglang.TextGenerate(text=TEXT, sampling_params={"max_new_tokens": 4}))
    assert len(messages) == 1 and messages[0].finished
    expected = post(mock, "/generate", text=TEXT, sampling_params={"max_new_tokens": 4}).json()
    assert messages[0].text == expected["text"]
    info = meta(messages[0])
    assert info["finish_reason"] == {"type": "length", "length": 4}
    assert info["prompt_tokens"] == expected["meta_info"]["prompt_tokens"] and info["completion_tokens"] == 4
    assert info["weight_version"] == "default" and info["e2e_latency"] > 0


def test_text_generate_streaming_is_deltas(mock, sglang):
    whole = post(mock, "/generate", text=TEXT, sampling_params={"max_new_tokens": 6}).json()["text"]
    messages = list(sglang.TextGenerate(text=TEXT, stream=True, sampling_params={"max_new_tokens": 6}))
    assert [message.finished for message in messages] == [False] * (len(messages) - 1) + [True]
    assert "".join(message.text for message in messages) == whole
    counts = [meta(message)["completion_tokens"] for message in messages]
    assert counts == sorted(counts) and counts[-1] == 6
    assert meta(messages[0])["finish_reason"] is None


def test_text_generate_streaming_is_cumulative_where_asked(mock, sglang):
    call = {"text": TEXT, "stream": True, "sampling_params": {"max_new_tokens": 6}}
    whole = "".join(message.text for message in sglang.TextGenerate(**call))
    texts = [message.text for message in sglang.TextGenerate(**call, metadata=[("x-portico-stream", "cumulative")])]
    assert texts[-1] == whole and all(b.startswith(a) for a, b in zip(texts, texts[1:]))
    with pytest.raises(grpc.RpcError) as refused:
        list(sglang.TextGenerate(**call, metadata=[("x-portico-stream", "both")]))
    assert refused.value.code() == Code.INVALID_ARGUMENT


def test_generate_takes_and_gives_ids(mock, sglang):
    ids = post(mock, "/tokenize", prompt=TEXT).json()["tokens"]
    message, = sglang.Generate(input_ids=ids, sampling_params={"max_new_tokens": 5})
    assert list(message.output_ids) == ids[:5] and message.text == "" and message.finished
    messages = list(sglang.Generate(input_ids=ids, stream=True, return_text=True, sampling_params={"max_new_tokens": 5}))
    assert [token for message in messages for token in message.output_ids] == ids[:5]
    assert "".join(message.text for message in messages) == post(mock, "/detokenize", tokens=ids[:5]).json()["text"]


def test_generate_stops_where_it_is_told(mock, sglang):
    ids = post(mock, "/tokenize", prompt=TEXT).json()["tokens"]
    message, = sglang.Generate(input_ids=ids, sampling_params={"max_new_tokens": 20, "stop_token_ids": [ids[3]]})
    assert meta(message)["finish_reason"] == {"type": "stop", "matched": ids[3]}
    message, = sglang.TextGenerate(text=TEXT, sampling_params={"max_new_tokens": 20, "stop": ["plus"]})
    assert meta(message)["finish_reason"] == {"type": "stop", "matched": "plus"} and "plus" not in message.text


def test_parallel_answers_carry_their_index_and_the_rid(sglang):
    for stream in (False, True):
        messages = list(sglang.TextGenerate(text=TEXT, stream=stream, rid=f"par-{stream}",
                                            sampling_params={"max_new_tokens": 3, "n": 3}))
        assert {meta(message)["index"] for message in messages} == {0, 1, 2}
        assert {meta(message)["id"] for message in messages} == {f"par-{stream}"}
        assert [message.finished for message in messages].count(True) == 1 and messages[-1].finished
        assert len(messages) == (9 if stream else 3)


def test_logprobs_are_json_in_meta_info(mock, sglang):
    call = {"text": TEXT, "return_logprob": True, "top_logprobs_num": 2, "logprob_start_len": 0,
            "sampling_params": {"max_new_tokens": 3}}
    message, = sglang.TextGenerate(**call, return_text_in_logprobs=True)
    expected = post(mock, "/generate", **call, return_text_in_logprobs=True).json()["meta_info"]
    info = meta(message)
    for key in ("input_token_logprobs", "output_token_logprobs", "output_top_logprobs"):
        assert info[key] == expected[key], key
    assert info["output_token_logprobs_length"] == 3


def test_tokenize_matches_http(mock, sglang):
    for text in ("", "hello", "🙂 naïve 漢字", "word " * 50_000):
        answer = sglang.Tokenize(text=text)
        expected = post(mock, "/tokenize", prompt=text).json()
        assert list(answer.tokens) == expected["tokens"] and answer.count == expected["count"]
        assert answer.max_model_len == expected["max_model_len"] and answer.input_text == text


def test_tokenize_without_special_tokens(mock, sglang):
    answer = sglang.Tokenize(text="hello", add_special_tokens=False)
    assert list(answer.tokens) == post(mock, "/tokenize", prompt="hello", add_special_tokens=False).json()["tokens"]


def test_detokenize_roundtrip(sglang):
    tokens = sglang.Tokenize(text="Hello, wörld!", add_special_tokens=False).tokens
    assert sglang.Detokenize(tokens=tokens).text == "Hello, wörld!"
    assert sglang.Detokenize().text == ""


@pytest.mark.parametrize("tokens", [[-1], [1, 2**31 - 1]])
def test_detokenize_rejects_ids_that_are_not_in_the_vocabulary(sglang, tokens):
    with pytest.raises(grpc.RpcError) as refused:
        sglang.Detokenize(tokens=tokens)
    assert refused.value.code() == Code.INVALID_ARGUMENT and "tokens" in refused.value.details()
    assert fields_at_fault(refused.value) == (["tokens"], ["BadRequest"])


def test_list_models(mock, sglang):
    card, = sglang.ListModels().models
    expected = requests.get(mock.url + "/v1/models", timeout=60).json()["data"][0]
    assert (card.id, card.root, card.max_model_len) == (expected["id"], expected["root"], expected["max_model_len"])


def test_get_load_respects_the_rank(sglang):
    assert len(json.loads(sglang.GetLoad().json_info)) == 1
    assert len(json.loads(sglang.GetLoad(dp_rank=0).json_info)) == 1
    assert json.loads(sglang.GetLoad(dp_rank=7).json_info) == []


def test_flush_cache(mock, sglang):
    mock.settle()
    answer = sglang.FlushCache()
    assert answer.success and answer.message == "Cache flushed."


def test_chat_complete(mock, sglang):
    body = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 5}
    chunk, = sglang.ChatComplete(json_body=json.dumps(body).encode())
    assert chunk.finished and chunk.status_code == 200
    answer = json.loads(chunk.json_chunk)
    expected = post(mock, "/v1/chat/completions", **body).json()
    assert answer["object"] == "chat.completion" and answer["choices"] == expected["choices"]


def test_chat_complete_streaming_ends_with_an_empty_message(mock, sglang):
    body = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 5, "stream": True}
    chunks = list(sglang.ChatComplete(json_body=json.dumps(body).encode()))
    assert chunks[-1].finished and chunks[-1].json_chunk == b"" and chunks[-1].status_code == 0
    assert not any(chunk.finished for chunk in chunks[:-1])
    events = [json.loads(chunk.json_chunk) for chunk in chunks[:-1]]
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events)
    assert text == mock.chat(TEXT, max_tokens=5).json()["choices"][0]["message"]["content"]


def test_complete(mock, sglang):
    body = {"prompt": TEXT, "max_tokens": 5}
    chunk, = sglang.Complete(json_body=json.dumps(body).encode())
    assert json.loads(chunk.json_chunk)["choices"] == post(mock, "/v1/completions", **body).json()["choices"]
    chunks = list(sglang.Complete(json_body=json.dumps({**body, "stream": True}).encode()))
    assert chunks[-1].finished and b"[DONE]" not in b"".join(chunk.json_chunk for chunk in chunks)


@pytest.mark.parametrize("body, param", [(b"{", None), (b"[]", None), (b"{}", "messages"),
                                         (b'{"messages":[{"role":"user","content":"x"}],"temperature":-1}', "temperature")])
@pytest.mark.parametrize("stream", [False, True])
def test_a_refused_json_request_is_one_message_with_the_http_status(sglang, body, param, stream):
    if stream and body.endswith(b"}") and body != b"{}":
        body = body[:-1] + b',"stream":true}'
    chunk, = sglang.ChatComplete(json_body=body)
    assert chunk.finished and chunk.status_code == 400
    assert json.loads(chunk.json_chunk)["error"]["param"] == param


@pytest.mark.parametrize("method", ["OpenAIEmbed", "OpenAIClassify", "Rerank"])
def test_json_that_needs_another_model_is_refused_like_over_http(mock, sglang, method):
    path = {"OpenAIEmbed": "/v1/embeddings", "OpenAIClassify": "/v1/classify", "Rerank": "/v1/rerank"}[method]
    body = {"input": "hello"} if method != "Rerank" else {"query": "q", "documents": ["a", "b"]}
    answer = getattr(sglang, method)(json_body=json.dumps(body).encode())
    expected = post(mock, path, **body)
    assert (answer.status_code, json.loads(answer.json_body)) == (expected.status_code, expected.json())
    assert answer.status_code == 400 and "error" in json.loads(answer.json_body)


def test_score_equals_http(mock, sglang):
    body = {"query": "Is it?", "items": [" yes", " no"], "label_token_ids": [5, 6], "apply_softmax": True}
    answer = sglang.Score(json_body=json.dumps(body).encode())
    expected = post(mock, "/v1/score", **body)
    assert answer.status_code == expected.status_code == 200
    assert json.loads(answer.json_body)["scores"] == expected.json()["scores"]


@pytest.mark.parametrize("method, fields", [("TextEmbed", {"text": "hello"}), ("Embed", {"input_ids": [1]}),
                                            ("Classify", {"text": "hello"}), ("Classify", {"input_ids": [1]}),
                                            ("StartProfile", {}), ("StopProfile", {})])
def test_what_the_model_or_engine_cannot_do_is_a_failed_precondition(sglang, method, fields):
    with pytest.raises(grpc.RpcError) as refused:
        getattr(sglang, method)(**fields)
    assert refused.value.code() == Code.FAILED_PRECONDITION and len(refused.value.details()) > 10


@pytest.mark.parametrize("method, fields, field", [
    ("TextEmbed", {}, "text"), ("Embed", {}, "input_ids"), ("Embed", {"input_ids": [-1]}, "input_ids"),
    ("Classify", {}, "text"), ("Classify", {"text": "a", "input_ids": [1]}, "text"), ("Abort", {}, "rid"),
    ("PauseGeneration", {}, "mode"), ("PauseGeneration", {"mode": "sleep"}, "mode")])
def test_malformed_requests_name_their_field(sglang, method, fields, field):
    with pytest.raises(grpc.RpcError) as refused:
        getattr(sglang, method)(**fields)
    assert refused.value.code() == Code.INVALID_ARGUMENT
    assert fields_at_fault(refused.value)[0] == [field] and field in refused.value.details()


def test_the_flag_gives_upstreams_cumulative_form(start):
    server = start("--engine", "mock", "--incremental-streaming-output=false")
    sglang = Client(f"127.0.0.1:{server.port}").sglang
    call = {"text": TEXT, "stream": True, "sampling_params": {"max_new_tokens": 5}}
    texts = [message.text for message in sglang.TextGenerate(**call)]
    deltas = [message.text for message in sglang.TextGenerate(**call, metadata=[("x-portico-stream", "delta")])]
    assert texts[-1] == "".join(deltas) and all(b.startswith(a) for a, b in zip(texts, texts[1:]))
    assert json.loads(sglang.GetServerInfo().json_info)["incremental_streaming_output"] is False


def test_abort_of_nobody_succeeds(sglang):
    assert sglang.Abort(rid="nobody").success
    assert sglang.Abort(abort_all=True).success


def test_engine_state_comes_at_once_and_with_every_change(start):
    server = start("--engine", "mock")
    sglang = Client(f"127.0.0.1:{server.port}").sglang
    snapshots, changed = [], threading.Condition()
    watch = sglang.WatchEngineState()

    def read():
        try:
            for snapshot in watch:
                with changed:
                    snapshots.append(snapshot)
                    changed.notify()
        except grpc.RpcError:
            pass

    def wait_for(*paused):
        with changed:
            assert changed.wait_for(lambda: [s.is_pause for s in snapshots] == list(paused), WAIT_SECONDS)

    reader = threading.Thread(target=read)
    reader.start()
    wait_for(False)
    sglang.PauseGeneration(mode="in_place")
    wait_for(False, True)
    post(server, "/continue_generation")
    wait_for(False, True, False)
    # However short it is.
    post(server, "/pause_generation", mode="in_place")
    post(server, "/continue_generation")
    wait_for(False, True, False, True, False)
    watch.cancel()
    reader.join()
    revisions = [snapshot.revision for snapshot in snapshots]
    assert revisions == sorted(set(revisions)) and revisions[0] >= 1
    assert len({snapshot.instance_id for snapshot in snapshots}) == 1 and all(s.healthy for s in snapshots)
    assert json.loads(snapshots[0].server_info.json_info)["incremental_streaming_output"] is True
    assert json.loads(snapshots[0].model_info.json_info)["is_generation"]


def test_weights_are_updated_or_a_reason_is_given(mock, demo):
    with pytest.raises(grpc.RpcError) as refused:
        Client(f"127.0.0.1:{mock.port}").sglang.UpdateWeightsFromDisk(model_path="/models/any")
    assert refused.value.code() == Code.FAILED_PRECONDITION
    sglang = Client(f"127.0.0.1:{demo.port}").sglang
    for path in ("/nowhere/at/all", ""):
        answer = sglang.UpdateWeightsFromDisk(model_path=path)
        assert not answer.success and answer.message
    path = sglang.GetModelInfo().model_path
    for other in (path + "/.", path):
        assert sglang.UpdateWeightsFromDisk(model_path=other).success
        assert sglang.GetModelInfo().model_path == other
        assert requests.get(demo.url + "/model_info", timeout=60).json()["model_path"] == other
    assert list(sglang.TextGenerate(text=TEXT, sampling_params={"max_new_tokens": 3}))[-1].finished
