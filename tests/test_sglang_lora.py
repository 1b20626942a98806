"""Adapters that come and go before SGLang's scheduler: those used least recently make room, and come back when they are named."""
import shutil

import pytest
import requests
from conftest import wait_until

from test_sglang import flags
from test_sglang_controls import TENSORS, endless, post, short


def loaded(server):
    """What the scheduler has, by a load that it refuses."""
    answer = post(server, "/load_lora_adapter", lora_name="none", lora_path="/nowhere/at/all")
    assert answer.status_code == 400
    return sorted(answer.json()["loaded_adapters"])


def load(server, name, folder, **fields):
    answer = post(server, "/load_lora_adapter", lora_name=name, lora_path=str(folder), **fields)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def server(start):
    return start(*flags("--enable-lora", "--max-loaded-loras", "2"))


def test_the_adapter_used_least_recently_makes_room_and_comes_back(server, tmp_path):
    load(server, "a", tmp_path)
    load(server, "b", tmp_path)
    assert short(server, lora_path="a").status_code == 200
    server.settle()
    load(server, "c", tmp_path)
    wait_until(lambda: loaded(server) == ["a", "c"], lambda: loaded(server))
    again = short(server, lora_path="b")
    assert again.status_code == 200, again.text
    wait_until(lambda: loaded(server) == ["b", "c"], lambda: loaded(server))
    assert "which had been evicted, is loaded again" in server.output()


def test_pinned_adapters_and_those_in_use_stay(start, tmp_path):
    server = start(*flags("--enable-lora", "--max-loaded-loras", "2", "--stand-in-itl-ms", "20"))
    load(server, "a", tmp_path, pinned=True)
    load(server, "b", tmp_path)
    stream = endless(server, lora_path="b")
    load(server, "c", tmp_path)
    assert loaded(server) == ["a", "b", "c"]  # for as long as nothing can leave
    stream.close()
    server.settle()
    wait_until(lambda: loaded(server) == ["a", "c"], lambda: loaded(server))


def test_where_all_adapters_are_pinned_no_other_is_loaded(server, tmp_path):
    load(server, "a", tmp_path, pinned=True)
    load(server, "b", tmp_path, pinned=True)
    refused = post(server, "/load_lora_adapter", lora_name="c", lora_path=str(tmp_path))
    assert refused.status_code == 400 and "--max-loaded-loras" in refused.json()["error_message"], refused.text


def test_many_requests_of_an_evicted_adapter_load_it_once(server, tmp_path):
    for name in "abc":
        load(server, name, tmp_path)
    wait_until(lambda: loaded(server) == ["b", "c"], lambda: loaded(server))
    answer = short(server, text=["one", "two", "three"], lora_path="a", sampling_params={"max_new_tokens": 2, "n": 2})
    assert answer.status_code == 200 and len(answer.json()) == 6, answer.text
    assert server.output().count("is loaded again") == 1


def test_an_evicted_adapter_that_is_gone_is_the_error_of_those_that_name_it(server, tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    for name, path in [("a", folder), ("b", tmp_path), ("c", tmp_path)]:
        load(server, name, path)
    shutil.rmtree(folder)
    for _ in range(2):
        refused = short(server, lora_path="a")
        assert refused.status_code == 400 and "no such folder" in refused.text, refused.text
    folder.mkdir()
    assert short(server, lora_path="a").status_code == 200


def test_an_evicted_adapter_that_is_unloaded_does_not_come_back(server, tmp_path):
    for name in "abc":
        load(server, name, tmp_path)
    wait_until(lambda: loaded(server) == ["b", "c"], lambda: loaded(server))
    assert post(server, "/unload_lora_adapter", lora_name="a").status_code == 200
    assert short(server, lora_path="a").status_code == 400
    assert post(server, "/unload_lora_adapter", lora_name="a").status_code == 404


def test_tensors_that_were_evicted_must_be_sent_again(server, tmp_path):
    sent = post(server, "/load_lora_adapter_from_tensors", lora_name="t", config_dict={"r": 8}, serialized_named_tensors=[TENSORS])
    assert sent.status_code == 200, sent.text
    load(server, "a", tmp_path)
    load(server, "b", tmp_path)
    wait_until(lambda: loaded(server) == ["a", "b"], lambda: loaded(server))
    refused = short(server, lora_path="t")
    assert refused.status_code == 400 and "evicted" in refused.text


def test_embeddings_name_adapters_too(start, tmp_path):
    server = start(*flags("--is-embedding", "--enable-lora", "--max-loaded-loras", "1"))
    load(server, "a", tmp_path)
    load(server, "b", tmp_path)
    wait_until(lambda: loaded(server) == ["b"], lambda: loaded(server))
    for path, body in [("/v1/embeddings", {"input": "one"}), ("/encode", {"text": "one"})]:
        assert post(server, path, **body, lora_path="a").status_code == 200
        refused = post(server, path, **body, lora_path="z")
        assert refused.status_code == 400 and "lora_path" in refused.text, refused.text
    both = post(server, "/v1/embeddings", input=["one", "two"], lora_path=["b", None])
    assert both.status_code == 200, both.text
    state = requests.get(server.url + "/get_internal_state", timeout=60).json()["replies"][0]["internal_state"]
    taken = [name for _, _, name in state["taken"]]
    assert taken[:2] == ["a", "a"] and sorted(taken[2:], key=str) == [None, "b"]
    assert post(server, "/v1/embeddings", input=["one", "two"], lora_path=["b"]).status_code == 400


def test_embeddings_without_adapters_refuse_them_by_name(start):
    server = start(*flags("--is-embedding"))
    refused = post(server, "/v1/embeddings", input="one", lora_path="a")
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "lora_path"
    assert post(server, "/v1/embeddings", input="one", lora_path="").status_code == 200
