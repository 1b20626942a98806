"""Several choices of one prompt before SGLang's scheduler: its prompt is computed once, and each choice finds it in the cache."""
import threading

import pytest
import requests
from conftest import Server, wait_until
from leaving import leave

from test_sglang import flags, generate, kill_engine

PROMPT = list(range(500, 540))


@pytest.fixture(scope="module")
def server():
    server = Server(*flags("--enable-lora", "--enable-return-hidden-states"))
    yield server
    server.stop()


def ask(server, n=2, **body):
    sampling = {"n": n, "max_new_tokens": 3, "ignore_eos": True, **body.pop("sampling_params", {})}
    return generate(server, input_ids=body.pop("input_ids", PROMPT), sampling_params=sampling, **body)


def taken(server):
    """Tokens of prompt and answer of the requests that the scheduler has got, in their order."""
    state = requests.get(server.url + "/get_internal_state", timeout=60).json()["replies"][0]["internal_state"]
    return [tuple(request[:2]) for request in state["taken"]]


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=60)


def test_the_prompt_goes_first_and_then_the_choices(server):
    before = len(taken(server))
    answers = ask(server, n=3)
    assert answers.status_code == 200, answers.text
    assert [answer["output_ids"] for answer in answers.json()] == [PROMPT[:3]] * 3
    assert taken(server)[before:] == [(40, 0), (40, 3), (40, 3), (40, 3)]
    server.settle()


def test_every_prompt_of_a_batch_goes_before_its_own_choices(server):
    before = len(taken(server))
    answers = ask(server, input_ids=[PROMPT, PROMPT[:36]])
    assert len(answers.json()) == 4, answers.text
    got = taken(server)[before:]
    assert sorted(got) == sorted([(40, 0), (36, 0)] + 2 * [(40, 3)] + 2 * [(36, 3)])
    assert got.index((40, 0)) < got.index((40, 3)) and got.index((36, 0)) < got.index((36, 3))


def test_chats_and_streams_do_as_well(server):
    before = len(taken(server))
    body = {"messages": [{"role": "user", "content": "one two three " * 20}], "max_tokens": 2, "n": 2}
    assert len(post(server, "/v1/chat/completions", **body).json()["choices"]) == 2
    assert [tokens for _, tokens in taken(server)[before:]] == [0, 2, 2]
    response = requests.post(server.url + "/v1/chat/completions", json={**body, "stream": True}, stream=True, timeout=60)
    assert b"[DONE]" in response.content
    assert [tokens for _, tokens in taken(server)[before:]] == [0, 2, 2] * 2


@pytest.mark.parametrize("body", [
    {"n": 1}, {"input_ids": PROMPT[:30]}, {"return_hidden_states": True},
    {"return_logprob": True, "logprob_start_len": 0}, {"return_logprob": True, "logprob_start_len": 20},
])
def test_choices_that_would_not_find_it_do_not_wait_for_it(server, body):
    before = len(taken(server))
    answer = ask(server, **body)
    assert answer.status_code == 200, answer.text
    assert [tokens for _, tokens in taken(server)[before:]] == [3] * body.get("n", 2)


def test_without_a_prefix_cache_there_is_nothing_to_find(start):
    server = start(*flags("--disable-radix-cache"))
    assert ask(server).status_code == 200
    assert taken(server) == [(40, 3)] * 2


def test_a_refusal_of_the_prompt_is_that_of_its_choices(server):
    before = len(taken(server))
    refused = ask(server, sampling_params={"regex": "BROKEN"})
    assert refused.status_code == 400 and "Failed to compile" in refused.text
    # A choice that comes to the link after the refusal goes on alone, and is refused itself.
    assert taken(server)[before:] in ([(40, 0)], [(40, 0), (40, 3)])
    assert ask(server).status_code == 200


def waits(server):
    """A request of two choices whose prompt waits in a paused scheduler. Gives its thread and its answers."""
    assert post(server, "/pause_generation", mode="in_place").status_code == 200
    before, answers = len(taken(server)), []
    thread = threading.Thread(target=lambda: answers.append(ask(server, rid="pair")))
    thread.start()
    wait_until(lambda: taken(server)[before:] == [(40, 0)], lambda: f"it has got {taken(server)[before:]}")
    return thread, answers


def test_choices_that_are_aborted_while_they_wait_are_never_sent(server):
    before = len(taken(server))
    thread, answers = waits(server)
    assert post(server, "/abort_request", rid="pair").status_code == 200
    thread.join(60)
    assert [a["meta_info"]["finish_reason"]["type"] for a in answers[0].json()] == ["abort"] * 2
    assert post(server, "/continue_generation").status_code == 200
    server.settle()
    assert taken(server)[before:] == [(40, 0)]
    assert ask(server).status_code == 200


def test_a_client_that_leaves_ends_the_prompt_too(server):
    assert post(server, "/pause_generation", mode="in_place").status_code == 200
    before = len(taken(server))
    client = leave(server, "/generate", {"input_ids": PROMPT, "sampling_params": {"n": 2}})
    wait_until(lambda: taken(server)[before:] == [(40, 0)], lambda: f"it has got {taken(server)[before:]}")
    client.close()
    server.settle()
    assert post(server, "/continue_generation").status_code == 200
    wait_until(lambda: post(server, "/flush_cache").status_code == 200, "the cache is in use")
    assert taken(server)[before:] == [(40, 0)]


def test_choices_that_wait_go_on_after_the_pause(server):
    thread, answers = waits(server)
    assert post(server, "/continue_generation").status_code == 200
    thread.join(60)
    assert [a["output_ids"] for a in answers[0].json()] == [PROMPT[:3]] * 2


def test_a_pause_that_aborts_ends_choices_that_wait(server):
    before = len(taken(server))
    thread, answers = waits(server)
    assert post(server, "/pause_generation", mode="abort").status_code == 200
    thread.join(60)
    assert [a["meta_info"]["finish_reason"]["type"] for a in answers[0].json()] == ["abort"] * 2
    assert post(server, "/continue_generation").status_code == 200
    assert taken(server)[before:] == [(40, 0)]


def test_an_adapter_is_in_use_until_its_prompt_has_ended(server, tmp_path):
    assert post(server, "/load_lora_adapter", lora_name="a", lora_path=str(tmp_path)).status_code == 200
    assert ask(server, lora_path="a").status_code == 200
    server.settle()
    assert post(server, "/unload_lora_adapter", lora_name="a").status_code == 200


def test_the_death_of_the_engine_ends_choices_that_wait(start):
    server = start(*flags())
    thread, answers = waits(server)
    kill_engine(server)
    thread.join(60)
    assert answers[0].status_code == 503, answers[0].text
