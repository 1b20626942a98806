"""Tiny models of every imported family against what transformers computed: log-probabilities and greedy tokens."""
import json
import struct

import numpy as np
import pytest
import requests

FAMILIES = ["llama-gqa", "llama-mha-bias", "llama-rope-linear", "llama-rope-llama3-tied", "llama-rope-yarn", "qwen2",
            "qwen3", "mistral-window"]
TOLERANCE = 1e-3


def read_safetensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    types = {"F32": np.float32, "I32": np.int32, "I64": np.int64}
    return {name: np.frombuffer(data[8 + length:][t["data_offsets"][0]:t["data_offsets"][1]],
                                dtype=types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def complete(server, **body):
    answer = requests.post(server.url + "/v1/completions", json=body, timeout=120)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("family", FAMILIES)
def test_float32_equals_the_reference_through_the_api(family, shared, start):
    folder = shared / "models" / family
    expected = read_safetensors(folder / "expected.safetensors")
    server = start("--model-path", folder, "--dtype", "float32")
    context = requests.get(server.url + "/get_model_info", timeout=60).json()["max_model_len"]
    checked = 0
    for k in range(len([name for name in expected if name.endswith(".input_ids")])):
        ids = expected[f"case{k}.input_ids"].tolist()
        status, answer = complete(server, prompt=ids, max_tokens=0, echo=True, logprobs=5)
        if len(ids) > context:
            assert status == 400 and str(context) in answer["error"]["message"]
            continue
        assert status == 200, answer
        logprobs = answer["choices"][0]["logprobs"]
        logits = expected[f"case{k}.logits"]
        if logits.shape[0] == len(ids) and len(ids) > 1:
            want = log_softmax(logits.astype(np.float64))
            want = want[np.arange(len(ids) - 1), ids[1:]]
            got = np.array(logprobs["token_logprobs"][1:])
            assert np.abs(got - want).max() < TOLERANCE
            checked += 1
        greedy = expected[f"case{k}.greedy"].tolist()[:max(0, context - len(ids))]
        if not greedy:
            continue
        status, answer = complete(server, prompt=ids, max_tokens=len(greedy), temperature=0, ignore_eos=True,
                                  return_token_ids=True)
        assert status == 200, answer
        assert answer["choices"][0]["token_ids"] == greedy
    assert checked >= 2


def test_a_sliding_window_caps_the_context_and_says_so(shared, start):
    server = start("--model-path", shared / "models/mistral-window")
    assert requests.get(server.url + "/get_model_info", timeout=60).json()["max_model_len"] == 48
    assert "window" in server.output()
