"""Several models in one server: requests choose by name, and neither disturbs the other."""
import contextlib
import json
import threading

import grpc
import pytest
import requests

from conftest import ENDLESS, ROOT, Server, wait_until
from grpc_client import Client

DEMO = ROOT / "models/demo"
CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]
TWO_MOCKS = ("--engine", "mock", "--mock-itl-ms", 1,
             "--model-path", DEMO, "--served-model-name", "one",
             "--model-path", DEMO, "--served-model-name", "two", "--context-length", 30000)


@pytest.fixture(scope="module")
def both():
    server = Server(*TWO_MOCKS, "--api-key", "s3cret")
    yield server
    server.stop()


def get(server, path, key="s3cret"):
    return requests.get(server.url + path, headers={"authorization": f"Bearer {key}"}, timeout=60)


def post(server, path, body):
    return requests.post(server.url + path, json=body, headers={"authorization": "Bearer s3cret"}, timeout=120)


def chat(server, model=None, **fields):
    named = {"model": model} if model else {}
    return post(server, CHAT, {"messages": HELLO, "max_tokens": 4, **named, **fields})


@contextlib.contextmanager
def endless(server, model, rid):
    """A stream of that model that runs."""
    body = {"messages": HELLO, "max_tokens": ENDLESS, "stream": True, "rid": rid, "model": model}
    headers = {"authorization": "Bearer s3cret"}
    with requests.post(server.url + CHAT, json=body, headers=headers, stream=True, timeout=120) as answer:
        lines = (line for line in answer.iter_lines() if line)
        for _ in range(3):
            next(lines)
        yield lines


def finish_of(lines):
    rest = list(lines)
    assert rest[-1] == b"data: [DONE]"
    return json.loads(rest[-2][6:])["choices"][0]["finish_reason"]


def test_both_are_listed_and_the_first_is_the_default(both):
    cards = get(both, "/v1/models").json()["data"]
    assert [(card["id"], card["max_model_len"]) for card in cards] == [("one", 32768), ("two", 30000)]
    assert get(both, "/v1/models/two").json()["id"] == "two"
    for path, name in (("", "one"), ("?model=one", "one"), ("?model=two", "two")):
        assert get(both, "/get_model_info" + path).json()["served_model_name"] == name
    assert get(both, "/get_model_info?model=three").status_code == 404
    listed = Client(f"127.0.0.1:{both.port}").sglang.ListModels(metadata=[("authorization", "Bearer s3cret")])
    assert [card.id for card in listed.models] == ["one", "two"]


def test_the_server_info_has_the_options_of_each_and_no_secret(both):
    answer = get(both, "/get_server_info")
    info = answer.json()
    assert "s3cret" not in answer.text
    assert [(model["id"], model["context_length"]) for model in info["models"]] == [("one", 0), ("two", 30000)]
    assert info["served_model_name"] == "one" and info["port"] == both.port
    assert info["disaggregation_mode"] == "null"  # gateways of prefill and decode workers took it for one
    assert [state["model"] for state in info["internal_states"]] == ["one", "two"]


@pytest.mark.parametrize("model,served", [(None, "one"), ("", "one"), ("one", "one"), ("two", "two")])
def test_a_request_is_answered_by_the_model_that_it_names(both, model, served):
    before = both.metric("portico_generation_tokens_total", model_name=served)
    named = {} if model is None else {"model": model}
    assert post(both, CHAT, {"messages": HELLO, "max_tokens": 4, **named}).json()["model"] == served
    assert post(both, "/v1/completions", {"prompt": "a b c", "max_tokens": 4, **named}).json()["model"] == served
    native = {"text": "a b c", "sampling_params": {"max_new_tokens": 4}, **named}
    assert post(both, "/generate", native).status_code == 200
    assert both.metric("portico_generation_tokens_total", model_name=served) == before + 12


@pytest.mark.parametrize("path,body", [
    (CHAT, {"messages": HELLO}), ("/v1/completions", {"prompt": "a"}), ("/generate", {"text": "a"}),
    ("/tokenize", {"prompt": "a"}), ("/pause_generation", {}), ("/continue_generation", {}),
    ("/update_weights_from_disk", {"model_path": "/x"}), ("/flush_cache?model=three", {})])
def test_an_unknown_model_is_a_404_that_names_the_served_ones(both, path, body):
    answer = post(both, path, {**body, "model": "three"})
    error = answer.json()["error"]
    assert answer.status_code == 404 and error["param"] == "model" and error["code"] == "model_not_found"
    assert "three" in error["message"] and "one, two" in error["message"]


def test_metrics_are_told_apart_by_the_model_name(both):
    def counts(model):
        return [both.metric(name, model_name=model) for name in (
            "portico_prompt_tokens_total", "portico_request_success_total",
            "portico_e2e_request_latency_seconds_count", "portico_time_to_first_token_seconds_count")]

    one, two = counts("one"), counts("two")
    assert chat(both, "two").status_code == 200
    assert counts("one") == one
    assert all(now > then for now, then in zip(counts("two"), two))
    assert both.metric("portico_model_healthy", model_name="one") == 1
    assert both.metric("portico_model_healthy") == 2


def test_loads_are_told_for_each(both):
    with endless(both, "two", "loads") as lines:
        both.wait_for("portico_requests_running", 1, model_name="two")
        loads = get(both, "/v1/loads").json()
        assert [(load["model"], load["num_running_reqs"]) for load in loads["loads"]] == [("one", 0), ("two", 1)]
        assert post(both, "/abort_request", {"rid": "loads"}).status_code == 200
        assert finish_of(lines) == "abort"


def test_the_cache_of_one_is_flushed_while_the_other_is_busy(both):
    both.settle()
    with endless(both, "two", "busy") as lines:
        refused = post(both, "/flush_cache", None)
        assert refused.status_code == 400 and "`two`" in refused.json()["error"]["message"]
        assert post(both, "/flush_cache?model=two", None).status_code == 400
        assert post(both, "/flush_cache?model=one", None).status_code == 200
        assert post(both, "/abort_request", {"rid": "busy"}).status_code == 200
        assert finish_of(lines) == "abort"
    both.settle()
    assert post(both, "/flush_cache", None).status_code == 200


def test_one_is_paused_while_the_other_goes_on(both):
    both.settle()
    assert post(both, "/pause_generation", {"model": "two"}).status_code == 200
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(chat(both, "two")))
    waiting.start()
    both.wait_for("portico_requests_waiting", 1, model_name="two")
    assert chat(both, "one").status_code == 200
    assert not answers
    assert post(both, "/continue_generation", {"model": "two"}).status_code == 200
    waiting.join()
    assert answers[0].json()["model"] == "two"


def test_abort_all_ends_the_requests_of_both(both):
    with endless(both, "one", "first") as first, endless(both, "two", "second") as second:
        assert post(both, "/abort_request", {"abort_all": True}).status_code == 200
        assert finish_of(first) == "abort" and finish_of(second) == "abort"


def test_a_full_queue_of_one_is_not_the_others(start):
    server = start("--engine", "mock", "--max-running-requests", 1, "--mock-itl-ms", 200,
                   "--model-path", DEMO, "--served-model-name", "narrow", "--max-queued-requests", 1,
                   "--model-path", DEMO, "--served-model-name", "wide")
    threads = []
    for state in ("running", "waiting"):
        threads.append(threading.Thread(target=chat, args=(server, "narrow"), kwargs={"max_tokens": ENDLESS}))
        threads[-1].start()
        server.wait_for(f"portico_requests_{state}", 1, model_name="narrow")
    refused = chat(server, "narrow")
    assert refused.status_code == 429 and refused.json()["error"]["code"] == "queue_full"
    assert chat(server, "wide", max_tokens=1).status_code == 200
    assert post(server, "/abort_request", {"abort_all": True}).status_code == 200
    for thread in threads:
        thread.join()


def test_when_an_engine_dies_the_other_goes_on(start):
    server = start("--engine", "mock", "--model-path", DEMO, "--served-model-name", "well",
                   "--model-path", DEMO, "--served-model-name", "ill", "--mock-fault", "die:1")
    assert chat(server, "ill").status_code >= 500
    wait_until(lambda: server.metric("portico_model_healthy", model_name="ill") == 0, "the engine lives")
    for path in ("/health", "/readiness", "/ping"):
        answer = get(server, path)
        assert answer.status_code == 200 and "`ill`" in answer.text and "`well`" not in answer.text
        assert get(server, path + "?model=ill").status_code == 503
        assert get(server, path + "?model=well").text == "ok\n"
        assert get(server, path + "?model=other").status_code == 404
    assert get(server, "/health_generate").status_code == 200
    assert get(server, "/health_generate?model=ill").status_code == 503
    assert chat(server, "well").status_code == 200
    assert chat(server, "ill").status_code == 503
    assert post(server, "/flush_cache", None).status_code == 200
    assert post(server, "/pause_generation", {}).status_code == 200
    assert post(server, "/continue_generation", {}).status_code == 200
    client = Client(f"127.0.0.1:{server.port}")
    assert client.sglang.HealthCheck().healthy
    assert client.health.Check().status == 1


def test_when_the_default_dies_the_server_is_alive_but_its_requests_fail(start):
    server = start("--engine", "mock", "--model-path", DEMO, "--served-model-name", "ill", "--mock-fault", "die:1",
                   "--model-path", DEMO, "--served-model-name", "well", "--mock-fault", "die:0")
    assert chat(server).status_code >= 500
    wait_until(lambda: server.metric("portico_model_healthy", model_name="ill") == 0, "the engine lives")
    assert chat(server).status_code == 503
    assert chat(server, "well").status_code == 200
    assert get(server, "/health").status_code == 200
    assert get(server, "/health_generate").status_code == 200
    with pytest.raises(grpc.RpcError) as refused:
        Client(f"127.0.0.1:{server.port}").sglang.TextGenerate(text="a").next()
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_drain_lets_the_requests_of_both_finish(start):
    server = start("--engine", "mock", "--mock-itl-ms", 20, "--model-path", DEMO, "--served-model-name", "one",
                   "--model-path", DEMO, "--served-model-name", "two")
    streams = []
    for model in ("one", "two"):
        body = {"messages": HELLO, "max_tokens": 50, "stream": True, "model": model}
        answer = requests.post(server.url + CHAT, json=body, stream=True, timeout=120)
        streams.append((answer, answer.iter_lines()))
        next(streams[-1][1])
    server.process.terminate()
    for answer, lines in streams:
        assert [line for line in lines if line][-1] == b"data: [DONE]"
        answer.close()
    assert server.process.wait(120) == 0


def test_models_of_two_engines_stand_side_by_side(start):
    server = start("--model-path", DEMO, "--served-model-name", "demo",
                   "--model-path", DEMO, "--served-model-name", "echo", "--engine", "mock")
    answers = {model: chat(server, model, temperature=0).json() for model in ("demo", "echo")}
    texts = {model: answer["choices"][0]["message"]["content"] for model, answer in answers.items()}
    assert texts["demo"] != texts["echo"]
    engines = {model["id"]: model["engine"] for model in get(server, "/get_server_info").json()["models"]}
    assert engines == {"demo": "llama", "echo": "mock"}
    for model in ("demo", "echo"):
        assert f"model `{model}`: engine" in server.output()


def test_a_file_lists_models(start, tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text(f"engine: mock\nmodels:\n  - model-path: {DEMO}\n    served-model-name: one\n"
                      f"  - model-path: {DEMO}\n    served-model-name: two\n    context-length: 64\n")
    server = start("--config", config)
    assert [card["max_model_len"] for card in get(server, "/v1/models").json()["data"]] == [32768, 64]


def test_a_request_without_a_name_finds_the_first_model_that_can_do_it(start):
    server = start("--engine", "mock", "--model-path", DEMO, "--served-model-name", "chat",
                   "--model-path", DEMO, "--served-model-name", "vectors", "--is-embedding",
                   "--model-path", DEMO, "--served-model-name", "classes", "--mock-labels", 3)
    assert chat(server).json()["model"] == "chat"
    assert post(server, "/v1/embeddings", {"input": "a"}).json()["model"] == "vectors"
    assert post(server, "/v1/classify", {"input": "a"}).json()["model"] == "classes"
    refused = post(server, "/v1/embeddings", {"input": "a", "model": "chat"})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "model"
    assert chat(server, "vectors").status_code == 400
    grpc_client = Client(f"127.0.0.1:{server.port}").sglang
    assert grpc_client.TextEmbed(text="a").embedding
    assert len(grpc_client.Classify(text="a").embedding) == 3
    assert grpc_client.TextGenerate(text="a").next()
    assert server.metric("portico_request_success_total", model_name="vectors") == 2


def test_an_embedding_model_may_stand_first(start):
    server = start("--engine", "mock", "--model-path", DEMO, "--served-model-name", "vectors", "--is-embedding",
                   "--model-path", DEMO, "--served-model-name", "chat", "--is-embedding=false")
    assert chat(server).json()["model"] == "chat"
    assert post(server, "/v1/embeddings", {"input": "a"}).json()["model"] == "vectors"
    assert get(server, "/health_generate").status_code == 200
