"""Workers that take tokens by vLLM's protocol and by SGLang's own, beside Portico's: stand-ins in Python behind a gateway."""
import json
import threading

import grpc
import pytest
import requests
from conftest import ROOT, wait_until
from gateway_fleet import Process, mock_worker
from token_stand_ins import NativeStandIn, VllmStandIn

TOKENIZER = ROOT / "models/demo"
TEXT = "The quick brown fox jumps over the lazy dog."


@pytest.fixture(scope="module")
def ids():
    """The ids of TEXT, without special ones."""
    server = Process("serve", "--engine", "mock")
    server.wait_ready()
    reply = requests.post(server.url + "/tokenize", json={"prompt": TEXT, "add_special_tokens": False}, timeout=60).json()
    assert server.end() == 0
    return reply["tokens"]


class Front:
    def __init__(self, worker, scheme="grpc://", flags=()):
        self.worker = worker
        self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls",
                               f"{scheme}127.0.0.1:{worker.port}", *flags)
        self.url = self.gateway.url
        wait_until(lambda: self.gateway.answers("/readiness"), lambda: self.gateway.output()[-3000:])

    def post(self, path, **body):
        return requests.post(self.url + path, json=body, timeout=60)

    def chat(self, **fields):
        return self.post("/v1/chat/completions", messages=[{"role": "user", "content": "Hi"}], **{"max_tokens": 32, **fields})

    def stop(self):
        status = self.gateway.end()
        self.worker.stop()
        assert status == 0, self.gateway.output()[-3000:]


@pytest.fixture
def front():
    made = []

    def make(*arguments, **keywords):
        made.append(Front(*arguments, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def streamed(reply):
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


KINDS = [lambda ids: VllmStandIn(ids, TOKENIZER), lambda ids: NativeStandIn(ids, TOKENIZER),
         lambda ids: NativeStandIn(ids, TOKENIZER, cumulative=False)]


@pytest.mark.parametrize("make", KINDS, ids=["vllm", "sglang, cumulative", "sglang, deltas"])
def test_an_answer_is_whole_and_comes_once_by_each_protocol(front, ids, make):
    gateway = front(make([*ids, 2]), scheme="")
    listed = requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
    assert listed[0]["connection_mode"] == "grpc"
    reply = gateway.chat()
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    assert choice["message"]["content"] == TEXT and choice["finish_reason"] == "stop"
    assert reply.json()["usage"]["completion_tokens"] == len(ids) + 1
    chunks = streamed(gateway.chat(stream=True))
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"]) == TEXT


@pytest.mark.parametrize("make", KINDS, ids=["vllm", "sglang, cumulative", "sglang, deltas"])
def test_an_answer_has_no_more_tokens_than_were_asked_for(front, ids, make):
    """A worker that does not stop went on until the request's timeout."""
    gateway = front(make([*ids, *ids, *ids, *ids, 2]))
    whole = gateway.chat(max_tokens=3).json()
    assert whole["usage"]["completion_tokens"] == 3 and whole["choices"][0]["finish_reason"] == "length"
    assert TEXT.startswith(whole["choices"][0]["message"]["content"])
    chunks = streamed(gateway.chat(stream=True, max_tokens=3, stream_options={"include_usage": True}))
    assert chunks[-1]["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("make", KINDS, ids=["vllm", "sglang, cumulative", "sglang, deltas"])
def test_log_probabilities_belong_to_their_tokens(front, ids, make):
    gateway = front(make([*ids, 2]))
    reply = gateway.chat(logprobs=True, top_logprobs=1)
    assert reply.status_code == 200, reply.text
    content = reply.json()["choices"][0]["logprobs"]["content"]
    assert "".join(one["token"] for one in content).startswith(TEXT)
    assert {one["logprob"] for one in content} in ({-0.5}, {-0.25})


def test_vllm_is_told_what_the_client_wants(front, ids):
    gateway = front(VllmStandIn([*ids, 2], TOKENIZER))
    reply = gateway.chat(seed=5, temperature=0.5, top_p=0.5, logit_bias={"7": -1}, n=2, max_tokens=9,
                         response_format={"type": "json_object"})
    assert reply.status_code == 200, reply.text
    first, second = sorted(gateway.worker.asked, key=lambda request: request.sampling_params.seed)
    sampling = first.sampling_params
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.max_tokens, sampling.n) == (0.5, 0.5, 0, 9, 1)
    assert dict(sampling.logit_bias) == {7: -1} and sampling.json_object and first.stream
    assert (sampling.seed, second.sampling_params.seed) == (5, 6), "the choices would be the same"
    assert first.request_id != second.request_id
    gateway.worker.asked.clear()
    assert gateway.post("/generate", text="Hi", sampling_params={"regex": "a+", "top_k": 3, "max_new_tokens": 4},
                        return_logprob=True, logprob_start_len=0).status_code == 200
    assert gateway.worker.asked[0].sampling_params.regex == "a+" and gateway.worker.asked[0].sampling_params.top_k == 3
    assert gateway.worker.asked[0].sampling_params.HasField("prompt_logprobs")
    refused = gateway.chat(seed=1 << 40)
    assert refused.status_code == 400 and "seed" in refused.json()["error"]["message"]


def test_sglangs_own_listener_is_told_what_the_client_wants(front, ids):
    gateway = front(NativeStandIn([*ids, 2], TOKENIZER))
    assert gateway.chat(seed=5, max_tokens=9, ebnf='root ::= "a"').status_code == 200
    asked = gateway.worker.asked[0]
    assert (asked.sampling_params.seed, asked.sampling_params.max_new_tokens, asked.sampling_params.n) == (5, 9, 1)
    assert asked.sampling_params.guided_decoding.ebnf == 'root ::= "a"'
    refused = gateway.chat(logit_bias={"7": 1})
    assert refused.status_code == 400 and "logit_bias" in refused.json()["error"]["message"]


@pytest.mark.parametrize("make", KINDS[:2], ids=["vllm", "sglang"])
def test_a_worker_is_told_which_trace_a_request_is_part_of(front, ids, make):
    gateway = front(make([*ids, 2]))
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 32}),
                       ("/generate", {"text": "Hi", "sampling_params": {"max_new_tokens": 32}})):
        reply = requests.post(gateway.url + path, json=body, headers={"traceparent": trace}, timeout=60)
        assert reply.status_code == 200, reply.text
        assert gateway.worker.metadata["Generate"].pop("traceparent") == trace
        asked = gateway.worker.asked[-1]
        if isinstance(gateway.worker, NativeStandIn):
            assert dict(asked.trace_headers) == {"traceparent": trace}
    assert gateway.chat().status_code == 200
    assert "traceparent" not in gateway.worker.metadata["Generate"]


def test_a_stream_that_fails_before_its_first_token_is_asked_of_another_worker(ids):
    """Its head had been sent, so the client got an error though another worker was there."""
    class Failing(VllmStandIn):
        def Generate(self, request, context):
            self.asked.append(request)
            context.abort(grpc.StatusCode.INTERNAL, "no memory")

    workers = [Failing(ids, TOKENIZER), VllmStandIn([*ids, 2], TOKENIZER)]
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--policy", "round_robin", "--worker-urls",
                      *(f"grpc://127.0.0.1:{worker.port}" for worker in workers))
    try:
        gateway.wait_ready("/readiness")
        wait_until(lambda: all(worker["is_healthy"] for worker in requests.get(gateway.url + "/workers", timeout=60).json()["workers"]),
                   gateway.output)
        for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 32}),
                           ("/generate", {"text": "Hi", "sampling_params": {"max_new_tokens": 32}})):
            before = len(workers[0].asked)
            for _ in range(4):
                reply = requests.post(gateway.url + path, json={**body, "stream": True}, timeout=60)
                assert reply.status_code == 200, reply.text
                assert not any("error" in chunk for chunk in streamed(reply)), reply.text
            assert len(workers[0].asked) > before
    finally:
        assert gateway.end() == 0
        for worker in workers:
            worker.stop()


def test_a_stream_that_fails_after_its_first_token_counts_against_its_worker(front, ids):
    """It counted as a success of the worker."""
    class Failing(VllmStandIn):
        def Generate(self, request, context):
            for number, reply in enumerate(super().Generate(request, context)):
                if number == 1:
                    context.abort(grpc.StatusCode.INTERNAL, "no memory")
                yield reply

    gateway = front(Failing([*ids, 2], TOKENIZER), flags=("--cb-failure-threshold", "1"))
    assert any("error" in chunk for chunk in streamed(gateway.chat(stream=True)))
    wait_until(lambda: gateway.gateway.metric("portico_gateway_worker_breaker_opened_total") == 1, gateway.gateway.output)


def test_a_worker_that_counts_wrongly_ends_the_request_and_not_the_gateway(front, ids):
    class Wrong(NativeStandIn):
        def Generate(self, request, context):
            for number, reply in enumerate(super().Generate(request, context)):
                if number == 1:
                    del reply.output_ids[1:]
                yield reply

    gateway = front(Wrong([*ids, 2], TOKENIZER))
    assert gateway.chat().status_code == 500
    assert gateway.gateway.answers("/liveness")


def test_vectors_come_from_vllm_workers_with_their_length(front, ids):
    class Embedder(VllmStandIn):
        generates = False

    gateway = front(Embedder(ids, TOKENIZER))
    reply = gateway.post("/v1/embeddings", input=["one", "two and more"], model="vllm-model")
    assert reply.status_code == 200, reply.text
    vectors = [item["embedding"] for item in reply.json()["data"]]
    assert [vector[:2] for vector in vectors] == [[3, 4], [3, 4]] and vectors[0][2] < vectors[1][2]
    assert reply.json()["usage"]["prompt_tokens"] == vectors[0][2] + vectors[1][2]
    refused = gateway.chat()
    assert refused.status_code == 400, refused.text


@pytest.mark.parametrize("flag, path, body, check", [
    ("--is-embedding", "/v1/embeddings", {"input": ["a", "bb"]},
     lambda reply: [[round(value, 3) for value in item["embedding"]] for item in reply["data"]]),
    ("--mock-labels=3", "/v1/classify", {"input": "some text"},
     lambda reply: [round(value, 3) for value in reply["data"][0]["probs"]]),
    ("--mock-labels=1", "/v1/rerank", {"query": "q", "documents": ["a", "b", "c"]},
     lambda reply: [item["index"] for item in (reply["results"] if isinstance(reply, dict) else reply)]),
])
def test_portico_workers_pool_as_they_do_over_http(flag, path, body, check):
    worker = mock_worker(flag)
    worker.wait_ready()
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", f"grpc://127.0.0.1:{worker.port}")
    try:
        wait_until(lambda: gateway.answers("/readiness"), lambda: gateway.output()[-3000:])
        direct = requests.post(worker.url + path, json=body, timeout=60)
        through = requests.post(gateway.url + path, json=body, timeout=60)
        assert direct.status_code == through.status_code == 200, through.text
        assert check(through.json()) == check(direct.json())
    finally:
        assert gateway.end() == 0
        worker.end()


def test_controls_go_to_workers_that_have_them_and_say_what_came_of_it(front, ids):
    class Flushing(VllmStandIn):
        flushes = True

    gateway = front(Flushing(ids, TOKENIZER))
    assert requests.post(gateway.url + "/flush_cache", timeout=60).status_code == 200
    assert "FlushCache" in gateway.worker.calls
    refusing = front(NativeStandIn(ids, TOKENIZER))
    reply = requests.post(refusing.url + "/flush_cache", timeout=60)
    assert reply.status_code >= 400 and "requests are running" in reply.text
    without = front(VllmStandIn(ids, TOKENIZER))
    assert requests.post(without.url + "/flush_cache", timeout=60).status_code >= 400
    assert requests.post(refusing.url + "/pause_generation", json={"mode": "retract"}, timeout=60).status_code == 200
    assert refusing.worker.asked[-1].mode == "retract"


def test_an_abort_at_the_gateway_ends_the_workers_stream(front, ids):
    left = threading.Event()

    class Slow(VllmStandIn):
        def Generate(self, request, context):
            context.add_callback(left.set)
            self.asked.append(request)
            left.wait(60)
            yield from ()

    gateway = front(Slow(ids, TOKENIZER))
    answers = []
    asking = threading.Thread(target=lambda: answers.append(gateway.post(
        "/generate", text="Hi", rid="mine", sampling_params={"max_new_tokens": 9})))
    asking.start()
    wait_until(lambda: gateway.worker.asked, "the request has not come")
    assert requests.post(gateway.url + "/abort_request", json={"rid": "mine"}, timeout=60).status_code == 200
    asking.join(60)
    assert left.wait(60) and answers  # the cancellation reaches the worker after the answer has reached the client


def test_the_environment_of_sglangs_go_server_names_the_workers(ids, monkeypatch, tmp_path):
    worker = VllmStandIn([*ids, 2], TOKENIZER)
    monkeypatch.setenv("SGL_GRPC_ENDPOINT", f"127.0.0.1:{worker.port}")
    monkeypatch.setenv("SGL_TOKENIZER_PATH", str(TOKENIZER))
    monkeypatch.setenv("SGL_POLICY_NAME", "round_robin")
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "log"))
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0")
    try:
        wait_until(lambda: gateway.answers("/readiness"), lambda: gateway.output()[-3000:])
        reply = requests.post(gateway.url + "/v1/chat/completions", timeout=60,
                              json={"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 32})
        assert reply.json()["choices"][0]["message"]["content"] == TEXT, reply.text
        assert (tmp_path / "log/portico.log").exists()
    finally:
        assert gateway.end() == 0
        worker.stop()
