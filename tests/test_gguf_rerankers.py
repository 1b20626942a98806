"""GGUF files of rerankers as llama.cpp converts Qwen3-Reranker: a head for "yes" and "no", and a template of their own."""
import math

import pytest
import requests

from conftest import Server
from gguf_file import random_qwen3

RANK = 4  # llama.cpp's number for this way of pooling
TEMPLATE = ("<|im_start|>system\nThe answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
            "<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n")
JINJA = ("{{ messages | selectattr('role', 'eq', 'system') | map(attribute='content') | first | default('facts') }}: "
         "{{ (messages | selectattr('role', 'eq', 'query') | first).content }} | "
         "{{ (messages | selectattr('role', 'eq', 'document') | first).content }} ?")
DOCUMENTS = ["Paris is a city", "a dog barks", "the sky", "{query}"]


def write(path, labels, template=None, named=True):
    metadata = {"qwen3.pooling_type": RANK, "qwen3.classifier.output_labels": labels}
    if template:
        metadata["tokenizer.chat_template"] = template
    if named:
        metadata |= {"tokenizer.chat_templates": ["rerank"], "tokenizer.chat_template.rerank": TEMPLATE}
    random_qwen3(path, metadata, heads={"cls.output.weight": len(labels)})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """All files in one server, each under its name. None with a head could be loaded once: the path of its file was
    read from what had been moved away."""
    folder = tmp_path_factory.mktemp("rerankers")
    write(folder / "yes-no.gguf", ["yes", "no"])
    write(folder / "chat.gguf", ["yes", "no"], "{% for message in messages %}{{ message.content }}{% endfor %}")
    write(folder / "jinja.gguf", ["yes", "no"], JINJA)
    write(folder / "bare.gguf", ["no", "yes"], named=False)
    write(folder / "moods.gguf", ["good", "bad"])
    flags = ["--dtype", "float32"]
    for path in sorted(folder.iterdir()):
        flags += ["--model-path", path, "--served-model-name", path.stem]
    server = Server(*flags)
    yield server
    server.stop()


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=120)


def logits(server, model, texts):
    ids = [post(server, "/tokenize", model=model, prompt=text, add_special_tokens=False).json()["tokens"]
           for text in texts]
    rows = post(server, "/classify", model=model, input_ids=ids).json()
    return [row["embedding"] for row in rows]


def probabilities(rows, yes=0):
    return [1 / (1 + math.exp(row[1 - yes] - row[yes])) for row in rows]


def filled(query):
    return [TEMPLATE.replace("{query}", query).replace("{document}", document) for document in DOCUMENTS]


@pytest.mark.parametrize("model", ["yes-no", "chat"])
def test_documents_rank_by_the_probability_of_yes_in_the_files_own_template(server, model):
    rows = logits(server, model, filled("capital"))
    wanted = probabilities(rows)
    assert len({round(score, 4) for score in wanted}) == len(DOCUMENTS)
    ranked = post(server, "/v1/rerank", model=model, query="capital", documents=DOCUMENTS).json()
    assert [item["index"] for item in ranked] == sorted(range(len(DOCUMENTS)), key=lambda i: -wanted[i])
    cohere = post(server, "/v2/rerank", model=model, query="capital", documents=DOCUMENTS).json()["results"]
    raw = post(server, "/v1/rerank", model=model, query="capital", documents=DOCUMENTS, use_activation=False).json()
    for item, other, bare in zip(ranked, cohere, raw):
        i = item["index"]
        assert item["score"] == pytest.approx(wanted[i], abs=1e-5)
        assert (other["index"], other["relevance_score"]) == (i, item["score"])
        assert (bare["index"], bare["score"]) == (i, pytest.approx(rows[i][0] - rows[i][1], abs=1e-4))


@pytest.mark.parametrize("model", ["yes-no", "chat"])
def test_scores_are_the_logits_in_the_files_own_template(server, model):
    wanted = logits(server, model, filled("capital"))
    body = {"model": model, "query": "capital", "items": DOCUMENTS}
    for row, logit in zip(post(server, "/v1/score", **body).json()["scores"], wanted):
        assert row == pytest.approx(logit, abs=1e-4)
    shares = post(server, "/v1/score", **body, apply_softmax=True).json()["scores"]
    assert [row[0] for row in shares] == pytest.approx(probabilities(wanted), abs=1e-5)
    turned = post(server, "/v1/score", **body, item_first=True)
    assert turned.status_code == 400 and turned.json()["error"]["param"] == "item_first"


def test_an_instruction_is_refused_where_the_template_has_one(server):
    answer = post(server, "/v1/rerank", model="yes-no", query="a", documents=["b"], instruct="towns")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "instruct"


def test_a_chat_template_for_pairs_goes_first_and_takes_instructions(server):
    for instruction, fields in [("facts", {}), ("towns", {"instruct": "towns"})]:
        wanted = probabilities(logits(server, "jinja", [f"{instruction}: capital | {document} ?"
                                                        for document in DOCUMENTS]))
        ranked = post(server, "/v1/rerank", model="jinja", query="capital", documents=DOCUMENTS, **fields).json()
        for item in ranked:
            assert item["score"] == pytest.approx(wanted[item["index"]], abs=1e-5)


def test_labels_decide_whatever_their_order(server):
    wanted = probabilities(logits(server, "bare", ["capital" + document for document in DOCUMENTS]), yes=1)
    for item in post(server, "/v1/rerank", model="bare", query="capital", documents=DOCUMENTS).json():
        assert item["score"] == pytest.approx(wanted[item["index"]], abs=1e-5)


def test_other_labels_do_not_rank(server):
    answer = post(server, "/v1/rerank", model="moods", query="a", documents=["b"])
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["param"] == "model"
    assert "2 labels" in error["message"] and "yes and no" in error["message"]
    label = post(server, "/v1/classify", model="moods", input="a").json()["data"][0]
    assert label["label"] in ("good", "bad")
