"""What the simulated engine of --mock-kv-cells cannot give is refused before anything is computed."""
import grpc
import pytest
import requests
from conftest import Server
from grpc_client import Client, fields_at_fault

MESSAGES = [{"role": "user", "content": "a"}]


@pytest.fixture(scope="module")
def simulated():
    server = Server("--engine", "mock", "--mock-kv-cells", "4000", "--mock-step-ms", "1")
    yield server
    server.stop()


@pytest.mark.parametrize("path, body, field", [
    ("/v1/chat/completions", {"messages": MESSAGES, "logprobs": True}, "logprobs"),
    ("/v1/chat/completions", {"messages": MESSAGES, "logprobs": True, "stream": True}, "logprobs"),
    ("/v1/completions", {"prompt": "a", "logprobs": 1}, "logprobs"),
    ("/v1/completions", {"prompt": "a", "logprobs": 1, "echo": True, "max_tokens": 0}, "logprobs"),
    ("/v1/completions", {"prompt": "a", "n": 1, "best_of": 2}, "best_of"),
    ("/generate", {"text": "a", "return_logprob": True}, "return_logprob"),
    ("/generate", {"text": "a", "return_logprob": True, "stream": True}, "return_logprob"),
    ("/v1/score", {"query": "a", "items": ["b"], "label_token_ids": [1]}, None),
])
def test_log_probabilities_are_refused_with_the_field_named(simulated, path, body, field):
    answer = requests.post(simulated.url + path, json=body, timeout=60)
    assert answer.status_code == 400, answer.text
    assert "log-probabilities" in answer.json()["error"]["message"]
    assert field is None or answer.json()["error"]["param"] == field


def test_a_scheduler_call_for_log_probabilities_is_refused_too(simulated):
    client = Client(f"127.0.0.1:{simulated.port}")
    sampling = {"temperature": 1, "top_p": 1, "top_k": -1, "repetition_penalty": 1, "n": 1}
    with pytest.raises(grpc.RpcError) as refused:
        list(client.scheduler.Generate(tokenized={"input_ids": [5, 6]}, sampling_params=sampling, return_logprob=True))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT and fields_at_fault(refused.value)[0] == ["return_logprob"]


def test_a_request_without_them_is_answered(simulated):
    answer = requests.post(simulated.url + "/v1/chat/completions", json={"messages": MESSAGES, "max_tokens": 2}, timeout=60)
    assert answer.status_code == 200 and answer.json()["usage"]["completion_tokens"] == 2
