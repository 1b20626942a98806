"""Two data-parallel ranks of SGLang's scheduler, a process each (sglang_stand_in_ranks.py)."""
import os
import signal
import subprocess

import pytest
import requests
from conftest import Server, wait_until

from test_sglang import engine_pid, flags, generate
from test_sglang_controls import TENSORS, endless, post, short


def two_ranks(*engine, portico=()):
    return flags("--dp-size", "2", *engine, portico=portico)


@pytest.fixture(scope="module")
def server():
    server = Server(*two_ranks("--enable-lora", "--stand-in-itl-ms", "5"))
    yield server
    server.stop()


def states(server):
    """What each rank says of itself, in the order of the ranks."""
    replies = requests.get(server.url + "/get_internal_state", timeout=60).json()["replies"]
    return sorted((reply["internal_state"] for reply in replies), key=lambda state: state["rank"])


def loads(server):
    return requests.get(server.url + "/v1/loads", timeout=60).json()["loads"]


def rank_pids(server):
    return [int(pid) for pid in subprocess.run(["pgrep", "-P", str(engine_pid(server))], capture_output=True, text=True).stdout.split()]


def test_a_request_goes_to_the_rank_that_it_names(server):
    for rank in (0, 1, 1):
        answer = short(server, routed_dp_rank=rank).json()
        assert answer["meta_info"]["dp_rank"] == rank
    chat = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "x"}], max_tokens=1, routed_dp_rank=1)
    assert chat.status_code == 200, chat.text
    assert {short(server).json()["meta_info"]["dp_rank"] for _ in range(4)} == {0, 1}
    for field in ("routed_dp_rank", "data_parallel_rank"):
        refused = short(server, **{field: 2})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == field


def test_a_control_is_done_when_every_rank_has_done_it(server):
    assert [state["rank"] for state in states(server)] == [0, 1]
    renamed = post(server, "/update_weight_version", new_version="two")
    assert renamed.status_code == 200 and len(renamed.json()["replies"]) == 2, renamed.text
    assert [state["weight_version"] for state in states(server)] == ["two", "two"]
    updated = post(server, "/update_weights_from_tensor", serialized_named_tensors=[TENSORS], weight_version="three")
    assert updated.status_code == 200, updated.text
    for rank in (0, 1):
        assert short(server, routed_dp_rank=rank).json()["meta_info"]["weight_version"] == "three"


def test_a_control_that_one_rank_refuses_is_refused(server):
    stream = endless(server, routed_dp_rank=1)
    busy = post(server, "/flush_cache")
    assert busy.status_code == 400, busy.text
    stream.close()
    server.settle()
    wait_until(lambda: post(server, "/flush_cache").status_code == 200, "the cache is in use")


def test_loads_are_those_of_each_rank(server):
    wait_until(lambda: [load["num_running_reqs"] for load in loads(server)] == [0, 0], lambda: loads(server))
    stream = endless(server, routed_dp_rank=1)
    wait_until(lambda: [load["num_running_reqs"] for load in loads(server)] == [0, 1], lambda: loads(server))
    assert [load["dp_rank"] for load in loads(server)] == [0, 1]
    assert [load["max_total_num_tokens"] for load in loads(server)] == [1000, 1001]
    one = requests.get(server.url + "/get_load?dp_rank=1", timeout=60).json()
    assert [load["dp_rank"] for load in one] == [1]
    stream.close()
    wait_until(lambda: [load["num_running_reqs"] for load in loads(server)] == [0, 0], lambda: loads(server))


def test_an_adapter_is_loaded_when_every_rank_has_it(server, tmp_path):
    load = lambda name, path: post(server, "/load_lora_adapter", lora_name=name, lora_path=str(path))
    assert load("a", tmp_path).status_code == 200
    for rank in (0, 1):
        assert short(server, routed_dp_rank=rank, lora_path="a").status_code == 200
    server.settle()
    assert post(server, "/unload_lora_adapter", lora_name="a").status_code == 200


def test_an_adapter_that_one_rank_lacks_can_only_be_unloaded(server, tmp_path):
    load = lambda: post(server, "/load_lora_adapter", lora_name="half", lora_path=str(tmp_path))
    (tmp_path / "not-rank-1").touch()
    refused = load()
    assert refused.status_code == 400 and "half" not in refused.json()["loaded_adapters"], refused.text
    assert short(server, lora_path="half").status_code == 400
    again = load()
    assert again.status_code == 400 and "unload it" in again.json()["error_message"], again.text
    assert post(server, "/unload_lora_adapter", lora_name="half").status_code == 200
    (tmp_path / "not-rank-1").unlink()
    assert load().status_code == 200
    assert short(server, routed_dp_rank=1, lora_path="half").status_code == 200
    server.settle()
    assert post(server, "/unload_lora_adapter", lora_name="half").status_code == 200


def test_choices_share_their_prompt_on_the_rank_that_they_name_only(server):
    prompt = list(range(500, 540))
    before = [len(state["taken"]) for state in states(server)]
    ask = lambda **body: generate(server, input_ids=prompt, sampling_params={"n": 2, "max_new_tokens": 3, "ignore_eos": True}, **body)
    new = lambda: [[tokens for _, tokens, _ in state["taken"][count:]] for state, count in zip(states(server), before)]
    assert ask(routed_dp_rank=1).status_code == 200
    assert new() == [[], [0, 3, 3]]
    assert ask().status_code == 200
    assert new() == [[3], [0, 3, 3, 3]]


def test_what_sglang_does_with_one_rank_only_is_refused(server):
    group = {"master_address": "127.0.0.1", "master_port": 1, "rank_offset": 0, "world_size": 2}
    for path, body in [("/init_weights_update_group", group), ("/destroy_weights_update_group", {})]:
        refused = post(server, path, **body)
        assert refused.status_code == 400 and "one data-parallel rank" in refused.text, refused.text


def test_the_death_of_one_rank_is_that_of_the_engine(start):
    server = start(*two_ranks("--stand-in-itl-ms", "20", portico=("--restart-engine",)))
    stream = endless(server, routed_dp_rank=0)
    assert len(rank_pids(server)) == 2
    os.kill(rank_pids(server)[1], signal.SIGKILL)
    assert b"the engine failed" in b"".join(stream.lines)
    wait_until(lambda: short(server, routed_dp_rank=1).status_code == 200, "it does not come back")
    assert [state["rank"] for state in states(server)] == [0, 1]


def test_a_text_is_embedded_by_the_rank_that_it_names(start):
    server = start(*two_ranks("--is-embedding"))
    before = [len(state["taken"]) for state in states(server)]
    for path, body in [("/v1/embeddings", {"input": ["a", "b", "c"]}), ("/encode", {"text": "a"})]:
        assert post(server, path, routed_dp_rank=1, **body).status_code == 200
        refused = post(server, path, data_parallel_rank=2, **body)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "data_parallel_rank"
    after = [len(state["taken"]) for state in states(server)]
    assert [more - less for more, less in zip(after, before)] == [0, 4]
