"""GGUF files whose attention is more than a plain decoder's: sliding windows and soft caps against what transformers
computed, compressed keys, masks that the model's own graph computes, and tables of positions."""
import json
import math
import random

import numpy as np
import pytest
import requests

from gguf_file import byte_level_tokenizer, write_gguf
from test_reference_models import log_softmax

TOLERANCE = 4e-3  # libllama's GELU is a table of float16
GEMMA = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
         "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def read_safetensors(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, tensor in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        first, last = (begin + offset for offset in tensor["data_offsets"])
        kind = {"F32": "<f4", "I32": "<i4", "BF16": "<u2"}[tensor["dtype"]]
        values = np.frombuffer(data[first:last], dtype=kind).reshape(tensor["shape"])
        if tensor["dtype"] == "BF16":
            values = (values.astype("<u4") << 16).view("<f4")
        tensors[name] = values
    return tensors


def tokenizer(tokens):
    made = byte_level_tokenizer(["<|end|>"])
    missing = tokens - len(made["tokenizer.ggml.tokens"])
    made["tokenizer.ggml.tokens"] += [f"<|{i}|>" for i in range(missing)]
    made["tokenizer.ggml.token_type"] += [3] * missing
    return made


def write_gemma(path, folder):
    """The GGUF file of a gemma2 or gemma3 folder, in float32."""
    config = json.loads((folder / "config.json").read_text())
    family = config["model_type"].removesuffix("_text")
    tensors = {}
    for name, values in read_safetensors(folder / "model.safetensors").items():
        name = name.removeprefix("model.").removesuffix(".weight")
        if name.startswith("layers."):
            _, layer, part = name.split(".", 2)
            name = f"blk.{layer}.{GEMMA[part]}"
        name = {"embed_tokens": "token_embd", "norm": "output_norm"}.get(name, name)
        tensors[name + ".weight"] = values + 1 if name.endswith("norm") else values
    metadata = {"context_length": config["max_position_embeddings"], "embedding_length": config["hidden_size"],
                "block_count": config["num_hidden_layers"], "feed_forward_length": config["intermediate_size"],
                "attention.head_count": config["num_attention_heads"],
                "attention.head_count_kv": config["num_key_value_heads"], "attention.key_length": config["head_dim"],
                "attention.value_length": config["head_dim"], "attention.sliding_window": config["sliding_window"],
                "attention.layer_norm_rms_epsilon": config["rms_norm_eps"]}
    if family == "gemma2":
        metadata |= {"attn_logit_softcapping": config["attn_logit_softcapping"],
                     "final_logit_softcapping": config["final_logit_softcapping"]}
    else:
        metadata |= {"rope.freq_base": 1e6, "rope.freq_base_swa": 1e4}
    write_gguf(path, {"general.architecture": family, **{f"{family}.{key}": value for key, value in metadata.items()},
                      **tokenizer(config["vocab_size"])}, tensors)


def write_deepseek(path, sparse):
    """A model of two small layers with compressed keys; `sparse`: of all earlier tokens each layer looks at so many,
    which the model chooses, or None for a model that always looks at all. The other weights are the same."""
    family = "deepseek2" if sparse is None else "deepseek32"
    rng = np.random.default_rng(3)
    hidden, rank, rope, head, heads, inner, layers = 64, 32, 16, 16, 4, 96, 2
    index_heads, index_size = 4, 64
    vocabulary = tokenizer(260)
    shapes = {"token_embd": (260, hidden), "output_norm": (hidden,)}
    indexer = {}
    for i in range(layers):
        shapes |= {f"blk.{i}.{name}": shape for name, shape in {
            "attn_norm": (hidden,), "attn_q_a_norm": (rank,), "attn_kv_a_norm": (rank,), "attn_q_a": (rank, hidden),
            "attn_q_b": (heads * (head + rope), rank), "attn_kv_a_mqa": (rank + rope, hidden),
            "attn_k_b": (heads, rank, head), "attn_v_b": (heads, head, rank), "attn_output": (hidden, heads * head),
            "ffn_norm": (hidden,), "ffn_gate": (inner, hidden), "ffn_up": (inner, hidden),
            "ffn_down": (hidden, inner)}.items()}
        indexer |= {f"blk.{i}.indexer.{name}": shape for name, shape in {
            "k_norm.weight": (index_size,), "k_norm.bias": (index_size,), "proj.weight": (index_heads, hidden),
            "attn_k.weight": (index_size, hidden), "attn_q_b.weight": (index_heads * index_size, rank)}.items()}
    tensors = {name + ".weight": rng.normal(1 if len(shape) == 1 else 0, 0.2, shape) for name, shape in shapes.items()}
    metadata = {"context_length": 512, "vocab_size": 260, "embedding_length": hidden, "block_count": layers,
                "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": 1,
                "attention.key_length": rank + rope, "attention.value_length": rank,
                "attention.key_length_mla": head + rope, "attention.value_length_mla": head,
                "attention.q_lora_rank": rank, "attention.kv_lora_rank": rank, "rope.dimension_count": rope,
                "rope.freq_base": 1e4, "attention.layer_norm_rms_epsilon": 1e-6, "leading_dense_block_count": layers,
                "expert_feed_forward_length": 32, "expert_shared_count": 1, "expert_count": 2, "expert_used_count": 1,
                "expert_gating_func": 2}
    if sparse is not None:
        tensors |= {name: rng.normal(1 if name.endswith("norm.weight") else 0, 0.2, shape)
                    for name, shape in indexer.items()}
        metadata |= {"attention.indexer.head_count": index_heads, "attention.indexer.key_length": index_size,
                     "attention.indexer.top_k": sparse}
    write_gguf(path, {"general.architecture": family, **{f"{family}.{key}": value for key, value in metadata.items()},
                      **vocabulary}, tensors)


def write_gpt2(path, context):
    """A model of two small layers that has a place for `context` tokens and no more."""
    rng = np.random.default_rng(4)
    hidden, inner, layers = 64, 96, 2
    vocabulary = tokenizer(260)
    shapes = {"token_embd.weight": (260, hidden), "position_embd.weight": (context, hidden)}
    shapes |= {f"output_norm.{part}": (hidden,) for part in ("weight", "bias")}
    for i in range(layers):
        for name, rows, columns in (("attn_norm", hidden, None), ("attn_qkv", 3 * hidden, hidden),
                                    ("attn_output", hidden, hidden), ("ffn_norm", hidden, None),
                                    ("ffn_up", inner, hidden), ("ffn_down", hidden, inner)):
            shapes[f"blk.{i}.{name}.weight"] = (rows, columns) if columns else (rows,)
            shapes[f"blk.{i}.{name}.bias"] = (rows,)
    tensors = {name: rng.normal(1 if name.endswith("norm.weight") else 0, 0.2, shape) for name, shape in shapes.items()}
    metadata = {"context_length": context, "embedding_length": hidden, "block_count": layers,
                "feed_forward_length": inner, "attention.head_count": 4, "attention.layer_norm_epsilon": 1e-5}
    write_gguf(path, {"general.architecture": "gpt2", **{f"gpt2.{key}": value for key, value in metadata.items()},
                      **vocabulary}, tensors)


def ask(server, ids, tokens):
    """Log-probabilities of the prompt's tokens behind the first, the answer's tokens and theirs."""
    body = {"input_ids": ids, "return_logprob": True, "logprob_start_len": 0,
            "sampling_params": {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}}
    answer = requests.post(server.url + "/generate", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    answer = answer.json()
    meta = answer["meta_info"]
    return ([value for value, *_ in meta["input_token_logprobs"][1:]], answer["output_ids"],
            [value for value, *_ in meta["output_token_logprobs"]])


def fill_cache(server, seed):
    """What others leave behind: prompts of which nobody asks again."""
    dice = random.Random(seed)
    for _ in range(4):
        ask(server, [dice.randrange(250) for _ in range(80)], 4)


@pytest.mark.parametrize("family", ["gemma2", "gemma3"])
def test_windows_and_soft_caps_equal_the_reference(family, shared, start, tmp_path):
    folder = shared / "models" / family
    path = tmp_path / f"{family}.gguf"
    write_gemma(path, folder)
    expected = read_safetensors(folder / "expected.safetensors")
    server = start("--model-path", path, "--max-total-tokens", 2048)
    assert "prefix cache off (the model has sliding windows)" in server.output()
    for when in ("in an empty cache", "after others"):
        for k in range(5):
            ids = expected[f"case{k}.input_ids"].tolist()
            greedy = expected[f"case{k}.greedy"].tolist()
            want = log_softmax(expected[f"case{k}.logits"].astype(np.float64))
            prompt, answer, drawn = ask(server, ids, max(len(greedy), 1))
            if len(want) == len(ids) > 1:
                assert prompt == pytest.approx(want[np.arange(len(ids) - 1), ids[1:]].tolist(), abs=TOLERANCE), when
            assert drawn[0] == pytest.approx(want[-1].max(), abs=TOLERANCE), when
            assert answer[:len(greedy)] == greedy, when
        fill_cache(server, 1)


def test_an_answer_of_a_model_that_computes_its_masks_does_not_change(start, tmp_path):
    """deepseek32's masks were read before its graph had computed them: answers depended on what the memory held. One
    that may look at more tokens than there are gives deepseek2's answers."""
    dice = random.Random(1)
    ids = [dice.randrange(250) for _ in range(60)]
    servers = {}
    for name, sparse in (("plain", None), ("all", 400), ("few", 8)):
        path = tmp_path / f"{name}.gguf"
        write_deepseek(path, sparse)
        servers[name] = start("--model-path", path, "--threads", 1)
    prompt, answer, drawn = ask(servers["plain"], ids, 8)
    for seed in range(3):
        for name in ("plain", "all"):
            again = ask(servers[name], ids, 8)
            assert again[1] == answer, name
            assert again[0] == pytest.approx(prompt, abs=1e-4), name
            assert again[2] == pytest.approx(drawn, abs=1e-4), name
            fill_cache(servers[name], seed)
    few = ask(servers["few"], ids, 8)[0]
    assert all(math.isfinite(value) for value in few)
    assert few != pytest.approx(prompt, abs=1e-2)


@pytest.mark.parametrize("sparse", [None, 400])
def test_answers_of_compressed_keys_are_the_same_among_others(sparse, start, tmp_path):
    path = tmp_path / "model.gguf"
    write_deepseek(path, sparse)
    server = start("--model-path", path, "--threads", 1, "--max-total-tokens", 256, "--chunked-prefill-size", 32)
    dice = random.Random(2)
    prompts = [[dice.randrange(250) for _ in range(dice.randrange(3, 90))] for _ in range(12)]
    params = {"max_new_tokens": 8, "temperature": 0, "ignore_eos": True}
    alone = [ask(server, prompt, 8)[1] for prompt in prompts]
    together = requests.post(server.url + "/generate", json={"input_ids": prompts, "sampling_params": params},
                             timeout=120)
    assert [answer["output_ids"] for answer in together.json()] == alone


def test_a_prompt_that_fills_the_context_is_asked_for_twice(start, tmp_path):
    """Of the second, only the last token is computed. The token that fills up its step had no place in the model's table
    of positions: libllama ended the process."""
    path = tmp_path / "gpt2.gguf"
    write_gpt2(path, 40)
    server = start("--model-path", path, "--threads", 1)
    dice = random.Random(5)
    ids = [dice.randrange(250) for _ in range(40)]
    body = {"input_ids": ids, "sampling_params": {"max_new_tokens": 0, "temperature": 0}}
    for cached in (0, 39, 39):
        answer = requests.post(server.url + "/generate", json=body, timeout=120)
        assert answer.status_code == 200, answer.text
        assert answer.json()["meta_info"]["cached_tokens"] == cached


def test_an_embedding_that_fills_the_context_is_the_same_among_others(start, tmp_path):
    """A batch takes 256 tokens, so the text's last token may be computed alone, and no position follows it."""
    path = tmp_path / "gpt2.gguf"
    write_gpt2(path, 257)
    server = start("--model-path", path, "--is-embedding", "--threads", 1)
    dice = random.Random(6)
    texts = [[dice.randrange(250) for _ in range(size)] for size in (257, 1, 30, 257, 2, 90)]

    def encode(ids):
        answer = requests.post(server.url + "/encode", json={"input_ids": ids}, timeout=120)
        assert answer.status_code == 200, answer.text
        return [one["embedding"] for one in answer.json()]

    alone = [encode([text])[0] for text in texts]
    assert len(set(map(tuple, alone))) == len(texts)
    assert encode(texts) == alone
