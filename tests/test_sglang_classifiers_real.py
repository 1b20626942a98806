"""Classes, scores and ranks of an installed SGLang on the CPU, compared with SGLang's own server before the same classifier.

PORTICO_SGLANG_PYTHON names a Python that has SGLang (docs/sglang.md says how to install one without a GPU).
"""
import contextlib
import subprocess

import pytest
import requests
from conftest import ROOT
from real_sglang import CPU_FLAGS, DEMO, PYTHON, SglangServer, set_environment, start_ready

pytestmark = pytest.mark.skipif(not PYTHON, reason="PORTICO_SGLANG_PYTHON names no Python that has SGLang")
TEXTS = ["A fox and an owl walked home.", "x", "Once upon a time there was a garden. " * 12]


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch, tmp_path_factory.mktemp("stub"))
        yield


@contextlib.contextmanager
def both(folder, labels):
    """Portico and SGLang's own server before a classifier with these labels; gives their addresses."""
    subprocess.run([PYTHON, ROOT / "tests/tiny_classifier.py", DEMO, folder, *labels], check=True)
    with contextlib.ExitStack() as running:
        theirs = SglangServer(model=folder)
        running.callback(theirs.kill)
        ours = start_ready("--engine", "sglang", "--sglang-python", PYTHON, "--model-path", folder, "--served-model-name", "demo",
                           "--", *CPU_FLAGS)
        running.callback(ours.stop)
        theirs.wait_ready()
        yield ours.url, theirs.url


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    with both(tmp_path_factory.mktemp("classifier"), ["fox", "owl", "neither"]) as urls:
        yield urls


def ask(urls, path, body):
    """What ours and theirs answer."""
    got = [requests.post(url + path, json={"model": "demo", **body}, timeout=120) for url in urls]
    assert [answer.status_code for answer in got] == [200, 200], [answer.text for answer in got]
    return [answer.json() for answer in got]


def close(values):
    return pytest.approx(values, abs=1e-4)


def test_classes_are_those_of_sglangs_own_server(classifiers):
    ours, theirs = ask(classifiers, "/classify", {"text": TEXTS})
    for mine, other in zip(ours, theirs, strict=True):
        assert len(other["embedding"]) == 3
        assert mine["embedding"] == close(other["embedding"])
        assert mine["meta_info"]["prompt_tokens"] == other["meta_info"]["prompt_tokens"]
    ours, theirs = ask(classifiers, "/v1/classify", {"input": TEXTS})
    for mine, other in zip(ours["data"], theirs["data"], strict=True):
        assert (mine["index"], mine["label"], mine["num_classes"]) == (other["index"], other["label"], 3)
        assert mine["probs"] == close(other["probs"])
    assert ours["usage"]["prompt_tokens"] == theirs["usage"]["prompt_tokens"]


def test_scores_are_those_of_sglangs_own_server(classifiers):
    for body in ({"query": "A fox", "items": [" ran", " sat down", " x"]},
                 {"query": "A fox", "items": [" ran", " sat down"], "apply_softmax": True},
                 {"query": [5, 6], "items": [[7], [8, 9]], "item_first": True}):
        ours, theirs = ask(classifiers, "/v1/score", body)
        assert len(ours["scores"]) == len(body["items"])
        for mine, other in zip(ours["scores"], theirs["scores"], strict=True):
            assert mine == close(other), body


def test_a_classifier_embeds_and_generates_nothing_and_goes_on(classifiers):
    for path, body in [("/v1/embeddings", {"input": "x"}), ("/generate", {"text": "x"}),
                       ("/v1/rerank", {"query": "x", "documents": ["y"]}), ("/classify", {"text": "word " * 3000})]:
        assert requests.post(classifiers[0] + path, json={"model": "demo", **body}, timeout=60).status_code == 400, path
    ask(classifiers, "/classify", {"text": "x"})


def test_ranks_are_those_of_sglangs_own_server(tmp_path):
    documents = ["The fox lives in a den.", "Owls fly at night.", "x"]
    with both(tmp_path / "classifier", ["relevant"]) as urls:
        ours, theirs = ask(urls, "/v1/rerank", {"query": "Where does the fox live?", "documents": documents})
    assert [item["index"] for item in ours] == [item["index"] for item in theirs]
    assert [item["score"] for item in ours] == close([item["score"] for item in theirs])
    assert [item["document"] for item in ours] == [item["document"] for item in theirs]
