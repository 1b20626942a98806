"""Writes GGUF files for tests."""
import struct

import numpy as np

ALIGNMENT = 32
U32, I32, F32, BOOL, TEXT, LIST = 4, 5, 6, 7, 8, 9


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def kind_of(value):
    return {bool: BOOL, int: U32, float: F32, str: TEXT, list: LIST}[type(value)]


def packed(value):
    kind = kind_of(value)
    if kind == LIST:
        inner = TEXT if isinstance(value[0], str) else I32
        items = b"".join(text(item) if inner == TEXT else struct.pack("<i", item) for item in value)
        return struct.pack("<IQ", inner, len(value)) + items
    if kind == TEXT:
        return text(value)
    return struct.pack({BOOL: "<?", U32: "<I", F32: "<f"}[kind], value)


def write_gguf(path, metadata, tensors):
    """Tensors: a float32 array for each name. Lists hold texts or 32-bit integers."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += text(key) + struct.pack("<I", kind_of(value)) + packed(value)
    data = b""
    for name, array in tensors.items():
        shape = array.shape[::-1]
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += array.astype("<f4").tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + data)


def byte_level_tokenizer(special):
    """A vocabulary of the 256 bytes and `special`, in Qwen's spelling."""
    printable = {b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174}
    others = iter(range(256, 512))
    spelled = [chr(b) if b in printable else chr(next(others)) for b in range(256)]
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2",
            "tokenizer.ggml.tokens": spelled + ["he", *special],
            "tokenizer.ggml.token_type": [1] * 257 + [3] * len(special), "tokenizer.ggml.merges": ["h e"],
            "tokenizer.ggml.eos_token_id": 257, "tokenizer.ggml.add_bos_token": False}


def random_qwen3(path, metadata, heads=None, special=("<|im_end|>", "<|im_start|>"), seed=1):
    """A model of two small layers that knows bytes. `heads`: the rows of tensors that stand on its hidden states."""
    random = np.random.default_rng(seed)
    size, inner, head = 64, 96, 16
    tokenizer = byte_level_tokenizer(list(special))
    shapes = {"token_embd.weight": (len(tokenizer["tokenizer.ggml.tokens"]), size), "output_norm.weight": (size,)}
    for i in range(2):
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in {
            "attn_norm": (size,), "attn_q": (4 * head, size), "attn_k": (2 * head, size), "attn_v": (2 * head, size),
            "attn_output": (size, 4 * head), "attn_q_norm": (head,), "attn_k_norm": (head,), "ffn_norm": (size,),
            "ffn_gate": (inner, size), "ffn_up": (inner, size), "ffn_down": (size, inner)}.items()}
    shapes |= {name: (rows, size) for name, rows in (heads or {}).items()}
    tensors = {name: random.normal(1 if len(shape) == 1 else 0, 0.2, shape) for name, shape in shapes.items()}
    write_gguf(path, {
        "general.architecture": "qwen3", "qwen3.context_length": 512, "qwen3.embedding_length": size,
        "qwen3.block_count": 2, "qwen3.feed_forward_length": inner, "qwen3.attention.head_count": 4,
        "qwen3.attention.head_count_kv": 2, "qwen3.attention.key_length": head, "qwen3.attention.value_length": head,
        "qwen3.attention.layer_norm_rms_epsilon": 1e-6, "qwen3.rope.freq_base": 1e6, **tokenizer, **metadata}, tensors)
