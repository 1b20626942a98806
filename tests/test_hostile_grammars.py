"""Grammars that are made to hurt: none takes the server long, none reaches the engine, and it goes on as before."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import threading
import time

import pytest
import requests

from conftest import BRIEF, WAIT_SECONDS, wait_until
from hostile_grammars import HOSTILE, named, overlapping, variant


def ask(server, timeout=WAIT_SECONDS, **fields):
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, **fields}
    return requests.post(server.url + "/v1/chat/completions", json=body, timeout=timeout)


@contextlib.contextmanager
def health_times(server):
    times, stop = [], threading.Event()

    def probe():
        while not times or not stop.wait(0.01):
            start = time.monotonic()
            assert requests.get(server.url + "/health", timeout=WAIT_SECONDS).status_code == 200
            times.append(time.monotonic() - start)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        probing = pool.submit(probe)
        try:
            yield times
        finally:
            stop.set()
        probing.result()


def compilers_of(pid):
    """Its processes that compile grammars."""
    found = []
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread, or the child, has ended
            for child in file.read_text(encoding="ascii").split():
                if pathlib.Path(f"/proc/{child}/comm").read_text(encoding="ascii").strip() == "portico-grammar":
                    found.append(int(child))
    return found


@pytest.mark.parametrize("i", range(len(HOSTILE)))
def test_a_hostile_grammar_is_answered_soon_and_fairly(demo, i):
    # vllm#54003: compiling without limit.
    answer = ask(demo, timeout=60, **HOSTILE[i])
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        assert answer.json()["error"]["param"] == next(iter(HOSTILE[i]))


def test_two_hundred_hostile_grammars_at_once_hold_nobody_up(demo):
    start = time.monotonic()
    with health_times(demo) as times, concurrent.futures.ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda i: ask(demo, **variant(i)), range(50 if BRIEF else 200)))
    took = time.monotonic() - start
    counts = {code: sum(a.status_code == code for a in answers) for code in {a.status_code for a in answers}}
    times.sort()
    print(f"{counts} in {took:.1f} s, /health p50 {1000 * times[len(times) // 2]:.1f} ms, "
          f"p99 {1000 * times[len(times) * 99 // 100]:.1f} ms")
    assert counts.keys() <= {200, 400, 429}
    demo.settle()
    assert ask(demo, regex="[0-9]{2}").status_code == 200


def test_clients_that_leave_while_their_grammars_compile_leave_nothing_behind(demo):
    for i in range(30):
        body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, **variant(1000 + i)}).encode()
        with socket.create_connection(("127.0.0.1", demo.port)) as sock:
            sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    wait_until(lambda: ask(demo, regex=f"[0-9]{{{2}}}").status_code == 200, "the compiler is stuck")
    demo.settle()


def test_a_request_can_be_aborted_while_its_grammar_compiles(demo):
    fields = {"text": "one", "rid": "early", "sampling_params": {
        "max_new_tokens": 8, "ebnf": 'root ::= ("a"{0,9000} "b"{0,9001}){0,9000}'}}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requests.post, demo.url + "/generate", json=fields, timeout=60)
        time.sleep(0.3)
        requests.post(demo.url + "/abort_request", json={"rid": "early"}, timeout=60)
        assert answer.result().status_code in (200, 400, 429)
    demo.settle()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_an_answer_that_is_cut_off_is_the_beginning_of_one_that_fits(demo, most):
    schema = {"const": "abcdefghijklmnop"}
    choice = ask(demo, max_tokens=most, **named(schema)).json()["choices"][0]
    assert choice["finish_reason"] == "length"
    assert '"abcdefghijklmnop"'.startswith(choice["message"]["content"])


def test_choices_with_log_probabilities_fit_and_have_one_for_each_token(demo):
    answer = ask(demo, n=8, logprobs=True, top_logprobs=3, temperature=1, max_tokens=64, **named({"enum": ["red", "green"]}))
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["choices"]) == 8
    for choice in answer.json()["choices"]:
        assert choice["message"]["content"] in ('"red"', '"green"')
        tokens = choice["logprobs"]["content"]
        assert "".join(t["token"] for t in tokens).startswith(choice["message"]["content"])
        # The model's own, not those after the grammar: several tokens stay likely.
        assert any(t["logprob"] < -0.01 for t in tokens)


@pytest.mark.parametrize("ebnf", ['root ::= root root | "a" | "b"', 'root ::= ([a-z] [a-z]? [a-z]?)* ([a-z]{1,50})* "."'])
def test_a_grammar_that_is_slow_to_apply_ends_its_own_answer_alone(demo, ebnf):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(requests.post, demo.url + "/generate", timeout=120, json={
            "text": "one", "sampling_params": {"ebnf": ebnf, "max_new_tokens": 1500, "temperature": 1, "ignore_eos": True}})
        time.sleep(0.5)
        assert ask(demo, timeout=60, max_tokens=32).status_code == 200
        answer = slow.result()
    assert answer.status_code == 200 or answer.json()["error"] == {
        "message": "ebnf: it takes too long to apply", "type": "invalid_request_error", "param": "ebnf", "code": None}


def test_a_single_mask_that_takes_too_long_ends_its_own_answer_alone(demo):
    # One mask of this grammar took 8 s, and what it took was looked at behind it only.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(requests.post, demo.url + "/generate", timeout=WAIT_SECONDS, json={
            "text": "one", "sampling_params": {"ebnf": overlapping(150), "max_new_tokens": 6}})
        assert ask(demo).status_code == 200
        answer = slow.result()
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"] == "ebnf: it takes too long to apply"
    demo.settle()


def test_an_answer_that_ends_at_once_is_an_answer(demo):
    for fields in ({"regex": ""}, {"regex": "(a)?", "logit_bias": {}}, {"guided_choice": ["a", "b"], "max_tokens": 1}):
        assert ask(demo, **fields).status_code == 200, fields


def test_a_compiling_process_that_is_killed_is_replaced(start):
    # Grammars were answered with 503 until the server was restarted.
    server = start("--engine", "llama", "--threads", "1")
    assert ask(server, regex="[0-9]{2}").status_code == 200
    killed = set()
    for i in range(3):
        wait_until(lambda: len(set(compilers_of(server.process.pid)) - killed) == 1, "there is no process that compiles")
        [pid] = set(compilers_of(server.process.pid)) - killed
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
        assert ask(server).status_code == 200
        answers = []

        def answered():
            answers.append(ask(server, regex=f"[0-9]{{{i + 3}}}"))  # one that is not in the cache
            return answers[-1].status_code == 200
        wait_until(answered, lambda: answers[-1].text)
        assert {a.status_code for a in answers} <= {200, 503}
        assert len(answers[-1].json()["choices"][0]["message"]["content"]) == i + 3
    assert f"portico_grammar_compiler_restarts_total {len(killed)}" in requests.get(server.url + "/metrics").text
