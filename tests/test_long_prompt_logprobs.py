"""Log-probabilities of long prompts, which are spelled and encoded off the shard: the same answers as those of short
ones, while the server answers others, and clean ends whoever leaves meanwhile."""
import concurrent.futures
import json
import socket
import threading

import pytest
import requests

from conftest import WAIT_SECONDS, wait_until
from grpc_client import Client

FLAGS = ("--context-length", "100000", "--mock-itl-ms", "1")
# With 20 alternatives each these are encoded on the shard, ...
FEW = 40
# ... and with the alternatives of TOP these are not.
MANY = 2000
TOP = 20


@pytest.fixture
def server(serve):
    return serve(*FLAGS)


@pytest.fixture(scope="module")
def ids(serve):
    text = "the quick brown fox jumps over the lazy dog, and naïve 漢字 stand in its way. " * 400
    given = requests.post(serve(*FLAGS).url + "/tokenize", json={"prompt": text}, timeout=60).json()["tokens"]
    assert len(given) >= MANY
    return given[:MANY]


def post(server, path, **body):
    answer = requests.post(server.url + path, json=body, timeout=WAIT_SECONDS)
    assert answer.status_code == 200, answer.text[:1000]
    return answer.json()


def events(server, path, **body):
    with requests.post(server.url + path, json={**body, "stream": True}, stream=True, timeout=WAIT_SECONDS) as answer:
        assert answer.status_code == 200, answer.text[:1000]
        lines = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert lines.pop() == b"[DONE]"
    return [json.loads(line) for line in lines]


COMPLETION = {"echo": True, "logprobs": TOP, "max_tokens": 3, "return_token_ids": True}
LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def test_a_completion_echoes_a_long_prompt_as_it_does_a_short_one(server, ids):
    short = post(server, "/v1/completions", prompt=ids[:FEW], **COMPLETION)["choices"][0]
    long = post(server, "/v1/completions", prompt=ids, **COMPLETION)["choices"][0]
    assert [len(long["logprobs"][name]) for name in LISTS] == [MANY + 3] * 4
    for name in LISTS:
        assert long["logprobs"][name][:FEW] == short["logprobs"][name][:FEW], name
    assert long["text"].startswith(short["text"][:100]) and long["prompt_token_ids"] == ids


@pytest.mark.parametrize("n", [1, 2])
def test_a_streamed_completion_has_what_the_whole_one_has(server, ids, n):
    whole = post(server, "/v1/completions", prompt=ids, n=n, **COMPLETION)["choices"]
    streamed = [{"text": "", "ids": [], "prompt": None, **{name: [] for name in LISTS}} for _ in range(n)]
    for event in events(server, "/v1/completions", prompt=ids, n=n, **COMPLETION):
        choice = event["choices"][0]
        into = streamed[choice["index"]]
        into["text"] += choice["text"]
        into["ids"] += choice.get("token_ids", [])
        if "prompt_token_ids" in choice:
            assert into["prompt"] is None and into["ids"] == []
            into["prompt"] = choice["prompt_token_ids"]
        for name in LISTS if choice["logprobs"] else ():
            into[name] += choice["logprobs"][name]
    assert len(whole) == n
    for choice, into in zip(whole, streamed):
        assert (into["text"], into["ids"], into["prompt"]) == (choice["text"], choice["token_ids"], ids)
        assert {name: into[name] for name in LISTS} == choice["logprobs"]


def test_best_of_echoes_a_long_prompt(server, ids):
    one = post(server, "/v1/completions", prompt=ids, **COMPLETION)["choices"][0]
    best, = post(server, "/v1/completions", prompt=ids, n=1, best_of=2, **COMPLETION)["choices"]
    for name in LISTS:
        assert best["logprobs"][name][:MANY] == one["logprobs"][name][:MANY], name


NATIVE = {"return_logprob": True, "top_logprobs_num": TOP, "return_text_in_logprobs": True,
          "sampling_params": {"max_new_tokens": 3}}
INPUTS = ("input_token_logprobs", "input_top_logprobs", "input_token_ids_logprobs")


def generate(server, prompt, **fields):
    answer = post(server, "/generate", input_ids=prompt, **{**NATIVE, "token_ids_logprob": [5, 6], **fields})
    return answer["meta_info"] if isinstance(answer, dict) else [one["meta_info"] for one in answer]


def test_generate_answers_a_long_prompt_as_it_does_its_parts(server, ids):
    long = generate(server, ids, logprob_start_len=0)
    assert [len(long[name]) for name in INPUTS] == [MANY] * 3
    assert [entry[1] for entry in long["input_token_logprobs"]] == ids
    start = generate(server, ids[:FEW], logprob_start_len=0)
    end = generate(server, ids, logprob_start_len=MANY - FEW)
    for name in INPUTS:
        assert long[name][:FEW] == start[name], name
        # The first one has no log-probability.
        assert len(end[name]) == FEW and long[name][1 - FEW:] == end[name][1:], name
    numbers = generate(server, ids, logprob_start_len=0, return_text_in_logprobs=False)
    assert numbers["input_token_logprobs"] == [[*entry[:2], None] for entry in long["input_token_logprobs"]]


def test_generate_answers_several_long_prompts_and_choices(server, ids):
    one = generate(server, ids, logprob_start_len=0)
    for fields in ({"input_ids": [ids, ids[:FEW], ids]},
                   {"input_ids": ids, "sampling_params": {"max_new_tokens": 3, "n": 3}}):
        answers = post(server, "/generate", **{**NATIVE, "token_ids_logprob": [5, 6], "logprob_start_len": 0, **fields})
        assert len(answers) == 3
        for i, answer in enumerate(answers):
            expected = FEW if i == 1 and len(fields["input_ids"]) == 3 else MANY
            for name in INPUTS:
                assert answer["meta_info"][name] == one[name][:expected], (i, name)


@pytest.mark.parametrize("form", ["delta", "cumulative"])
def test_a_native_stream_has_what_the_whole_answer_has(server, ids, form):
    whole = post(server, "/generate", input_ids=ids, logprob_start_len=0, return_prompt_token_ids=True, **NATIVE)
    with requests.post(server.url + "/generate", stream=True, timeout=WAIT_SECONDS, headers={"x-portico-stream": form},
                       json={"input_ids": ids[:600], "logprob_start_len": 0, "stream": True, **NATIVE}) as answer:
        data = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert data.pop() == b"[DONE]"
    metas = [json.loads(line)["meta_info"] for line in data]
    # Of what comes while the prompt is encoded, a cumulative stream tells the last state alone.
    assert len(metas) == 3 if form == "delta" else 1 <= len(metas) <= 3
    assert metas[-1]["completion_tokens"] == 3 and metas[-1]["finish_reason"]["type"] == "length"
    assert len(metas[-1]["output_token_logprobs"]) == (1 if form == "delta" else 3)
    for i, meta in enumerate(metas):
        for name in INPUTS[:2]:
            there = i == 0 or form == "cumulative"
            assert meta[name] == (whole["meta_info"][name][:600] if there else []), (i, name)


def test_grpc_gives_the_same(server, ids):
    client = Client(f"127.0.0.1:{server.port}")
    call = {"return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": TOP, "timeout": WAIT_SECONDS,
            "sampling_params": {"max_new_tokens": 3}}
    expected = generate(server, ids, logprob_start_len=0, return_text_in_logprobs=False)
    for stream in (False, True):
        messages = list(client.sglang.Generate(input_ids=ids, stream=stream, **call))
        for name in INPUTS[:2]:
            assert json.loads(messages[0].meta_info[name]) == expected[name], name
        scheduled = list(client.scheduler.Generate(tokenized={"input_ids": ids}, stream=stream, **call))
        inputs = [scheduled[-1].complete.input_logprobs]
        if stream:
            inputs.append(scheduled[0].chunk.input_logprobs)
            assert not any(message.chunk.HasField("input_logprobs") for message in scheduled[1:-1])
        for given in inputs:
            assert list(given.token_ids) == ids
            assert not given.token_logprobs[0].HasField("value")
            assert [one.value for one in given.token_logprobs[1:]] == pytest.approx(
                [entry[0] for entry in expected["input_token_logprobs"][1:]])
            assert [list(top.token_ids) for top in given.top_logprobs] == [
                [entry[1] for entry in tops] for tops in expected["input_top_logprobs"] if tops]


def test_more_long_prompts_than_the_pool_queues_are_answered(server, ids):
    # The queue has room for 256, and a request that filled it by itself got 503.
    choices = post(server, "/v1/completions", prompt=[ids[:600]] * 400, echo=True, logprobs=1, max_tokens=1)["choices"]
    assert len(choices) == 400
    for choice in choices:
        assert choice["logprobs"]["token_logprobs"][:600] == choices[0]["logprobs"]["token_logprobs"][:600]
        assert len(choice["logprobs"]["tokens"]) == 601


def test_others_are_answered_meanwhile(server, ids):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(post, server, "/v1/completions", prompt=ids, **COMPLETION) for _ in range(12)]
        while not all(answer.done() for answer in asked):
            assert requests.get(server.url + "/health", timeout=WAIT_SECONDS).status_code == 200
            assert post(server, "/v1/completions", prompt="a b", max_tokens=2)["choices"][0]["finish_reason"] == "length"
    assert len({json.dumps(answer.result()["choices"]) for answer in asked}) == 1


def nothing_is_left(server):
    server.settle()
    server.wait_for("portico_held_deltas", 0)
    server.wait_for("portico_cpu_pool_queued", 0)
    assert requests.get(server.url + "/health", timeout=60).status_code == 200


def test_clients_that_leave_meanwhile_leave_nothing(server, ids):
    for path, fields in (("/v1/completions", {"prompt": ids, **COMPLETION}),
                         ("/generate", {"input_ids": ids, "logprob_start_len": 0, **NATIVE})):
        for i in range(10):
            body = json.dumps({**fields, "stream": i % 2 == 0, "rid": f"leaves-{i}"}).encode()
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                   f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                # The head of a stream comes before its prompt.
                assert i % 2 == 1 or connection.recv(1)
        nothing_is_left(server)
        for i in range(10):
            again = {**fields, "rid": f"leaves-{i}"}
            wait_until(lambda: requests.post(server.url + path, json=again, timeout=WAIT_SECONDS).status_code == 200,
                       f"the name {again['rid']} is not free again")


def test_aborts_meanwhile_end_every_answer(server, ids):
    over = threading.Event()

    def abort():
        while not over.is_set():
            assert requests.post(server.url + "/abort_request", json={"abort_all": True}, timeout=60).status_code == 200

    aborting = threading.Thread(target=abort)
    aborting.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(post, server, "/generate", input_ids=ids, logprob_start_len=0,
                                 **{**NATIVE, "sampling_params": {"max_new_tokens": 20}}) for _ in range(12)]
            reasons = {answer.result()["meta_info"]["finish_reason"]["type"] for answer in asked}
    finally:
        over.set()
        aborting.join(WAIT_SECONDS)
    assert reasons <= {"abort", "length"}
    nothing_is_left(server)


def test_an_engine_that_dies_meanwhile_ends_every_answer(start, ids):
    server = start("--engine", "mock", *FLAGS, "--mock-fault", "die:1")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(requests.post, server.url + "/generate", timeout=WAIT_SECONDS,
                             json={"input_ids": ids, "logprob_start_len": 0, **NATIVE}) for _ in range(4)]
        assert {answer.result().status_code for answer in asked} == {503}
    server.wait_for("portico_held_deltas", 0)


def test_a_deadline_meanwhile_ends_the_call(server, ids):
    client = Client(f"127.0.0.1:{server.port}")
    for timeout in (0.001, 0.01, 0.05):
        call = client.sglang.Generate(input_ids=ids, logprob_start_len=0, return_logprob=True, top_logprobs_num=TOP,
                                      sampling_params={"max_new_tokens": 20_000}, timeout=timeout)
        assert call.code().name == "DEADLINE_EXCEEDED"
    nothing_is_left(server)
