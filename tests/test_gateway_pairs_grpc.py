"""Prefill and decode workers that take tokens, behind `portico route`: both are given one room, the client gets the decode worker's
answer, and what ends one of them ends the other."""
import json
import threading

import grpc
import pytest
import requests
from conftest import ROOT, wait_until
from gateway_fleet import Process
from leaving import leave
from token_stand_ins import SchedulerStandIn, VllmStandIn

TOKENIZER = ROOT / "models/demo"
ANSWER = [5, 6, 7, 2]  # the decode worker's; the prefill worker's has one token
CHAT = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}


def prefill(act=None):
    return SchedulerStandIn([9], TOKENIZER, finish="length", mode="prefill", act=act)


def decode(act=None):
    return SchedulerStandIn(ANSWER, TOKENIZER, mode="decode", act=act)


class Pairs:
    def __init__(self, prefills, decodes, *flags, wait=True):
        self.prefills, self.decodes = prefills, decodes
        words = [word for worker in prefills for word in ("--prefill", f"grpc://127.0.0.1:{worker.port}", "9000")]
        words += [word for worker in decodes for word in ("--decode", f"grpc://127.0.0.1:{worker.port}")]
        self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--pd-disaggregation",
                               "--policy", "round_robin", *words, *flags)
        self.url, self.port = self.gateway.url, self.gateway.port
        wait_until(lambda: self.gateway.answers("/liveness"), self.gateway.output)
        if wait:
            wait_until(lambda: all(worker["is_healthy"] for worker in self.workers()), self.gateway.output)

    def workers(self):
        return requests.get(self.url + "/workers", timeout=60).json()["workers"]

    def post(self, path, body, **keywords):
        return requests.post(self.url + path, json=body, timeout=60, **keywords)

    def chat(self, **fields):
        return self.post("/v1/chat/completions", {**CHAT, **fields})

    def both_have_all(self):
        """The client may have the decode worker's answer before the other worker has got the request."""
        wait_until(lambda: sum(len(one.asked) for one in self.prefills) == sum(len(one.asked) for one in self.decodes),
                   "the prefill worker has not got the request")

    def stop(self):
        # A prefill worker's answer is read to its end after the client has the decode worker's.
        wait_until(lambda: not any(worker["load"] for worker in self.workers()), "a worker is thought to hold a request")
        status = self.gateway.end()
        for worker in self.prefills + self.decodes:
            worker.stop()
        assert status == 0, self.gateway.output()[-3000:]


@pytest.fixture
def pairs():
    made = []

    def make(*arguments, **keywords):
        made.append(Pairs(*arguments, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def room_of(request):
    return request.disaggregated_params.bootstrap_room


class Holds:
    """Answers nothing until its call is cancelled."""

    def __init__(self):
        self.asked, self.ended = threading.Event(), threading.Event()

    def __call__(self, _worker, _request, context):
        if not context.add_callback(self.ended.set):
            self.ended.set()
        self.asked.set()
        self.ended.wait(60)


def events(reply):
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def is_answer(reply, stream):
    """Whether it is that of the decode worker, whole."""
    assert reply.status_code == 200, reply.text
    if not stream:
        return reply.json()["usage"]["completion_tokens"] == len(ANSWER)
    told = events(reply)
    return not any("error" in event for event in told) and told[-1]["usage"]["completion_tokens"] == len(ANSWER)


def streamed(stream):
    return {"stream": True, "stream_options": {"include_usage": True}} if stream else {}


@pytest.mark.parametrize("path, body, tokens", [
    ("/v1/chat/completions", CHAT, lambda reply: reply["usage"]["completion_tokens"]),
    ("/v1/completions", {"prompt": "Once", "max_tokens": 9}, lambda reply: reply["usage"]["completion_tokens"]),
    ("/generate", {"text": "Once", "sampling_params": {"max_new_tokens": 9}}, lambda reply: reply["meta_info"]["completion_tokens"]),
])
def test_both_get_one_room_at_the_prefill_worker_and_the_client_the_decode_workers_answer(pairs, path, body, tokens):
    fleet = pairs([prefill()], [decode()], "--show-workers")
    seen = set()
    for _ in range(3):
        reply = fleet.post(path, body)
        assert reply.status_code == 200, reply.text
        assert tokens(reply.json()) == len(ANSWER)
        assert reply.headers["x-portico-worker"] != reply.headers["x-portico-prefill-worker"]
        fleet.both_have_all()
        first, second = fleet.prefills[0].asked[-1], fleet.decodes[0].asked[-1]
        assert first.disaggregated_params == second.disaggregated_params
        assert first.tokenized.input_ids == second.tokenized.input_ids
        told = second.disaggregated_params
        assert (told.bootstrap_host, told.bootstrap_port) == ("127.0.0.1", 9000)
        assert 0 < told.bootstrap_room < 2**31 and told.bootstrap_room not in seen
        seen.add(told.bootstrap_room)


def test_what_a_worker_that_takes_tokens_says_of_itself_can_be_asked(pairs):
    """The gateway died of it, before one such worker too."""
    fleet = pairs([prefill()], [decode()])
    for path in ("/server_info", "/get_server_info"):
        info = requests.get(fleet.url + path, timeout=60)
        assert info.status_code == 200, info.text
        assert info.json()["served_model_name"] == "paired-model" and info.json()["internal_states"]


def test_a_stream_is_the_decode_workers(pairs):
    fleet = pairs([prefill()], [decode()])
    assert is_answer(fleet.chat(**streamed(True)), True)
    fleet.both_have_all()
    assert fleet.prefills[0].rooms() == fleet.decodes[0].rooms()


def test_each_answer_to_each_prompt_has_a_room_of_its_own(pairs):
    fleet = pairs([prefill()], [decode()])
    bodies = [("/v1/completions", {"prompt": ["one", "two and more", "three"], "n": 2, "max_tokens": 9}),
              ("/generate", {"text": ["one", "two and more"], "sampling_params": {"n": 3, "max_new_tokens": 9}}),
              ("/v1/chat/completions", {**CHAT, "n": 4}), ("/v1/chat/completions", CHAT)]
    for path, body in bodies:
        reply = fleet.post(path, body)
        assert reply.status_code == 200, reply.text
    fleet.both_have_all()
    first, second = ({room_of(request): list(request.tokenized.input_ids) for request in worker.asked}
                     for worker in (fleet.prefills[0], fleet.decodes[0]))
    assert first == second and len(first) == len(fleet.decodes[0].asked) == 6 + 6 + 4 + 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_prefill_worker_that_fails_ends_the_decode_workers_work_and_another_pair_answers(pairs, stream):
    failing, ended = [], []

    def fail(_worker, request, context):
        failing.append(room_of(request))
        wait_until(lambda: room_of(request) in fleet.decodes[0].rooms(), "the decode worker is not asked")
        context.abort(grpc.StatusCode.INTERNAL, "no memory")

    def wait(worker, request, context):
        room = room_of(request)
        wait_until(lambda: room in failing or room in fleet.prefills[1].rooms(), "no prefill worker is asked")
        if room not in failing:
            return worker.whole()
        holds = Holds()
        holds(worker, request, context)
        ended.append(room)
        return None

    fleet = pairs([prefill(fail), prefill()], [decode(wait)])
    for _ in range(4):
        assert is_answer(fleet.chat(**streamed(stream)), stream)
    wait_until(lambda: failing and sorted(ended) == sorted(failing), "the decode worker waits in vain")
    rooms = fleet.decodes[0].rooms()
    assert len(set(rooms)) == len(rooms) == 4 + len(failing), "each attempt has a room of its own"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("code, status", [(grpc.StatusCode.INVALID_ARGUMENT, 400), (grpc.StatusCode.INTERNAL, 500)])
def test_what_the_only_prefill_worker_says_of_a_request_the_client_is_told(pairs, stream, code, status):
    holds = Holds()
    fleet = pairs([prefill(lambda _worker, _request, context: holds.asked.wait(60) and context.abort(code, "too long for me"))],
                  [decode(holds)])
    reply = fleet.chat(**streamed(stream))
    assert reply.status_code == status, reply.text
    assert ("too long for me" in reply.json()["error"]["message"]) == (status == 400)
    assert holds.ended.wait(60), "the decode worker waits in vain"


@pytest.mark.parametrize("stream", [False, True])
def test_a_prefill_worker_that_gives_up_by_itself_has_failed(pairs, stream):
    # That is how SGLang says that the cache could not be transferred. It was the end of an answer that nobody wanted.
    holds = Holds()
    fleet = pairs([prefill(lambda worker, _request, _context: iter([holds.asked.wait(60) and worker.end([9], "abort")]))],
                  [decode(holds)])
    assert fleet.chat(**streamed(stream)).status_code == 500
    assert holds.ended.wait(60), "the decode worker waits in vain"


@pytest.mark.parametrize("stream", [False, True])
def test_a_decode_worker_that_fails_before_a_token_costs_no_answer(pairs, stream):
    fleet = pairs([prefill()], [decode(lambda _worker, _request, context: context.abort(grpc.StatusCode.INTERNAL, "no")), decode()])
    for _ in range(4):
        assert is_answer(fleet.chat(**streamed(stream)), stream)
    failed, answered = [worker.rooms() for worker in fleet.decodes]
    assert failed and len(answered) == 4 and not set(failed) & set(answered)


def test_a_decode_worker_that_fails_in_a_stream_ends_it_with_an_error_and_done(pairs):
    def cut(worker, _request, context):
        yield worker.chunk([5])
        wait_until(lambda: lines, "the client has not got the first token")
        context.abort(grpc.StatusCode.INTERNAL, "no")

    fleet = pairs([prefill()], [decode(cut)])
    lines = []
    reply = requests.post(fleet.url + "/v1/chat/completions", json={**CHAT, "stream": True}, stream=True, timeout=60)
    for line in reply.iter_lines():
        lines += [line] if line else []
    assert lines[-1] == b"data: [DONE]" and b"error" in lines[-2]
    assert len(fleet.decodes[0].asked) == 1


def test_a_client_that_leaves_ends_the_work_of_both(pairs):
    one, other = Holds(), Holds()
    fleet = pairs([prefill(one)], [decode(other)])
    for stream in (False, True):
        client = leave(fleet, "/v1/chat/completions", {**CHAT, "stream": stream})
        assert one.asked.wait(60) and other.asked.wait(60)
        assert sorted(worker["load"] for worker in fleet.workers()) == [1, 1]
        client.close()
        assert one.ended.wait(60) and other.ended.wait(60)
        wait_until(lambda: not any(worker["load"] for worker in fleet.workers()), "they are thought to hold the request")
        for event in (one.asked, one.ended, other.asked, other.ended):
            event.clear()


def test_an_abort_ends_the_work_of_both(pairs):
    one, other = Holds(), Holds()
    fleet = pairs([prefill(one)], [decode(other)])
    answers = []
    asking = threading.Thread(target=lambda: answers.append(fleet.post("/generate", {"text": "Hi", "rid": "mine"})))
    asking.start()
    assert one.asked.wait(60) and other.asked.wait(60)
    assert fleet.post("/abort_request", {"rid": "mine"}).status_code == 200
    asking.join(60)
    assert one.ended.wait(60) and other.ended.wait(60)
    assert answers and answers[0].json()["meta_info"]["finish_reason"]["type"] == "abort", answers[0].text


def test_a_worker_that_cannot_be_half_of_a_pair_is_not_used_and_the_log_says_why(pairs):
    fleet = pairs([prefill()], [VllmStandIn(ANSWER, TOKENIZER)], wait=False)
    wait_until(lambda: "its protocol, vllm.grpc.engine.VllmEngine, has no fields" in fleet.gateway.output(), fleet.gateway.output)
    wait_until(lambda: any(worker["is_healthy"] for worker in fleet.workers()), fleet.gateway.output)
    ready = requests.get(fleet.url + "/readiness", timeout=60)
    assert ready.status_code == 503 and "decode" in ready.json()["reason"]
    wrong = pairs([decode()], [decode()], wait=False)
    wait_until(lambda: "as prefill worker, but runs with --disaggregation-mode decode" in wrong.gateway.output(), wrong.gateway.output)
    whole = pairs([prefill()], [SchedulerStandIn(ANSWER, TOKENIZER)], wait=False)
    wait_until(lambda: "--disaggregation-mode null" in whole.gateway.output(), whole.gateway.output)


def test_a_pair_has_one_transport_and_its_workers_say_which(pairs):
    fleet = pairs([prefill()], [decode()])
    for url, wanted in (("http://127.0.0.1:1", "there are gRPC ones"), ("127.0.0.1:1", "need a scheme")):
        reply = fleet.post("/workers", {"url": url, "worker_type": "decode"})
        assert reply.status_code == 400 and wanted in reply.text
    assert len(fleet.workers()) == 2


def test_a_client_cannot_choose_a_room(pairs):
    fleet = pairs([prefill()], [decode()])
    assert fleet.chat(bootstrap_room=5).status_code == 400
    assert not fleet.prefills[0].asked and not fleet.decodes[0].asked
    alone = SchedulerStandIn(ANSWER, TOKENIZER)
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", f"grpc://127.0.0.1:{alone.port}")
    try:
        gateway.wait_ready("/readiness")
        reply = requests.post(gateway.url + "/v1/chat/completions", json={**CHAT, "bootstrap_room": 5}, timeout=60)
        assert reply.status_code == 400 and reply.json()["error"]["param"] == "bootstrap_room"
        assert not alone.asked
    finally:
        assert gateway.end() == 0
        alone.stop()
