"""Vectors, classes and relevance through gRPC, on the mock engine."""
import json

import grpc
import pytest

from grpc_client import Client, fields_at_fault
from pooling_client import SLOW, post


def meta(answer):
    return {key: json.loads(value) for key, value in answer.meta_info.items()}


def test_grpc_gives_what_http_gives(embedder, classifier):
    grpc_embedder = Client(f"127.0.0.1:{embedder.port}")
    vector = post(embedder, "/encode", {"text": "one two"}).json()["embedding"]
    text = grpc_embedder.sglang.TextEmbed(text="one two", rid="mine")
    assert list(text.embedding) == pytest.approx(vector, abs=1e-7)
    assert meta(text)["id"] == "mine" and meta(text)["prompt_tokens"] > 0
    ids = post(embedder, "/tokenize", {"prompt": "one two"}).json()["tokens"]
    assert list(grpc_embedder.sglang.Embed(input_ids=ids).embedding) == list(text.embedding)
    scheduler = grpc_embedder.scheduler.Embed(tokenized={"input_ids": ids})
    assert list(scheduler.embedding) == list(text.embedding)
    assert (scheduler.embedding_dim, scheduler.prompt_tokens) == (64, len(ids))
    body = {"input": "one two"}
    answer = grpc_embedder.sglang.OpenAIEmbed(json_body=json.dumps(body).encode())
    assert answer.status_code == 200
    assert json.loads(answer.json_body) == post(embedder, "/v1/embeddings", body).json()

    grpc_classifier = Client(f"127.0.0.1:{classifier.port}")
    logits = post(classifier, "/classify", {"text": "one two"}).json()["embedding"]
    assert list(grpc_classifier.sglang.Classify(text="one two").embedding) == pytest.approx(logits, abs=1e-6)
    assert list(grpc_classifier.sglang.Classify(input_ids=ids).embedding) == pytest.approx(logits, abs=1e-6)
    assert len(grpc_classifier.scheduler.Embed(tokenized={"input_ids": ids}).embedding) == 3
    info = grpc_classifier.scheduler.GetModelInfo()
    assert info.is_generation is False and info.num_labels == 3
    assert json.loads(info.id2label_json)["0"] == "LABEL_0"


def test_grpcs_json_methods_rank_classify_and_score(classifier, ranker):
    for server, method, path, body in [
            (ranker, "Rerank", "/v1/rerank", {"query": "q", "documents": ["a", "b"], "rid": "r"}),
            (classifier, "OpenAIClassify", "/v1/classify", {"input": "a", "rid": "r"}),
            (classifier, "Score", "/v1/score", {"query": "q", "items": ["a", "b"]})]:
        service = Client(f"127.0.0.1:{server.port}").sglang
        answer = getattr(service, method)(json_body=json.dumps(body).encode())
        expected = post(server, path, body).json()
        got = json.loads(answer.json_body)
        for each in (got, expected):
            if isinstance(each, dict):
                each.pop("created", None)
            else:
                for item in each:
                    item["meta_info"].pop("e2e_latency")
        assert answer.status_code == 200 and got == expected


@pytest.mark.parametrize("method, fields, code, field", [
    ("TextEmbed", {}, "INVALID_ARGUMENT", "text"),
    ("Embed", {}, "INVALID_ARGUMENT", "input_ids"),
    ("Embed", {"input_ids": [99999999]}, "INVALID_ARGUMENT", "input_ids"),
    ("Embed", {"input_ids": [-1]}, "INVALID_ARGUMENT", "input_ids"),
    ("Classify", {"text": "a"}, "FAILED_PRECONDITION", "model"),
    ("Classify", {"text": "a", "input_ids": [1]}, "INVALID_ARGUMENT", "text"),
])
def test_what_grpc_refuses_is_named(embedder, method, fields, code, field):
    with pytest.raises(grpc.RpcError) as error:
        getattr(Client(f"127.0.0.1:{embedder.port}").sglang, method)(**fields)
    assert error.value.code().name == code
    assert field in fields_at_fault(error.value)[0] or field in error.value.details()


def test_a_text_may_name_the_only_rank_and_no_other(embedder):
    scheduler = Client(f"127.0.0.1:{embedder.port}").scheduler
    assert scheduler.Embed(tokenized={"input_ids": [5, 6]}, data_parallel_rank=0).embedding
    with pytest.raises(grpc.RpcError) as error:
        scheduler.Embed(tokenized={"input_ids": [5, 6]}, data_parallel_rank=1)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert fields_at_fault(error.value)[0] == ["data_parallel_rank"]


def test_a_grpc_call_that_is_cancelled_or_late_stops_the_work(serve):
    server = serve("--is-embedding", *SLOW)
    client = Client(f"127.0.0.1:{server.port}")
    call = client.sglang.TextEmbed.raw.future(client.sglang.TextEmbed.request(text="a"))
    server.wait_for("portico_requests_running", 1)
    call.cancel()
    server.settle()
    with pytest.raises(grpc.RpcError) as error:
        client.sglang.Embed(input_ids=[1], timeout=0.5)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    server.settle()
    call = client.sglang.TextEmbed.raw.future(client.sglang.TextEmbed.request(text="a", rid="mine"))
    server.wait_for("portico_requests_running", 1)
    assert client.sglang.Abort(rid="mine").success
    with pytest.raises(grpc.RpcError) as error:
        call.result(60)
    assert error.value.code() == grpc.StatusCode.CANCELLED
