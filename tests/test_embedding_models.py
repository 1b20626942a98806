"""Tiny models that give vectors or logits against what transformers computed, all in one server, through HTTP."""
import numpy as np
import pytest
import requests

from conftest import Server
from test_reference_models import read_safetensors

EMBEDDERS = ["bert-embed", "xlm-roberta-embed", "qwen3-embed"]
CLASSIFIERS = ["bert-cross-encoder", "roberta-classify", "qwen2-classify", "llama-reward"]
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def server(shared):
    flags = ["--dtype", "float32"]
    for name in EMBEDDERS + CLASSIFIERS:
        flags += ["--model-path", shared / "models" / name, "--served-model-name", name]
    server = Server(*flags)
    yield server
    server.stop()


def post(server, path, body):
    answer = requests.post(server.url + path, json=body, timeout=300)
    assert answer.status_code == 200, answer.text
    return answer.json()


def cases(shared, name):
    """Each case's ids and all that is expected of it, by the part of its name behind `caseN.`."""
    expected = read_safetensors(shared / "models" / name / "expected.safetensors")
    for k in range(sum(key.endswith(".input_ids") for key in expected)):
        prefix = f"case{k}."
        yield {key[len(prefix):]: value for key, value in expected.items() if key.startswith(prefix)}


@pytest.mark.parametrize("name", EMBEDDERS)
def test_vectors_equal_the_reference_alone_and_in_a_batch(server, shared, name):
    facts = requests.get(f"{server.url}/v1/models/{name}", timeout=60).json()
    wanted = list(cases(shared, name))
    ids = [case["input_ids"].tolist() for case in wanted]
    body = {"model": name, "input": ids, "normalize": False}
    raw = [item["embedding"] for item in post(server, "/v1/embeddings", body)["data"]]
    unit = [item["embedding"] for item in post(server, "/v1/embeddings", {**body, "normalize": True})["data"]]
    for i, case in enumerate(wanted):
        assert np.abs(np.array(raw[i]) - case[facts["pooling"]]).max() < TOLERANCE
        assert np.abs(np.array(unit[i]) - case[facts["pooling"] + "_normalized"]).max() < TOLERANCE
        alone = post(server, "/v1/embeddings", {**body, "input": ids[i]})["data"][0]["embedding"]
        assert np.abs(np.array(alone) - raw[i]).max() < TOLERANCE


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scores_equal_the_reference(server, shared, name):
    for case in cases(shared, name):
        body = {"model": name, "input_ids": case["input_ids"].tolist()}
        if "token_type_ids" in case:
            body["token_type_ids"] = case["token_type_ids"].tolist()
        scores = post(server, "/classify", body)["embedding"]
        assert np.abs(np.array(scores) - case["scores"]).max() < TOLERANCE


def test_a_cross_encoder_ranks_and_scores_pairs(server):
    documents = ["one", "two words", "and three of them"]
    ranked = post(server, "/v1/rerank", {"model": "bert-cross-encoder", "query": "which", "documents": documents})
    scores = post(server, "/v1/score", {"model": "bert-cross-encoder", "query": "which", "items": documents})["scores"]
    assert sorted((row[0] for row in scores), reverse=True) == pytest.approx([item["score"] for item in ranked],
                                                                             abs=TOLERANCE)
