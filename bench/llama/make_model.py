"""Writes a GGUF with random weights in the shape of Qwen3-0.6B (or smaller): the same file for both servers."""
import json
import pathlib

import gguf
import numpy as np

SHAPES = {
    "qwen3-0.6b": dict(hidden=1024, layers=28, heads=16, kv_heads=8, head_dim=128, inner=3072, vocab=151936),
    "qwen3-0.6b-4": dict(hidden=1024, layers=4, heads=16, kv_heads=8, head_dim=128, inner=3072, vocab=151936),
    "qwen3-tiny": dict(hidden=256, layers=4, heads=4, kv_heads=2, head_dim=64, inner=768, vocab=8192),
}
CONTEXT = 8192


def add_tokenizer(writer, tokenizer_json, vocab):
    """The vocabulary of a byte-level tokenizer.json, filled up with words: every token shows as text."""
    data = json.loads(pathlib.Path(tokenizer_json).read_text(encoding="utf-8"))
    tokens = [f"Ġw{i}" for i in range(vocab)]
    types = [gguf.TokenType.NORMAL] * vocab
    for token, i in data["model"]["vocab"].items():
        tokens[i], types[i] = token, gguf.TokenType.NORMAL
    end = None
    for added in data["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
        if "end" in added["content"]:
            end = added["id"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(end if end is not None else 0)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
                             "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def write(path, shape, kind, tokenizer_json):
    s = SHAPES[shape]
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(str(path), "qwen3")
    writer.add_name(f"random {shape}")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(s["hidden"])
    writer.add_block_count(s["layers"])
    writer.add_feed_forward_length(s["inner"])
    writer.add_head_count(s["heads"])
    writer.add_head_count_kv(s["kv_heads"])
    writer.add_key_length(s["head_dim"])
    writer.add_value_length(s["head_dim"])
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    add_tokenizer(writer, tokenizer_json, s["vocab"])
    quant = {"bf16": gguf.GGMLQuantizationType.BF16, "q8_0": gguf.GGMLQuantizationType.Q8_0}[kind]

    def matrix(name, rows, columns):
        values = rng.standard_normal((rows, columns), dtype=np.float32) * 0.02
        writer.add_tensor(name, gguf.quants.quantize(values, quant), raw_dtype=quant)

    def ones(name, n):
        writer.add_tensor(name, np.ones(n, dtype=np.float32))

    matrix("token_embd.weight", s["vocab"], s["hidden"])
    ones("output_norm.weight", s["hidden"])
    for i in range(s["layers"]):
        p = f"blk.{i}."
        ones(p + "attn_norm.weight", s["hidden"])
        matrix(p + "attn_q.weight", s["heads"] * s["head_dim"], s["hidden"])
        matrix(p + "attn_k.weight", s["kv_heads"] * s["head_dim"], s["hidden"])
        matrix(p + "attn_v.weight", s["kv_heads"] * s["head_dim"], s["hidden"])
        matrix(p + "attn_output.weight", s["hidden"], s["heads"] * s["head_dim"])
        ones(p + "attn_q_norm.weight", s["head_dim"])
        ones(p + "attn_k_norm.weight", s["head_dim"])
        ones(p + "ffn_norm.weight", s["hidden"])
        matrix(p + "ffn_gate.weight", s["inner"], s["hidden"])
        matrix(p + "ffn_up.weight", s["inner"], s["hidden"])
        matrix(p + "ffn_down.weight", s["hidden"], s["inner"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=False)
    writer.close()
