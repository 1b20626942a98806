"""Vectors, classes and relevance through HTTP and gRPC, on the mock engine."""
import base64
import json
import math
import signal
import socket
import struct
import threading

import grpc
import openai
import pytest
import requests

from grpc_client import Client, fields_at_fault

SLOW = ("--mock-ttft-ms", "600000")


def post(server, path, body, **keywords):
    return requests.post(server.url + path, json=body, timeout=120, **keywords)


def refused(answer, status=400):
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def norm(vector):
    return math.sqrt(sum(x * x for x in vector))


@pytest.fixture(scope="module")
def serve():
    """serve(*flags): one server for all tests of this file that want these flags."""
    from conftest import Server
    servers = {}

    def get(*flags):
        if flags not in servers:
            servers[flags] = Server("--engine", "mock", *flags)
        return servers[flags]

    yield get
    for server in servers.values():
        server.stop()


@pytest.fixture
def embedder(serve):
    return serve("--is-embedding")


@pytest.fixture
def ranker(serve):
    return serve("--mock-labels", "1")


@pytest.fixture
def classifier(serve):
    return serve("--mock-labels", "3")


def test_the_openai_package_gets_the_same_vectors_in_both_encodings(embedder):
    client = openai.OpenAI(base_url=embedder.url + "/v1", api_key="none")
    default = client.embeddings.create(model="demo", input=["one two", "three"])
    assert [item.index for item in default.data] == [0, 1] and default.model == "demo"
    assert default.usage.prompt_tokens == default.usage.total_tokens > 0
    floats = client.embeddings.create(model="demo", input=["one two", "three"], encoding_format="float")
    for a, b in zip(default.data, floats.data):
        assert a.embedding == pytest.approx(b.embedding, abs=1e-7)
        assert len(b.embedding) == 64 and norm(b.embedding) == pytest.approx(1, abs=1e-6)
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="demo", input=[])
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="other", input="a")


def test_base64_holds_little_endian_floats(embedder):
    body = {"input": "one two"}
    plain = post(embedder, "/v1/embeddings", body).json()["data"][0]["embedding"]
    packed = post(embedder, "/v1/embeddings", {**body, "encoding_format": "base64"}).json()["data"][0]["embedding"]
    assert list(struct.unpack("<64f", base64.b64decode(packed))) == pytest.approx(plain, abs=1e-8)


def test_texts_and_their_ids_give_the_same_vectors(embedder):
    texts = ["one two three", "four"]
    ids = post(embedder, "/tokenize", {"prompt": texts}).json()["tokens"]
    by_text = post(embedder, "/v1/embeddings", {"input": texts}).json()
    by_ids = post(embedder, "/v1/embeddings", {"input": ids}).json()
    assert by_text["data"] == by_ids["data"] and by_text["usage"] == by_ids["usage"]
    assert by_text["usage"]["prompt_tokens"] == sum(map(len, ids))
    assert post(embedder, "/v1/embeddings", {"input": ids[0]}).json()["data"] == by_ids["data"][:1]


def test_dimensions_cut_and_make_the_length_one_again(embedder):
    whole = post(embedder, "/v1/embeddings", {"input": "a", "normalize": False}).json()["data"][0]["embedding"]
    for size in (16, 32):
        cut = post(embedder, "/v1/embeddings", {"input": "a", "dimensions": size}).json()["data"][0]["embedding"]
        assert cut == pytest.approx([x / norm(whole[:size]) for x in whole[:size]], abs=1e-6)


@pytest.mark.parametrize("path, body, field", [
    ("/v1/embeddings", {}, "input"),
    ("/v1/embeddings", {"input": ""}, "input"),
    ("/v1/embeddings", {"input": []}, "input"),
    ("/v1/embeddings", {"input": ["a", ""]}, "input"),
    ("/v1/embeddings", {"input": [[]]}, "input"),
    ("/v1/embeddings", {"input": ["a", 7]}, "input"),
    ("/v1/embeddings", {"input": [99999999]}, "input"),
    ("/v1/embeddings", {"input": [-1]}, "input"),
    ("/v1/embeddings", {"input": "a", "dimensions": 20}, "dimensions"),
    ("/v1/embeddings", {"input": "a", "dimensions": 65}, "dimensions"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}, "encoding_format"),
    ("/v1/embeddings", {"input": "a", "truncate_prompt_tokens": 99999999}, "truncate_prompt_tokens"),
    ("/encode", {"text": "a", "input_ids": [1]}, "text"),
    ("/encode", {"text": ["a", "b"], "rid": ["x", "x"]}, "rid"),
    ("/v1/classify", {"input": "a"}, "model"),
    ("/v1/rerank", {"query": "a", "documents": ["b"]}, "model"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}, "model"),
    ("/v1/completions", {"prompt": "a"}, "model"),
    ("/generate", {"text": "a"}, "model"),
    ("/v1/score", {"query": "a", "items": ["b"], "label_token_ids": [1]}, "model"),
])
def test_what_an_embedder_refuses_is_named(embedder, path, body, field):
    assert refused(post(embedder, path, body))["param"] == field
    assert post(embedder, "/v1/embeddings", {"input": "a"}).status_code == 200


def test_long_texts_are_cut_only_when_asked(serve):
    server = serve("--is-embedding", "--context-length", "16")
    long = "one two three four five six seven eight nine ten " * 5
    ids = post(server, "/tokenize", {"prompt": long}).json()["tokens"]
    error = refused(post(server, "/v1/embeddings", {"input": ["a", long]}))
    assert error["param"] == "input" and f"input[1] has {len(ids)} tokens" in error["message"]
    assert "at most 16" in error["message"]
    for limit, kept in [(-1, 16), (5, 5)]:
        answer = post(server, "/v1/embeddings", {"input": long, "truncate_prompt_tokens": limit}).json()
        assert answer["usage"]["prompt_tokens"] == kept


def test_thousands_of_texts_keep_their_order(embedder):
    texts = [f"text number {i}" for i in range(3000)]
    many = post(embedder, "/v1/embeddings", {"input": texts, "encoding_format": "base64"}).json()
    assert [item["index"] for item in many["data"]] == list(range(3000))
    for i in (0, 1234, 2999):
        one = post(embedder, "/v1/embeddings", {"input": texts[i], "encoding_format": "base64"}).json()
        assert one["data"][0]["embedding"] == many["data"][i]["embedding"]


def test_too_many_texts_are_refused_by_the_flag(serve):
    server = serve("--is-embedding", "--max-client-batch-size", "3")
    assert post(server, "/v1/embeddings", {"input": ["a"] * 3}).status_code == 200
    error = refused(post(server, "/v1/embeddings", {"input": ["a"] * 4}))
    assert error["param"] == "input" and "at most 3 texts, got 4" in error["message"]


def test_encode_answers_in_sglangs_form(embedder):
    one = post(embedder, "/encode", {"text": "one two", "rid": "mine"}).json()
    vector = post(embedder, "/v1/embeddings", {"input": "one two"}).json()["data"][0]["embedding"]
    assert one["embedding"] == vector
    meta = one["meta_info"]
    assert meta["id"] == "mine" and meta["finish_reason"] == {"type": "length", "length": 0}
    assert meta["prompt_tokens"] > 0 and meta["e2e_latency"] >= 0
    two = post(embedder, "/encode", {"text": ["one two", "three"], "rid": "mine"}).json()
    assert [item["meta_info"]["id"] for item in two] == ["mine_0", "mine_1"]
    assert two[0]["embedding"] == vector


def test_rerank_sorts_and_cuts(ranker):
    documents = [f"document {i}" for i in range(20)] + ["document 3"]
    body = {"query": "which one", "documents": documents}
    ranked = post(ranker, "/v1/rerank", body).json()
    assert len(ranked) == 21 and sorted(item["index"] for item in ranked) == list(range(21))
    scores = [item["score"] for item in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(item["document"] == documents[item["index"]] for item in ranked)
    places = [item["index"] for item in ranked]
    assert places.index(20) == places.index(3) + 1  # equal documents keep their order
    best = post(ranker, "/v1/rerank", {**body, "top_n": 2, "return_documents": False}).json()
    assert [item["index"] for item in best] == places[:2] and all("document" not in item for item in best)
    assert requests.put(ranker.url + "/v1/rerank", json=body, timeout=60).status_code == 200


def test_coheres_form_has_a_relevance_from_0_to_1(ranker):
    body = {"query": "q", "documents": ["a", {"text": "b"}, "c"], "top_n": 2}
    raw = post(ranker, "/v1/rerank", body).json()
    cohere = post(ranker, "/rerank", body).json()
    assert cohere == {**post(ranker, "/v2/rerank", body).json(), "id": cohere["id"]}
    assert [item["index"] for item in cohere["results"]] == [item["index"] for item in raw]
    for a, b in zip(cohere["results"], raw):
        assert a["relevance_score"] == pytest.approx(1 / (1 + math.exp(-b["score"])), abs=1e-6)
        assert a["document"]["text"] == b["document"]
    plain = post(ranker, "/rerank", {**body, "use_activation": False}).json()["results"]
    assert [item["relevance_score"] for item in plain] == [item["score"] for item in raw]


@pytest.mark.parametrize("body, field", [
    ({"documents": ["a"]}, "query"),
    ({"query": "", "documents": ["a"]}, "query"),
    ({"query": "q", "documents": []}, "documents"),
    ({"query": "q", "documents": ["a", ""]}, "documents"),
    ({"query": "q", "documents": ["a"], "top_n": 0}, "top_n"),
    ({"query": "q", "documents": ["a"], "instruct": "x"}, "instruct"),
])
def test_what_is_wrong_with_a_rerank_is_named(ranker, body, field):
    for path in ("/v1/rerank", "/rerank"):
        assert refused(post(ranker, path, body))["param"] == field


def test_scores_of_a_classifier_are_its_logits_for_every_pair(ranker, classifier):
    items = ["b", "c d"]
    rows = post(ranker, "/v1/score", {"query": "a", "items": items, "label_token_ids": [1]}).json()
    ranked = post(ranker, "/v1/rerank", {"query": "a", "documents": items}).json()
    assert {i: row[0] for i, row in enumerate(rows["scores"])} == {item["index"]: item["score"] for item in ranked}
    assert rows["object"] == "scoring" and rows["usage"]["prompt_tokens"] > 0
    plain = post(classifier, "/v1/score", {"query": "a", "items": items}).json()["scores"]
    soft = post(classifier, "/v1/score", {"query": "a", "items": items, "apply_softmax": True}).json()["scores"]
    for row, shares in zip(plain, soft):
        total = sum(map(math.exp, row))
        assert shares == pytest.approx([math.exp(x) / total for x in row], abs=1e-6)
    by_ids = post(classifier, "/v1/score", {"query": [5], "items": [[6, 7], [8]]})
    assert by_ids.status_code == 200 and len(by_ids.json()["scores"]) == 2


def test_classes_have_labels_and_probabilities(classifier, ranker):
    texts = ["one", "two", "three"]
    answer = post(classifier, "/v1/classify", {"input": texts}).json()
    native = post(classifier, "/classify", {"text": texts}).json()
    for item, raw in zip(answer["data"], native):
        logits = raw["embedding"]
        total = sum(map(math.exp, logits))
        assert item["probs"] == pytest.approx([math.exp(x) / total for x in logits], abs=1e-6)
        assert item["label"] == f"LABEL_{logits.index(max(logits))}" and item["num_classes"] == 3
    assert answer["object"] == "list" and answer["usage"]["total_tokens"] > 0
    assert post(classifier, "/classify", {"input": texts}).json()["data"] == answer["data"]
    plain = post(classifier, "/v1/classify", {"input": texts, "use_activation": False}).json()
    assert [item["probs"] for item in plain["data"]] == [raw["embedding"] for raw in native]
    single = post(ranker, "/v1/classify", {"input": "one"}).json()["data"][0]
    logit = post(ranker, "/classify", {"text": "one"}).json()["embedding"][0]
    assert single["probs"] == [pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)]
    assert refused(post(classifier, "/v1/embeddings", {"input": "a"}))["param"] == "model"
    assert "3 labels" in refused(post(classifier, "/v1/rerank", {"query": "a", "documents": ["b"]}))["message"]


def test_probes_and_facts_fit_the_model(embedder, classifier):
    for server in (embedder, classifier):
        assert requests.get(server.url + "/health_generate", timeout=60).status_code == 200
        assert requests.get(server.url + "/readiness", timeout=60).status_code == 200
        assert requests.get(server.url + "/v1/loads", timeout=60).status_code == 200
    facts = requests.get(embedder.url + "/v1/models", timeout=60).json()["data"][0]
    assert facts["is_embedding"] is True and facts["is_generation"] is False and facts["pooling"] == "mean"
    assert facts["embedding_size"] == 64 and facts["matryoshka_dimensions"] == [16, 32]
    facts = requests.get(classifier.url + "/get_model_info", timeout=60).json()
    assert facts["task"] == "classify" and facts["id2label"]["2"] == "LABEL_2"


def test_a_rid_names_the_request_while_it_runs(serve):
    server = serve("--is-embedding", *SLOW)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(
        post(server, "/v1/embeddings", {"input": ["a", "b"], "rid": "mine"})))
    thread.start()
    server.wait_for("portico_requests_running", 1)
    assert refused(post(server, "/v1/embeddings", {"input": "a", "rid": "mine"}))["param"] == "rid"
    assert post(server, "/abort_request", {"rid": "mine"}).status_code == 200
    thread.join(60)
    refused(answers[0], 409)
    server.settle()


def leave(server, path, body):
    data = json.dumps(body).encode()
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
    return s


@pytest.mark.parametrize("flags, path, body", [
    (("--is-embedding",), "/v1/embeddings", {"input": ["a few words"] * 2000}),
    (("--is-embedding",), "/encode", {"text": "a"}),
    (("--mock-labels", "1"), "/v1/rerank", {"query": "q", "documents": ["a"] * 100}),
    (("--mock-labels", "1"), "/v1/score", {"query": "q", "items": ["a"] * 100}),
    (("--mock-labels", "1"), "/classify", {"text": ["a"] * 100}),
])
def test_a_client_that_leaves_takes_all_its_texts_along(serve, flags, path, body):
    server = serve(*flags, *SLOW)
    server.settle()
    gone = server.metric("portico_requests_aborted_total")
    sockets = [leave(server, path, body) for _ in range(5)]
    server.wait_for("portico_requests_running", 5)
    for s in sockets:
        s.close()
    server.settle()
    texts = max(len(value) if isinstance(value, list) else 1 for value in body.values())
    server.wait_for("portico_requests_aborted_total", gone + 5 * texts)


def test_hundreds_of_disconnects_leave_nothing_running(serve):
    server = serve("--is-embedding")
    for i in range(300):
        s = leave(server, "/v1/embeddings", {"input": ["a few words"] * (1 + i % 40)})
        if i % 3 == 0:
            s.recv(100)
        s.close()
    server.settle()
    assert post(server, "/v1/embeddings", {"input": "a"}).status_code == 200


def test_a_full_queue_is_a_429_with_a_time_to_retry(start):
    server = start("--engine", "mock", "--is-embedding", *SLOW, "--max-running-requests", "1",
                   "--max-queued-requests", "1")
    sockets = [leave(server, "/v1/embeddings", {"input": ["a"] * 3}) for _ in range(2)]
    server.wait_for("portico_requests_running", 1)
    server.wait_for("portico_requests_waiting", 1)
    answer = post(server, "/v1/embeddings", {"input": "a"})
    refused(answer, 429)
    assert "retry-after" in answer.headers
    with pytest.raises(grpc.RpcError) as error:
        Client(f"127.0.0.1:{server.port}").sglang.TextEmbed(text="a")
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    for s in sockets:
        s.close()
    server.settle()


def test_a_pause_holds_texts_back_until_it_ends(start):
    server = start("--engine", "mock", "--is-embedding")
    assert post(server, "/pause_generation", {"mode": "in_place"}).status_code == 200
    assert requests.get(server.url + "/health_generate", timeout=60).status_code == 200
    answers = []
    thread = threading.Thread(target=lambda: answers.append(post(server, "/v1/embeddings", {"input": "a"})))
    thread.start()
    server.wait_for("portico_requests_waiting", 1)
    assert not answers
    assert post(server, "/continue_generation", {}).status_code == 200
    thread.join(60)
    assert answers[0].status_code == 200


def test_a_drain_lets_texts_finish(start):
    server = start("--engine", "mock", "--is-embedding", "--mock-ttft-ms", "1500")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(post(server, "/v1/embeddings", {"input": ["a"] * 500})))
    thread.start()
    server.wait_for("portico_requests_running", 1)
    server.process.send_signal(signal.SIGTERM)
    thread.join(60)
    assert answers[0].status_code == 200 and len(answers[0].json()["data"]) == 500
    assert server.process.wait(60) == 0


def test_a_drain_that_takes_too_long_aborts_what_is_left(start):
    server = start("--engine", "mock", "--is-embedding", *SLOW, "--drain-timeout", "0.2")
    statuses = []

    def ask():
        try:
            statuses.append(post(server, "/v1/embeddings", {"input": ["a"] * 500}).status_code)
        except requests.ConnectionError:
            statuses.append(0)  # a slow machine did not answer before the end

    thread = threading.Thread(target=ask)
    thread.start()
    server.wait_for("portico_requests_running", 1)
    server.process.send_signal(signal.SIGTERM)
    thread.join(60)
    assert statuses[0] in (409, 0)
    assert server.process.wait(60) == 0


def test_engine_errors_and_deaths_are_told(start):
    server = start("--engine", "mock", "--is-embedding", "--mock-fault", "error:1")
    refused(post(server, "/v1/embeddings", {"input": ["a", "b"]}), 500)
    server.settle()
    server = start("--engine", "mock", "--is-embedding", "--mock-fault", "die:1")
    refused(post(server, "/v1/embeddings", {"input": ["a", "b"]}), 503)
    assert requests.get(server.url + "/health", timeout=60).status_code == 503


def test_metrics_count_texts(start):
    server = start("--engine", "mock", "--is-embedding")
    answer = post(server, "/v1/embeddings", {"input": ["one two", "three"]}).json()
    assert server.metric("portico_request_success_total", finish_reason="stop") == 2
    assert server.metric("portico_prompt_tokens_total") == answer["usage"]["prompt_tokens"]
    assert server.metric("portico_e2e_request_latency_seconds_count") == 2


def meta(answer):
    return {key: json.loads(value) for key, value in answer.meta_info.items()}


def test_grpc_gives_what_http_gives(embedder, classifier):
    grpc_embedder = Client(f"127.0.0.1:{embedder.port}")
    vector = post(embedder, "/encode", {"text": "one two"}).json()["embedding"]
    text = grpc_embedder.sglang.TextEmbed(text="one two", rid="mine")
    assert list(text.embedding) == pytest.approx(vector, abs=1e-7)
    assert meta(text)["id"] == "mine" and meta(text)["prompt_tokens"] > 0
    ids = post(embedder, "/tokenize", {"prompt": "one two"}).json()["tokens"]
    assert list(grpc_embedder.sglang.Embed(input_ids=ids).embedding) == list(text.embedding)
    scheduler = grpc_embedder.scheduler.Embed(tokenized={"input_ids": ids})
    assert list(scheduler.embedding) == list(text.embedding)
    assert (scheduler.embedding_dim, scheduler.prompt_tokens) == (64, len(ids))
    body = {"input": "one two"}
    answer = grpc_embedder.sglang.OpenAIEmbed(json_body=json.dumps(body).encode())
    assert answer.status_code == 200
    assert json.loads(answer.json_body) == post(embedder, "/v1/embeddings", body).json()

    grpc_classifier = Client(f"127.0.0.1:{classifier.port}")
    logits = post(classifier, "/classify", {"text": "one two"}).json()["embedding"]
    assert list(grpc_classifier.sglang.Classify(text="one two").embedding) == pytest.approx(logits, abs=1e-6)
    assert list(grpc_classifier.sglang.Classify(input_ids=ids).embedding) == pytest.approx(logits, abs=1e-6)
    assert len(grpc_classifier.scheduler.Embed(tokenized={"input_ids": ids}).embedding) == 3
    info = grpc_classifier.scheduler.GetModelInfo()
    assert info.is_generation is False and info.num_labels == 3
    assert json.loads(info.id2label_json)["0"] == "LABEL_0"


def test_grpcs_json_methods_rank_classify_and_score(classifier, ranker):
    for server, method, path, body in [
            (ranker, "Rerank", "/v1/rerank", {"query": "q", "documents": ["a", "b"], "rid": "r"}),
            (classifier, "OpenAIClassify", "/v1/classify", {"input": "a", "rid": "r"}),
            (classifier, "Score", "/v1/score", {"query": "q", "items": ["a", "b"]})]:
        service = Client(f"127.0.0.1:{server.port}").sglang
        answer = getattr(service, method)(json_body=json.dumps(body).encode())
        expected = post(server, path, body).json()
        got = json.loads(answer.json_body)
        for each in (got, expected):
            if isinstance(each, dict):
                each.pop("created", None)
            else:
                for item in each:
                    item["meta_info"].pop("e2e_latency")
        assert answer.status_code == 200 and got == expected


@pytest.mark.parametrize("method, fields, code, field", [
    ("TextEmbed", {}, "INVALID_ARGUMENT", "text"),
    ("Embed", {}, "INVALID_ARGUMENT", "input_ids"),
    ("Embed", {"input_ids": [99999999]}, "INVALID_ARGUMENT", "input_ids"),
    ("Embed", {"input_ids": [-1]}, "INVALID_ARGUMENT", "input_ids"),
    ("Classify", {"text": "a"}, "FAILED_PRECONDITION", "model"),
    ("Classify", {"text": "a", "input_ids": [1]}, "INVALID_ARGUMENT", "text"),
])
def test_what_grpc_refuses_is_named(embedder, method, fields, code, field):
    with pytest.raises(grpc.RpcError) as error:
        getattr(Client(f"127.0.0.1:{embedder.port}").sglang, method)(**fields)
    assert error.value.code().name == code
    assert field in fields_at_fault(error.value)[0] or field in error.value.details()


def test_a_grpc_call_that_is_cancelled_or_late_stops_the_work(serve):
    server = serve("--is-embedding", *SLOW)
    client = Client(f"127.0.0.1:{server.port}")
    call = client.sglang.TextEmbed.raw.future(client.sglang.TextEmbed.request(text="a"))
    server.wait_for("portico_requests_running", 1)
    call.cancel()
    server.settle()
    with pytest.raises(grpc.RpcError) as error:
        client.sglang.Embed(input_ids=[1], timeout=0.5)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    server.settle()
    call = client.sglang.TextEmbed.raw.future(client.sglang.TextEmbed.request(text="a", rid="mine"))
    server.wait_for("portico_requests_running", 1)
    assert client.sglang.Abort(rid="mine").success
    with pytest.raises(grpc.RpcError) as error:
        call.result(60)
    assert error.value.code() == grpc.StatusCode.CANCELLED


def test_a_chat_model_and_an_embedder_stand_side_by_side(start):
    path = start("--engine", "mock").process.args[0].rsplit("/build/", 1)[0] + "/models/demo"
    server = start("--engine", "mock", "--model-path", path, "--served-model-name", "chat", "--model-path", path,
                   "--served-model-name", "vectors", "--is-embedding")
    chat = {"model": "chat", "prompt": "a", "max_tokens": 2}
    assert post(server, "/v1/completions", chat).status_code == 200
    assert post(server, "/v1/embeddings", {"model": "vectors", "input": "a"}).status_code == 200
    assert "generates text" in refused(post(server, "/v1/embeddings", {"model": "chat", "input": "a"}))["message"]
    assert "/v1/embeddings" in refused(post(server, "/v1/completions", {**chat, "model": "vectors"}))["message"]
