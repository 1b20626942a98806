"""Values that ask for nothing, names that mean the server's model, the code of a prompt that is too long, and the members that
clients look for."""
import json

import grpc
import openai
import pytest
import requests

from conftest import ROOT, Server
from grpc_client import Client, message

HELLO = [{"role": "user", "content": "hello"}]
LONG = "word " * 40000
GENERATING = [
    ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 2}), ("/v1/completions", {"prompt": "a", "max_tokens": 2}),
    ("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 2}}), ("/tokenize", {"prompt": "a"}),
    ("/detokenize", {"tokens": [5]}), ("/v1/score", {"query": "a", "items": ["b"], "label_token_ids": [5]})]
POOLING = [("embedder", "/v1/embeddings", {"input": "a"}), ("embedder", "/encode", {"text": "a"}),
           ("ranker", "/v1/rerank", {"query": "a", "documents": ["b"]}), ("classifier", "/v1/classify", {"input": "a"}),
           ("classifier", "/classify", {"text": "a"}), ("classifier", "/v1/score", {"query": "a", "items": ["b"]})]


def post(server, path, body):
    return requests.post(server.url + path, json=body, timeout=60)


def client_of(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


def reason_of(error):
    """The reason in grpc-status-details-bin."""
    status = message("google.rpc.Status")
    status.ParseFromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    for detail in status.details:
        if detail.type_url.endswith("ErrorInfo"):
            info = message("google.rpc.ErrorInfo")
            info.ParseFromString(detail.value)
            return info.reason
    return None


# Reasoning


@pytest.mark.parametrize("fields", [{}, {"logprobs": True, "top_logprobs": 1}, {"n": 2},
                                    {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
                                    {"extra_body": {"return_token_ids": True}}])
def test_every_delta_and_message_says_whether_it_has_reasoning(mock, fields):
    # The openai package raised AttributeError on delta.reasoning_content.
    client = client_of(mock)
    deltas = [choice.delta for chunk in client.chat.completions.create(model="demo", messages=HELLO, max_tokens=4, stream=True, **fields)
              for choice in chunk.choices]
    assert len(deltas) > 4 and all(delta.reasoning_content is None for delta in deltas)
    fields = {name: value for name, value in fields.items() if name != "stream_options"}
    answer = client.chat.completions.create(model="demo", messages=HELLO, max_tokens=4, **fields)
    assert all(choice.message.reasoning_content is None for choice in answer.choices)


def test_deltas_of_reasoning_and_calls_say_it_too(demo):
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
    seen = set()
    for fields in ({"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}, {"tools": tools, "tool_choice": "required"}):
        stream = client_of(demo).chat.completions.create(
            model="demo", messages=[{"role": "user", "content": "What is 45 plus 38?"}], max_tokens=200, stream=True, temperature=0, **fields)
        for chunk in stream:
            for choice in chunk.choices:
                delta = choice.delta.model_dump()
                assert "reasoning_content" in delta, delta
                seen |= {name for name in ("content", "reasoning_content", "tool_calls") if delta.get(name)}
    assert seen == {"content", "reasoning_content", "tool_calls"}


def test_the_member_has_the_name_that_the_operator_chose(start):
    server = start("--engine", "mock", "--reasoning-field", "reasoning")
    choice = post(server, "/v1/chat/completions", {"messages": HELLO, "max_tokens": 2}).json()["choices"][0]
    assert choice["message"]["reasoning"] is None and "reasoning_content" not in choice["message"]


def test_an_answer_can_be_sent_back_as_it_came(mock):
    answer = post(mock, "/v1/chat/completions", {"messages": HELLO, "max_tokens": 4}).json()["choices"][0]["message"]
    assert answer["reasoning_content"] is None
    bare = {"role": "assistant", "content": answer["content"]}
    counts = [post(mock, "/v1/chat/completions", {"messages": [*HELLO, each, *HELLO], "max_tokens": 1}).json()["usage"]["prompt_tokens"]
              for each in (answer, bare)]
    assert counts[0] == counts[1]


# Scores


def test_no_items_have_no_scores(mock, classifier):
    for server, labels in ((mock, {"label_token_ids": [5, 6]}), (classifier, {})):
        for query in ("which?", [5, 6]):
            answer = post(server, "/v1/score", {"query": query, "items": [], **labels})
            assert answer.status_code == 200, answer.text
            assert answer.json()["scores"] == [] and answer.json()["object"] == "scoring"
            assert answer.json()["usage"]["prompt_tokens"] == answer.json()["usage"]["total_tokens"] == 0
    answer = Client(f"127.0.0.1:{mock.port}").sglang.Score(json_body=b'{"query":"a","items":[],"label_token_ids":[5]}')
    assert answer.status_code == 200 and json.loads(answer.json_body)["scores"] == []
    for wrong, field in (({"label_token_ids": [99999999]}, "label_token_ids"), ({"label_token_ids": None}, "label_token_ids"),
                         ({"query": None}, "query"), ({"model": "other"}, "model")):
        answer = post(mock, "/v1/score", {"query": "a", "items": [], "label_token_ids": [5], **wrong})
        assert answer.status_code in (400, 404) and answer.json()["error"]["param"] == field


# Prompts that are too long


@pytest.mark.parametrize("path, body", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": LONG}]}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": LONG}], "stream": True}),
    ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 1_000_000}),
    ("/v1/completions", {"prompt": LONG}), ("/v1/completions", {"prompt": ["a", LONG], "stream": True}),
    ("/generate", {"text": LONG}), ("/generate", {"text": ["a", LONG], "stream": True}), ("/generate", {"input_ids": [5] * 40000}),
    ("/v1/score", {"query": LONG, "items": ["a"], "label_token_ids": [5]})])
def test_a_prompt_that_is_too_long_has_openais_code(mock, path, body):
    answer = post(mock, path, body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("kind, path, body", POOLING)
def test_a_text_that_is_too_long_has_it_too(request, kind, path, body):
    server = request.getfixturevalue(kind)
    field = next(name for name in ("input", "text", "documents", "items") if name in body)
    answer = post(server, path, {**body, field: [LONG] if isinstance(body[field], list) else LONG})
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "context_length_exceeded", answer.text


def test_grpc_has_the_code_as_a_reason(mock, embedder):
    client = Client(f"127.0.0.1:{mock.port}")
    for call in (lambda: list(client.sglang.TextGenerate(text=LONG)), lambda: list(client.sglang.Generate(input_ids=[5] * 40000)),
                 lambda: list(client.scheduler.Generate(request_id="a", tokenized={"input_ids": [5] * 40000}, sampling_params={})),
                 lambda: Client(f"127.0.0.1:{embedder.port}").sglang.TextEmbed(text=LONG)):
        with pytest.raises(grpc.RpcError) as refused:
            call()
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert reason_of(refused.value) == "context_length_exceeded"
    chunk, = client.sglang.ChatComplete(json_body=json.dumps({"messages": [{"role": "user", "content": LONG}]}).encode())
    assert json.loads(chunk.json_chunk)["error"]["code"] == "context_length_exceeded"


# Defaults


@pytest.mark.parametrize("path, body", GENERATING[:3])
def test_refused_fields_are_taken_with_their_default_values(mock, path, body):
    for field, value in [("priority", 0), ("priority", None), ("n_predict", -1), ("typical_p", 1), ("repeat_penalty", 1.0), ("mirostat", 0.0),
                         ("store", False), ("service_tier", "auto"), ("beam_width", 1), ("cache_salt", ""), ("lora_path", ""),
                         ("stop_regex", []), ("session_id", ""), ("use_beam_search", False), ("routed_dp_rank", 0)]:
        answer = post(mock, path, {**body, field: value})
        assert answer.status_code == 200, (field, answer.text)
    refused = post(mock, path, {**body, "priority": 1})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "priority"


@pytest.mark.parametrize("kind, path, body", POOLING)
def test_a_priority_of_nothing_is_taken_by_every_route(request, kind, path, body):
    server = request.getfixturevalue(kind)
    for value in (0, 0.0, None):
        assert post(server, path, {**body, "priority": value}).status_code == 200
    refused = post(server, path, {**body, "priority": 2})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "priority"


# Names


@pytest.fixture(scope="module")
def any_model():
    server = Server("--engine", "mock", "--served-model-name", "mine", "--accept-any-model")
    yield server
    server.stop()


@pytest.mark.parametrize("path, body", GENERATING)
def test_default_is_the_name_of_the_servers_model(mock, path, body):
    answer = post(mock, path, {**body, "model": "default"})
    assert answer.status_code == 200, answer.text
    if "model" in answer.json():
        assert answer.json()["model"] == "demo"
    refused = post(mock, path, {**body, "model": "gpt-4o"})
    assert refused.status_code == 404 and refused.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("kind, path, body", POOLING)
def test_default_is_it_where_vectors_and_classes_are_asked_for(request, kind, path, body):
    assert post(request.getfixturevalue(kind), path, {**body, "model": "default"}).status_code == 200


def test_controls_and_facts_know_the_default_too(mock):
    mock.settle()
    assert requests.get(mock.url + "/v1/models/default", timeout=60).json()["id"] == "demo"
    assert requests.get(mock.url + "/model_info?model=default", timeout=60).status_code == 200
    assert requests.get(mock.url + "/health?model=default", timeout=60).status_code == 200
    assert post(mock, "/flush_cache?model=default", None).status_code == 200


@pytest.mark.parametrize("path, body", GENERATING)
def test_any_name_is_taken_where_the_operator_allows_it(any_model, path, body):
    for name in ("mine", "default", "gpt-4o", "org/some-model", "", None):
        answer = post(any_model, path, {**body, "model": name})
        assert answer.status_code == 200, (name, answer.text)
        if "model" in answer.json():
            assert answer.json()["model"] == "mine"
    refused = post(any_model, path, {**body, "model": 7})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "model"


def test_what_operators_ask_is_about_the_models_that_there_are(any_model):
    for path in ("/health?model=gpt-4o", "/model_info?model=gpt-4o", "/v1/models/gpt-4o"):
        assert requests.get(any_model.url + path, timeout=60).status_code == 404
    assert post(any_model, "/pause_generation", {"model": "gpt-4o"}).status_code == 404
    assert requests.get(any_model.url + "/get_server_info", timeout=60).json()["accept_any_model"] is True


def test_a_model_that_is_called_default_is_that_one(start):
    demo = ROOT / "models/demo"
    server = start("--engine", "mock", "--model-path", demo, "--served-model-name", "first", "--model-path", demo,
                   "--served-model-name", "default")
    assert post(server, "/v1/completions", {"prompt": "a", "max_tokens": 1, "model": "default"}).json()["model"] == "default"
    assert post(server, "/v1/completions", {"prompt": "a", "max_tokens": 1}).json()["model"] == "first"
