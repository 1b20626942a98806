"""Relevance, scores and classes through HTTP, on the mock engine."""
import math

import pytest
import requests

from pooling_client import post, refused


def test_rerank_sorts_and_cuts(ranker):
    documents = [f"document {i}" for i in range(20)] + ["document 3"]
    body = {"query": "which one", "documents": documents}
    ranked = post(ranker, "/v1/rerank", body).json()
    assert len(ranked) == 21 and sorted(item["index"] for item in ranked) == list(range(21))
    scores = [item["score"] for item in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(item["document"] == documents[item["index"]] for item in ranked)
    places = [item["index"] for item in ranked]
    assert places.index(20) == places.index(3) + 1  # equal documents keep their order
    best = post(ranker, "/v1/rerank", {**body, "top_n": 2, "return_documents": False}).json()
    assert [item["index"] for item in best] == places[:2] and all("document" not in item for item in best)
    assert requests.put(ranker.url + "/v1/rerank", json=body, timeout=60).status_code == 200


def test_coheres_form_has_a_relevance_from_0_to_1(ranker):
    body = {"query": "q", "documents": ["a", {"text": "b"}, "c"], "top_n": 2}
    raw = post(ranker, "/v1/rerank", body).json()
    cohere = post(ranker, "/rerank", body).json()
    assert cohere == {**post(ranker, "/v2/rerank", body).json(), "id": cohere["id"]}
    assert [item["index"] for item in cohere["results"]] == [item["index"] for item in raw]
    for a, b in zip(cohere["results"], raw):
        assert a["relevance_score"] == pytest.approx(1 / (1 + math.exp(-b["score"])), abs=1e-6)
        assert a["document"]["text"] == b["document"]
    plain = post(ranker, "/rerank", {**body, "use_activation": False}).json()["results"]
    assert [item["relevance_score"] for item in plain] == [item["score"] for item in raw]


@pytest.mark.parametrize("body, field", [
    ({"documents": ["a"]}, "query"),
    ({"query": "", "documents": ["a"]}, "query"),
    ({"query": "q", "documents": []}, "documents"),
    ({"query": "q", "documents": ["a", ""]}, "documents"),
    ({"query": "q", "documents": ["a"], "top_n": 0}, "top_n"),
    ({"query": "q", "documents": ["a"], "instruct": "x"}, "instruct"),
])
def test_what_is_wrong_with_a_rerank_is_named(ranker, body, field):
    for path in ("/v1/rerank", "/rerank"):
        assert refused(post(ranker, path, body))["param"] == field


def test_scores_of_a_classifier_are_its_logits_for_every_pair(ranker, classifier):
    items = ["b", "c d"]
    rows = post(ranker, "/v1/score", {"query": "a", "items": items, "label_token_ids": [1]}).json()
    ranked = post(ranker, "/v1/rerank", {"query": "a", "documents": items}).json()
    assert {i: row[0] for i, row in enumerate(rows["scores"])} == {item["index"]: item["score"] for item in ranked}
    assert rows["object"] == "scoring" and rows["usage"]["prompt_tokens"] > 0
    plain = post(classifier, "/v1/score", {"query": "a", "items": items}).json()["scores"]
    soft = post(classifier, "/v1/score", {"query": "a", "items": items, "apply_softmax": True}).json()["scores"]
    for row, shares in zip(plain, soft):
        total = sum(map(math.exp, row))
        assert shares == pytest.approx([math.exp(x) / total for x in row], abs=1e-6)
    by_ids = post(classifier, "/v1/score", {"query": [5], "items": [[6, 7], [8]]})
    assert by_ids.status_code == 200 and len(by_ids.json()["scores"]) == 2


def test_classes_have_labels_and_probabilities(classifier, ranker):
    texts = ["one", "two", "three"]
    answer = post(classifier, "/v1/classify", {"input": texts}).json()
    native = post(classifier, "/classify", {"text": texts}).json()
    for item, raw in zip(answer["data"], native):
        logits = raw["embedding"]
        total = sum(map(math.exp, logits))
        assert item["probs"] == pytest.approx([math.exp(x) / total for x in logits], abs=1e-6)
        assert item["label"] == f"LABEL_{logits.index(max(logits))}" and item["num_classes"] == 3
    assert answer["object"] == "list" and answer["usage"]["total_tokens"] > 0
    assert post(classifier, "/classify", {"input": texts}).json()["data"] == answer["data"]
    plain = post(classifier, "/v1/classify", {"input": texts, "use_activation": False}).json()
    assert [item["probs"] for item in plain["data"]] == [raw["embedding"] for raw in native]
    single = post(ranker, "/v1/classify", {"input": "one"}).json()["data"][0]
    logit = post(ranker, "/classify", {"text": "one"}).json()["embedding"][0]
    assert single["probs"] == [pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)]
    assert refused(post(classifier, "/v1/embeddings", {"input": "a"}))["param"] == "model"
    assert "3 labels" in refused(post(classifier, "/v1/rerank", {"query": "a", "documents": ["b"]}))["message"]
