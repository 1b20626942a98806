"""Trains the byte-level BPE. It splits text as Qwen's tokenizer does, so each digit is a token."""

import json
import random
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        trainers)

from conversations import HERE, conversation

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|think|>"]
MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]  # shown in text, hence not special
VOCABULARY = 3072


def train_tokenizer(seed: int, conversations: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - len(SPECIAL) - len(MARKS),
                                  show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    rng = random.Random(seed)
    texts = []
    for _ in range(conversations):
        text = conversation(rng, 600)
        for mark in SPECIAL + MARKS:
            text = text.replace(mark, "\n")
        texts.append(text)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in MARKS])
    assert tokenizer.get_vocab_size() == VOCABULARY, tokenizer.get_vocab_size()
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, out: Path):
    tokenizer.save(str(out / "tokenizer.json"))
    template = (HERE / "chat_template.jinja").read_text()
    (out / "chat_template.jinja").write_text(template)
    added = {tokenizer.token_to_id(t): t for t in SPECIAL + MARKS}
    config = {
        "added_tokens_decoder": {str(i): {"content": t, "lstrip": False, "normalized": False,
                                          "rstrip": False,
                                          "single_word": False, "special": t in SPECIAL} for i,
                                 t in added.items()},
        "add_bos_token": False, "add_prefix_space": False, "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>", "unk_token": None, "clean_up_tokenization_spaces": False,
        "errors": "replace", "model_max_length": 2048, "split_special_tokens": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "tool_call_parser": "hermes", "reasoning_parser": "qwen3"}
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
