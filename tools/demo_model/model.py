"""A small transformer of Qwen3's shape: RMS norms, rotary positions, grouped-query attention with
normalised queries and keys, gated MLP, tied embeddings."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn


@dataclass
class Config:
    vocab_size: int = 3072
    hidden_size: int = 256
    intermediate_size: int = 512
    num_hidden_layers: int = 5
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048


class Attention(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.heads, self.groups, self.dim = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, self.groups * self.dim, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, self.groups * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, c.hidden_size, bias=False)
        self.q_norm = nn.RMSNorm(self.dim, eps=c.rms_norm_eps)
        self.k_norm = nn.RMSNorm(self.dim, eps=c.rms_norm_eps)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(b, t, self.heads, self.dim)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(b, t, self.groups, self.dim)).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.groups, self.dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        repeat = self.heads // self.groups
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Mlp(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), Mlp(c)
        self.input_layernorm = nn.RMSNorm(c.hidden_size, eps=c.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(c.hidden_size, eps=c.rms_norm_eps)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    """The parameters bear Hugging Face's names without the leading "model."."""

    def __init__(self, c: Config):
        super().__init__()
        self.config = c
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.norm = nn.RMSNorm(c.hidden_size, eps=c.rms_norm_eps)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                writes = "o_proj" in name or "down_proj" in name
                nn.init.normal_(p, std=0.03 / ((2 * c.num_hidden_layers) ** 0.5 if writes else 1))

    def hidden(self, tokens, positions=None):
        """tokens [b, t] and positions [b, t] (0, 1, ... when absent) to hidden states [b, t, hidden]."""
        if positions is None:
            positions = torch.arange(tokens.shape[1])[None]
        half = self.config.head_dim // 2
        frequencies = self.config.rope_theta ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = positions[:, None, :, None].float() * frequencies
        cos, sin = angles.cos(), angles.sin()
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)

    def logits(self, hidden):
        return hidden @ self.embed_tokens.weight.T


def export(model: Model, out: Path, end: int, pad: int):
    """Writes weights in bf16, config.json and generation_config.json."""
    c = model.config
    tensors = {"model." + n: p.detach().to(torch.bfloat16).contiguous() for n,
               p in model.named_parameters()}
    save_file(tensors, str(out / "model.safetensors"), {"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    config = {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": end, "head_dim": c.head_dim, "hidden_act": "silu",
        "hidden_size": c.hidden_size,
        "initializer_range": 0.02, "intermediate_size": c.intermediate_size,
        "max_position_embeddings": c.max_position_embeddings,
        "max_window_layers": c.num_hidden_layers,
        "model_type": "qwen3", "num_attention_heads": c.num_attention_heads,
        "num_hidden_layers": c.num_hidden_layers,
        "num_key_value_heads": c.num_key_value_heads, "pad_token_id": pad,
        "rms_norm_eps": c.rms_norm_eps,
        "rope_scaling": None, "rope_theta": c.rope_theta, "sliding_window": None,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16", "use_cache": True, "use_sliding_window": False,
        "vocab_size": c.vocab_size}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"do_sample": True, "eos_token_id": [end, pad], "pad_token_id": pad,
                  "temperature": 0.2, "top_k": 20, "top_p": 0.9}
    (out / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def load(folder: Path) -> Model:
    """Reads an exported folder; computes in f32 with the bf16 weights."""
    config = json.loads((folder / "config.json").read_text())
    model = Model(Config(**{k: config[k] for k in Config.__dataclass_fields__}))
    tensors = load_file(str(folder / "model.safetensors"))
    model.load_state_dict({n.removeprefix("model."): t.float() for n, t in tensors.items()})
    return model.eval()
