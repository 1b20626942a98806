"""The texts of the tokenizer bench: six kinds, seeded, several megabytes each, so that no prompt comes twice.

English and code are what a Linux machine has under /usr: manual pages, documentation, sources. Chinese, Japanese,
Hindi and mixed text come from a folder of corpora (zh_prose.txt, ja_prose.txt, udhr_hin.txt …), continued by a chain
over three characters; without that folder, from characters of the script drawn by Zipf's law.
"""
import glob
import gzip
import pathlib
import random
import re
import sysconfig
import unicodedata

KINDS = ("english", "code", "chinese", "japanese", "hindi", "mixed")
BYTES = 5_500_000
ENGLISH_FILES = ("/usr/share/man/man*/*", "/usr/share/doc/**/README*", "/usr/share/doc/**/*.txt*", "/usr/share/perl/**/*.pod")
CODE_FILES = (sysconfig.get_paths()["stdlib"] + "/**/*.py", "/usr/include/**/*.h", "/usr/lib/python3/**/*.py")
CORPORA = {"english": ["en_prose.txt"], "chinese": ["zh_prose.txt", "udhr_cmn_hans.txt"],
           "japanese": ["ja_prose.txt", "udhr_jpn.txt"], "hindi": ["udhr_hin.txt", "udhr_mar.txt", "udhr_nep.txt"]}
OTHERS = ("udhr_arb.txt", "udhr_rus.txt", "udhr_kor.txt", "udhr_tha.txt")
EMOJI = [*range(0x1F300, 0x1F650), *range(0x1F680, 0x1F6D0), *range(0x1F900, 0x1F9FF)]


def read(path):
    """The file as text; "" for what is not."""
    try:
        with (gzip.open(path) if str(path).endswith(".gz") else open(path, "rb")) as file:
            return file.read().decode().replace("\r\n", "\n")
    except (OSError, EOFError, ValueError):
        return ""


def machine_files(patterns, rng):
    """Texts of files of this machine in a seeded order, enough of them."""
    paths = sorted({path for pattern in patterns for path in glob.glob(pattern, recursive=True)})
    rng.shuffle(paths)
    texts, size = [], 0
    for path in paths:
        text = read(path)[:60_000]
        if len(text) > 400 and "\0" not in text:
            texts.append(text)
            size += len(text)
        if size > 2 * BYTES:
            break
    return texts


def paragraphs(text):
    """Prose of a manual page or a document, its macros left out."""
    text = re.sub(r"(?m)^[.'].*$", "", text)
    text = re.sub(r"\\f[A-Z]|\\&|\\f\[.*?\]", "", text).replace("\\-", "-")
    return [p for p in re.split(r"\n\s*\n", text)
            if len(p) > 80 and sum(c.isalpha() or c == " " for c in p) > 0.8 * len(p)]


def units(text):
    """Characters, each with the marks that belong to it."""
    out = []
    for c in text:
        if out and (unicodedata.category(c)[0] == "M" or out[-1].endswith("\u094d")):
            out[-1] += c
        else:
            out.append(c)
    return out


def chain(source, size, rng, order=3):
    table = {}
    for i in range(len(source) - order):
        table.setdefault(tuple(source[i:i + order]), []).append(source[i + order])
    keys = sorted(table)
    out, state = [], rng.choice(keys)
    while size > 0:
        if state not in table or rng.random() < 0.02:
            state = rng.choice(keys)
            continue
        unit = rng.choice(table[state])
        out.append(unit)
        size -= len(unit.encode())
        state = state[1:] + (unit,)
    return "".join(out)


def zipf_text(kind, rng):
    """Sentences in the script of `kind` where there is no corpus of it."""
    blocks = {"chinese": (0x4E00, 0x6E00), "japanese": (0x3041, 0x3097), "hindi": (0x0915, 0x093A)}
    letters = [chr(c) for c in range(*blocks[kind])]
    rng.shuffle(letters)
    weights = [1 / (rank + 3) for rank in range(len(letters))]
    stop, join = {"hindi": ("।\n", " ")}.get(kind, ("。\n", ""))
    sentences = ("".join(join if join and rng.random() < 0.2 else c for c in rng.choices(letters, weights, k=40)) + stop
                 for _ in range(BYTES // 100))
    return "".join(sentences)


def corpus(folder, kind):
    return "\n".join(filter(None, (read(folder / name) for name in CORPORA[kind])))


def english(folder, rng):
    parts = re.split(r"\n\s*\n", corpus(folder, "english"))
    for text in machine_files(ENGLISH_FILES, rng):
        parts += paragraphs(text)
    rng.shuffle(parts)
    text = "\n\n".join(parts)
    if len(text) < BYTES:
        words = re.findall(r"\S+\s*", text)
        text += chain(words, BYTES - len(text), rng, order=2)
    return text


def from_corpus(folder, kind, rng):
    source = corpus(folder, kind)
    if not source:
        return zipf_text(kind, rng)
    text = source + chain(units(source), max(0, BYTES - len(source.encode())), rng)
    sentences = re.findall(r"[^。！？।\n]*[。！？।\n]+", text)
    rng.shuffle(sentences)
    return "".join(sentences)


def mixed(folder, rng):
    sources = [corpus(folder, kind) or "plain text " * 100 for kind in ("english", "japanese", "chinese", "hindi")]
    sources += filter(None, (read(folder / name) for name in OTHERS))
    out, size = [], 0
    while size < BYTES:
        source = rng.choice(sources)
        at = rng.randrange(max(1, len(source) - 60))
        emoji = "".join(chr(rng.choice(EMOJI)) * rng.choice((1, 1, 2)) for _ in range(rng.randint(1, 6)))
        part = source[at:at + rng.randint(8, 60)] + rng.choice(("", " ")) + emoji + rng.choice((" ", "\n", "!! "))
        out.append(part)
        size += len(part.encode())
    return "".join(out)


def build(folder, kinds, seed=1):
    """{kind: about BYTES of UTF-8}"""
    folder = pathlib.Path(folder)
    out = {}
    for kind in kinds:
        rng = random.Random(f"{seed} {kind}")
        if kind == "english":
            text = english(folder, rng)
        elif kind == "code":
            text = "\n".join(machine_files(CODE_FILES, rng))
        elif kind == "mixed":
            text = mixed(folder, rng)
        else:
            text = from_corpus(folder, kind, rng)
        out[kind] = text.encode()
    return out


def prompts(data, size, count, at):
    """`count` neighbouring prompts of about `size` bytes, whole characters, from byte `at` on; and where they end."""
    out = []
    for _ in range(count):
        while data[at] & 0xC0 == 0x80:
            at += 1
        end = at + size
        while data[end] & 0xC0 == 0x80:
            end += 1
        out.append(data[at:end])
        at = end
    return out, at
