"""Folders of sentence-transformers: what their files say of the texts."""
import json
import shutil

import pytest
import requests

from conftest import ROOT, Server


def write(folder, config):
    folder.mkdir()
    for file in (ROOT / "models/demo").iterdir():
        shutil.copy(file, folder / file.name)
    (folder / "modules.json").write_text(json.dumps([
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "FIND: "}}))
    (folder / "sentence_bert_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("sentences")
    server = Server("--model-path", write(root / "lower", {"do_lower_case": True, "max_seq_length": 64}),
                    "--served-model-name", "lower",
                    "--model-path", write(root / "cased", {"do_lower_case": False}), "--served-model-name", "cased")
    yield server
    server.stop()


def vectors(server, model, texts, **fields):
    answer = requests.post(server.url + "/v1/embeddings", json={"model": model, "input": texts, **fields}, timeout=120)
    assert answer.status_code == 200, answer.text
    return [item["embedding"] for item in answer.json()["data"]]


def test_texts_and_prompts_are_made_lower_case_where_the_folder_says_so(server):
    hello, found = vectors(server, "cased", ["héllo world", "find: a word"])
    assert vectors(server, "lower", ["HÉLLO World"])[0] == pytest.approx(hello, abs=1e-5)
    assert vectors(server, "lower", ["A Word"], prompt_name="query")[0] == pytest.approx(found, abs=1e-5)
    assert vectors(server, "cased", ["HÉLLO World"])[0] != pytest.approx(hello, abs=1e-3)
