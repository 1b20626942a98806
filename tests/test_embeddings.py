"""Vectors through HTTP, on the mock engine."""
import base64
import math
import struct

import openai
import pytest
import requests

from conftest import ROOT
from pooling_client import post, refused


def norm(vector):
    return math.sqrt(sum(x * x for x in vector))


def test_the_openai_package_gets_the_same_vectors_in_both_encodings(embedder):
    client = openai.OpenAI(base_url=embedder.url + "/v1", api_key="none")
    default = client.embeddings.create(model="demo", input=["one two", "three"])
    assert [item.index for item in default.data] == [0, 1] and default.model == "demo"
    assert default.usage.prompt_tokens == default.usage.total_tokens > 0
    floats = client.embeddings.create(model="demo", input=["one two", "three"], encoding_format="float")
    for a, b in zip(default.data, floats.data):
        assert a.embedding == pytest.approx(b.embedding, abs=1e-7)
        assert len(b.embedding) == 64 and norm(b.embedding) == pytest.approx(1, abs=1e-6)
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="demo", input=[])
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="other", input="a")


def test_base64_holds_little_endian_floats(embedder):
    body = {"input": "one two"}
    plain = post(embedder, "/v1/embeddings", body).json()["data"][0]["embedding"]
    packed = post(embedder, "/v1/embeddings", {**body, "encoding_format": "base64"}).json()["data"][0]["embedding"]
    assert list(struct.unpack("<64f", base64.b64decode(packed))) == pytest.approx(plain, abs=1e-8)


def test_texts_and_their_ids_give_the_same_vectors(embedder):
    texts = ["one two three", "four"]
    ids = post(embedder, "/tokenize", {"prompt": texts}).json()["tokens"]
    by_text = post(embedder, "/v1/embeddings", {"input": texts}).json()
    by_ids = post(embedder, "/v1/embeddings", {"input": ids}).json()
    assert by_text["data"] == by_ids["data"] and by_text["usage"] == by_ids["usage"]
    assert by_text["usage"]["prompt_tokens"] == sum(map(len, ids))
    assert post(embedder, "/v1/embeddings", {"input": ids[0]}).json()["data"] == by_ids["data"][:1]


def test_dimensions_cut_and_make_the_length_one_again(embedder):
    whole = post(embedder, "/v1/embeddings", {"input": "a", "normalize": False}).json()["data"][0]["embedding"]
    for size in (16, 32):
        cut = post(embedder, "/v1/embeddings", {"input": "a", "dimensions": size}).json()["data"][0]["embedding"]
        assert cut == pytest.approx([x / norm(whole[:size]) for x in whole[:size]], abs=1e-6)


@pytest.mark.parametrize("path, body, field", [
    ("/v1/embeddings", {}, "input"),
    ("/v1/embeddings", {"input": ""}, "input"),
    ("/v1/embeddings", {"input": []}, "input"),
    ("/v1/embeddings", {"input": ["a", ""]}, "input"),
    ("/v1/embeddings", {"input": [[]]}, "input"),
    ("/v1/embeddings", {"input": ["a", 7]}, "input"),
    ("/v1/embeddings", {"input": [99999999]}, "input"),
    ("/v1/embeddings", {"input": [-1]}, "input"),
    ("/v1/embeddings", {"input": "a", "dimensions": 20}, "dimensions"),
    ("/v1/embeddings", {"input": "a", "dimensions": 65}, "dimensions"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}, "encoding_format"),
    ("/v1/embeddings", {"input": "a", "truncate_prompt_tokens": 99999999}, "truncate_prompt_tokens"),
    ("/encode", {"text": "a", "input_ids": [1]}, "text"),
    ("/encode", {"text": ["a", "b"], "rid": ["x", "x"]}, "rid"),
    ("/encode", {"text": "a", "data_parallel_rank": 1}, "data_parallel_rank"),
    ("/v1/embeddings", {"input": "a", "routed_dp_rank": 1}, "routed_dp_rank"),
    ("/v1/classify", {"input": "a"}, "model"),
    ("/v1/rerank", {"query": "a", "documents": ["b"]}, "model"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}, "model"),
    ("/v1/completions", {"prompt": "a"}, "model"),
    ("/generate", {"text": "a"}, "model"),
    ("/v1/score", {"query": "a", "items": ["b"], "label_token_ids": [1]}, "model"),
])
def test_what_an_embedder_refuses_is_named(embedder, path, body, field):
    assert refused(post(embedder, path, body))["param"] == field
    assert post(embedder, "/v1/embeddings", {"input": "a"}).status_code == 200


def test_long_texts_are_cut_only_when_asked(serve):
    server = serve("--is-embedding", "--context-length", "16")
    long = "one two three four five six seven eight nine ten " * 5
    ids = post(server, "/tokenize", {"prompt": long}).json()["tokens"]
    error = refused(post(server, "/v1/embeddings", {"input": ["a", long]}))
    assert error["param"] == "input" and f"input[1] has {len(ids)} tokens" in error["message"]
    assert "at most 16" in error["message"]
    for limit, kept in [(-1, 16), (5, 5)]:
        answer = post(server, "/v1/embeddings", {"input": long, "truncate_prompt_tokens": limit}).json()
        assert answer["usage"]["prompt_tokens"] == kept


def test_thousands_of_texts_keep_their_order(embedder):
    texts = [f"text number {i}" for i in range(3000)]
    many = post(embedder, "/v1/embeddings", {"input": texts, "encoding_format": "base64"}).json()
    assert [item["index"] for item in many["data"]] == list(range(3000))
    for i in (0, 1234, 2999):
        one = post(embedder, "/v1/embeddings", {"input": texts[i], "encoding_format": "base64"}).json()
        assert one["data"][0]["embedding"] == many["data"][i]["embedding"]


def test_too_many_texts_are_refused_by_the_flag(serve):
    server = serve("--is-embedding", "--max-client-batch-size", "3")
    assert post(server, "/v1/embeddings", {"input": ["a"] * 3}).status_code == 200
    error = refused(post(server, "/v1/embeddings", {"input": ["a"] * 4}))
    assert error["param"] == "input" and "at most 3 texts, got 4" in error["message"]


def test_encode_answers_in_sglangs_form(embedder):
    one = post(embedder, "/encode", {"text": "one two", "rid": "mine"}).json()
    vector = post(embedder, "/v1/embeddings", {"input": "one two"}).json()["data"][0]["embedding"]
    assert one["embedding"] == vector
    meta = one["meta_info"]
    assert meta["id"] == "mine" and meta["finish_reason"] == {"type": "length", "length": 0}
    assert meta["prompt_tokens"] > 0 and meta["e2e_latency"] >= 0
    two = post(embedder, "/encode", {"text": ["one two", "three"], "rid": "mine"}).json()
    assert [item["meta_info"]["id"] for item in two] == ["mine_0", "mine_1"]
    assert two[0]["embedding"] == vector


def test_probes_and_facts_fit_the_model(embedder, classifier):
    for server in (embedder, classifier):
        assert requests.get(server.url + "/health_generate", timeout=60).status_code == 200
        assert requests.get(server.url + "/readiness", timeout=60).status_code == 200
        assert requests.get(server.url + "/v1/loads", timeout=60).status_code == 200
    facts = requests.get(embedder.url + "/v1/models", timeout=60).json()["data"][0]
    assert facts["is_embedding"] is True and facts["is_generation"] is False and facts["pooling"] == "mean"
    assert facts["embedding_size"] == 64 and facts["matryoshka_dimensions"] == [16, 32]
    facts = requests.get(classifier.url + "/get_model_info", timeout=60).json()
    assert facts["task"] == "classify" and facts["id2label"]["2"] == "LABEL_2"


def test_a_chat_model_and_an_embedder_stand_side_by_side(start):
    path = str(ROOT / "models/demo")
    server = start("--engine", "mock", "--model-path", path, "--served-model-name", "chat", "--model-path", path,
                   "--served-model-name", "vectors", "--is-embedding")
    chat = {"model": "chat", "prompt": "a", "max_tokens": 2}
    assert post(server, "/v1/completions", chat).status_code == 200
    assert post(server, "/v1/embeddings", {"model": "vectors", "input": "a"}).status_code == 200
    assert "generates text" in refused(post(server, "/v1/embeddings", {"model": "chat", "input": "a"}))["message"]
    assert "/v1/embeddings" in refused(post(server, "/v1/completions", {**chat, "model": "vectors"}))["message"]
