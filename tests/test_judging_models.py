"""A model that generates ranks documents by its next token, as Qwen3-Reranker does: a folder that says so."""
import json
import math
import shutil

import pytest
import requests

from conftest import ROOT, Server

YES, NO = 300, 301
TEMPLATE = ("Find: {{ messages | selectattr('role', 'eq', 'system') | map(attribute='content') | first | default('facts') }}\n"
            "{{ (messages | selectattr('role', 'eq', 'query') | first).content }} | "
            "{{ (messages | selectattr('role', 'eq', 'document') | first).content }} ?")
DOCUMENTS = ["Paris is a city", "a dog barks", "the sky"]
# Which prompts are computed together, and from which cached prefix, decides how the model's weights of 16 bits are
# multiplied: a slow machine once made 0.729 of 0.725. The documents are 0.1 apart.
NEAR = 0.02


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    for file in (ROOT / "models/demo").iterdir():
        shutil.copy(file, folder / file.name)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "modules.json").write_text(json.dumps([
        {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {"path": "1_LogitScore", "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}]))
    (folder / "1_LogitScore").mkdir()
    (folder / "1_LogitScore/config.json").write_text(json.dumps({"true_token_id": YES, "false_token_id": NO}))
    server = Server("--model-path", folder)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def chat_model():
    server = Server()
    yield server
    server.stop()


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=120)


def expected(server, query, instruction="facts"):
    texts = [f"Find: {instruction}\n{query} | {document} ?" for document in DOCUMENTS]
    answer = post(server, "/v1/score", query="", items=texts, label_token_ids=[YES, NO], apply_softmax=True).json()
    return [row[0] for row in answer["scores"]]


def test_many_scores_are_those_of_each_item(chat_model):
    """They were spelled on the shard, 45 MB in 200 ms."""
    labels = list(range(200))

    def score(items):
        return post(chat_model, "/v1/score", query="", items=items, label_token_ids=labels).json()["scores"]
    many = score(["one", "two"] * 50)
    assert len(many) == 100 and many == (score(["one"]) + score(["two"])) * 50


def test_a_judge_ranks_by_the_probability_of_its_yes(judge):
    wanted = expected(judge, "capital")
    assert len({round(score, 6) for score in wanted}) == 3
    ranked = post(judge, "/v1/rerank", query="capital", documents=DOCUMENTS).json()
    assert [item["index"] for item in ranked] == sorted(range(3), key=lambda i: -wanted[i])
    for item in ranked:
        assert item["score"] == pytest.approx(wanted[item["index"]], abs=NEAR)
        assert item["meta_info"]["prompt_tokens"] > 10
    cohere = post(judge, "/v2/rerank", query="capital", documents=DOCUMENTS, top_n=1).json()
    assert cohere["results"][0]["relevance_score"] == pytest.approx(max(wanted), abs=NEAR)
    raw = post(judge, "/v1/rerank", query="capital", documents=DOCUMENTS, use_activation=False).json()
    best = max(wanted)
    assert raw[0]["score"] == pytest.approx(math.log(best / (1 - best)), abs=8 * NEAR)


def test_an_instruction_reaches_the_template(judge):
    wanted = expected(judge, "capital", "towns")
    ranked = post(judge, "/v1/rerank", query="capital", documents=DOCUMENTS, instruct="towns").json()
    for item in ranked:
        assert item["score"] == pytest.approx(wanted[item["index"]], abs=NEAR)


def test_a_judge_generates_too_and_a_chat_model_does_not_rank(judge, chat_model):
    assert post(judge, "/v1/completions", prompt="a", max_tokens=2).status_code == 200
    refused = post(chat_model, "/v1/rerank", query="a", documents=["b"])
    assert refused.status_code == 400 and "--chat-template" in refused.json()["error"]["message"]
