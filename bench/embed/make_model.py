"""Writes all-MiniLM-L6-v2 as one GGUF that llama.cpp and Portico both read, its tokenizer included."""
import json
import struct

import gguf
import numpy as np

LAYER = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
         "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
         "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
EMBEDDINGS = {"embeddings.word_embeddings.weight": "token_embd.weight",
              "embeddings.position_embeddings.weight": "position_embd.weight",
              "embeddings.token_type_embeddings.weight": "token_types.weight",
              "embeddings.LayerNorm.weight": "token_embd_norm.weight",
              "embeddings.LayerNorm.bias": "token_embd_norm.bias"}
KINDS = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16,
         "q8_0": gguf.GGMLQuantizationType.Q8_0}


def tensors(path):
    """(name, float32 values) of a safetensors file, but for integers."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
        data = np.memmap(path, np.uint8, "r", offset=8 + size)
    for name, entry in head.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            yield name, np.frombuffer(data[begin:end].tobytes(), np.float32).reshape(entry["shape"])


def gguf_name(name):
    if name in EMBEDDINGS:
        return EMBEDDINGS[name]
    if not name.startswith("encoder.layer."):
        return None  # the pooler, which sentence-transformers leaves out
    _, _, layer, rest = name.split(".", 3)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{LAYER[part]}.{kind}"


def add_tokenizer(writer, vocabulary):
    """WordPiece, in llama.cpp's spelling: a word's first piece has "▁" in front, the others nothing."""
    special = {token: i for i, token in enumerate(vocabulary) if token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}
    spelled = [token if token in special else token[2:] if token.startswith("##") else "▁" + token
               for token in vocabulary]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("jina-v2-en")
    writer.add_token_list(spelled)
    writer.add_token_types([gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL
                            for token in vocabulary])
    writer.add_token_type_count(2)
    writer.add_unk_token_id(special["[UNK]"])
    writer.add_sep_token_id(special["[SEP]"])
    writer.add_pad_token_id(special["[PAD]"])
    writer.add_mask_token_id(special["[MASK]"])
    writer.add_bos_token_id(special["[CLS]"])
    writer.add_eos_token_id(special["[SEP]"])


def write(folder, path, kind):
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(str(path), "bert")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    add_tokenizer(writer, (folder / "vocab.txt").read_text(encoding="utf-8").strip("\n").split("\n"))
    for name, values in tensors(folder / "model.safetensors"):
        target = gguf_name(name)
        if target is None:
            continue
        # As llama.cpp's own conversion: only the weights of the layers, and of words, are quantized.
        small = values.ndim == 1 or target.startswith(("position_embd", "token_types"))
        quant = KINDS["f32" if small else kind]
        writer.add_tensor(target, gguf.quants.quantize(values, quant), raw_dtype=quant)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
