"""The added tokens of generated folders, against transformers' AutoTokenizer: ids, texts, flags, and what a decode without
special tokens leaves out."""
import json
import os
import pathlib
import re
import shutil
import subprocess

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import pytest
from transformers import AutoTokenizer

from compare import Differences

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("PORTICO_BINARY", str(ROOT / "build/release/portico"))
FOLDERS = 25 if os.environ.get("PORTICO_CI") == "extended" else 10  # a class
NAMED = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
FLAGS = ["single_word", "lstrip", "rstrip", "normalized", "special"]
POOL = ["<a>", "<b>", "<c>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[UNK]", "[CLS]",
        "<bos>", "<eos>", "tool"]
# What tokenizer_config.json names as its class, the type of the model in config.json, and what the tokenizer is made of.
CLASSES = {
    "plain": ("PreTrainedTokenizerFast", None, "bytes"), "none": (None, None, "bytes"), "unknown": ("OwnTokenizer", None, "bytes"),
    "qwen2": ("Qwen2TokenizerFast", None, "bytes"), "qwen3 by its type": (None, "qwen3", "bytes"), "qwen2 misnamed": ("GPT2Tokenizer", "qwen2", "bytes"),
    "qwen3_5": ("Qwen3_5Tokenizer", None, "bytes"), "gpt2": ("GPT2Tokenizer", None, "bytes"), "codegen": ("CodeGenTokenizer", None, "bytes"),
    "neox": ("GPTNeoXTokenizerFast", None, "bytes"), "gemma": ("GemmaTokenizer", None, "bytes"), "cohere": ("CohereTokenizer", None, "bytes"),
    "roberta": ("RobertaTokenizer", None, "bytes"), "llama of bytes": ("LlamaTokenizerFast", None, "bytes"), "llama": ("LlamaTokenizer", "llama", "pieces"),
    "llama of mistral": ("LlamaTokenizer", "mistral", "pieces"), "code llama": ("CodeLlamaTokenizer", None, "pieces"), "t5": ("T5Tokenizer", None, "unigram"),
    "xlm-roberta": ("XLMRobertaTokenizer", None, "unigram"), "deberta": ("DebertaV2Tokenizer", None, "unigram")}
RAW = {"llama", "code llama"}  # whose classes normalize nothing: the flag says nothing then


def byte_letters():
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [b for b in range(256) if b not in kept]
    return {**{chr(b): b for b in kept}, **{chr(256 + i): b for i, b in enumerate(others)}}


def model_of(kind, known):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    bpe = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
           "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "merges": []}
    if kind == "unigram":
        texts = ["<unk>", "▁", *"abtol", *(text for text in known if text != "<unk>")]
        space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        return ({"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [[t, -float(i)] for i, t in enumerate(texts)]},
                texts, space, space)
    if kind == "bytes":
        texts = [*byte_letters(), *known]
        return bpe | {"vocab": {t: i for i, t in enumerate(texts)}}, texts, byte_level, byte_level
    texts = list(dict.fromkeys(["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", *"abtolh", *known]))
    decoder = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    return (bpe | {"vocab": {t: i for i, t in enumerate(texts)}, "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}, texts, None, decoder)


def token(dice, content, whole=True):
    odds = {"special": 0.5, "normalized": 0.5}
    return {"content": content} | {flag: dice.random() < odds.get(flag, 0.15) for flag in FLAGS if whole or dice.random() < 0.6}


def named(dice):
    content, odds = dice.choice(POOL), dice.random()
    if odds < 0.15:
        return None
    if odds < 0.4:
        return {"__type": "AddedToken", **token(dice, content, dice.random() < 0.5)}
    return token(dice, content) if odds < 0.43 else content


def settings_of(dice, class_name, added, next_id):
    settings = {} if class_name is None else {"tokenizer_class": class_name}
    settings |= {name: named(dice) for name in NAMED if dice.random() < 0.3}
    for name in ("image_token", "boi_token", "add_x_token"):
        if dice.random() < 0.1:
            settings[name] = dice.choice([dice.choice(POOL), "<img>", True, {"__type": "AddedToken", **token(dice, "<img2>")}])
    for name in ("additional_special_tokens", "extra_special_tokens"):
        odds = dice.random()
        if odds < 0.2:
            settings[name] = [t if dice.random() < 0.8 else {"__type": "AddedToken", **token(dice, t, False)}
                              for t in dice.sample([*POOL, "<x1>", "<x2>"], dice.randint(0, 4))]
        elif odds < 0.3:
            settings[name] = {n: dice.choice([*POOL, "<x3>"]) for n in dice.sample(["audio_token", "odd"], dice.randint(0, 2))}
    if dice.random() < 0.6:
        listed = [(t["id"], t["content"]) for t in added]
        if dice.random() < 0.3:
            listed = dice.sample(listed, dice.randint(0, len(listed)))
        listed += [(next_id + i, dice.choice([*POOL, "<n1>", "<n2>"])) for i in range(dice.choice([0, 0, 1, 2]))]
        settings["added_tokens_decoder"] = {str(number): token(dice, text, dice.random() < 0.9) for number, text in listed}
    return settings


def write_folder(dice, folder, class_name, model_type, kind):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model, texts, pre_tokenizer, decoder = model_of(kind, dice.sample(POOL, dice.randint(0, 6)))
    added, next_id = [], len(texts)
    for content in dice.sample(POOL, dice.randint(0, 6)):
        number = texts.index(content) if content in texts else next_id
        next_id += number == next_id
        added.append({"id": number, **token(dice, content)})
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": dice.choice(POOL)}
    files = {"tokenizer.json": {"version": "1.0", "truncation": None, "padding": padding if dice.random() < 0.15 else None, "added_tokens": added,
                                "normalizer": None, "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": decoder, "model": model},
             "tokenizer_config.json": settings_of(dice, class_name, added, next_id)}
    if dice.random() < 0.3:
        older = {name: dice.choice([dice.choice(POOL), token(dice, dice.choice(POOL))]) for name in NAMED if dice.random() < 0.3}
        if dice.random() < 0.3:
            older["additional_special_tokens"] = [dice.choice(POOL) for _ in range(dice.randint(0, 3))]
        if dice.random() < 0.15:
            older["extra_special_tokens"] = [dice.choice([dice.choice(POOL), {"content": dice.choice(POOL), "lstrip": True}]) for _ in range(2)]
        files["special_tokens_map.json"] = older
    if dice.random() < 0.3:
        files["added_tokens.json"] = {text: next_id + i for i, text in enumerate(dice.sample([*POOL, "<m1>", "<m2>"], dice.randint(0, 4)))}
    if model_type is not None:
        files["config.json"] = {"model_type": model_type}
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))


def run(folder, *words, requests=""):
    done = subprocess.run([BINARY, words[0], "--tokenizer-path", str(folder), "--added-tokens", "auto", *words[1:]], input=requests,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ours(folder):
    """The added tokens by id, with whether they are hidden; and why AutoTokenizer cannot load the folder, or None."""
    explained = run(folder, "tokenize", "--explain")
    tokens = {}
    for number, content, flags in re.findall(r'^added token (\d+) ("(?:[^"\\]|\\.)*")(?: \(([^)]*)\))? of ', explained, re.M):
        names = flags.replace("single word", "single_word").split(", ")
        tokens[int(number)] = (json.loads(content), *(flag in names for flag in FLAGS))
    lines = "".join(json.dumps({"id": number, "ids": [number], "skip_special_tokens": True}) + "\n" for number in tokens)
    shown = {answer["id"]: answer["text"] for answer in map(json.loads, run(folder, "detokenize", "--jsonl", requests=lines).splitlines())}
    refused = re.search(r"AutoTokenizer cannot load this folder: (.*)", explained)
    return tokens, {number for number in tokens if shown[number] == ""}, refused and refused[1]


def theirs(folder):
    try:
        backend = AutoTokenizer.from_pretrained(str(folder))._tokenizer
    except Exception as error:
        return None, None, f"{type(error).__name__}: {error}"
    tokens = {number: (t.content, *(getattr(t, flag) for flag in FLAGS)) for number, t in backend.get_added_tokens_decoder().items()}
    return tokens, {n for n in tokens if backend.decode([n], skip_special_tokens=True) == ""}, None


@pytest.mark.parametrize("name", CLASSES)
def test_added_tokens_are_those_of_auto_tokenizer(seeded, tmp_path, name):
    differences = Differences()
    for number in range(FOLDERS):
        folder = tmp_path / str(number)
        write_folder(seeded, folder, *CLASSES[name])
        tokens, hidden, refused = ours(folder)
        expected, expected_hidden, error = theirs(folder)
        show = {p.name: p.read_text()[-1500:] for p in folder.iterdir()}
        if expected is None:
            if refused is None:
                differences.note(f"it is loaded; reference: {error}", show)
            continue
        if name in RAW:
            tokens, expected = ({n: t[:4] + t[5:] for n, t in side.items()} for side in (tokens, expected))
        if refused is not None or tokens != expected:
            wrong = {n: (expected.get(n), tokens.get(n)) for n in {*expected, *tokens} if expected.get(n) != tokens.get(n)}
            differences.note(f"refused: {refused}; (reference, portico) by id: {wrong}", show)
        elif hidden != expected_hidden:
            differences.note(f"hidden: reference {expected_hidden}, portico {hidden}", show)
    differences.check()
