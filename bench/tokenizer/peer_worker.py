"""Measures one Python tokenizer for bench/tokenizer/run.py: peer_worker.py PEER TOKENIZER.JSON. As encode_worker.cc."""
import array
import gc
import json
import statistics
import sys
import time

WARM_SECONDS = 0.03
TOGETHER_BYTES = 20_000
HEAP_BYTES = 24 << 20
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def hf(path):
    import tokenizers
    t = tokenizers.Tokenizer.from_file(path)
    t.no_padding()
    t.no_truncation()
    return lambda text: t.encode(text, add_special_tokens=False).ids


def byte_of_char():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in kept}
    table.update({chr(256 + n): b for n, b in enumerate(b for b in range(256) if b not in kept)})
    return table


def tiktoken(path):
    """The same vocabulary and pattern; only where one pattern and the order of ids say it all."""
    import tiktoken as package
    whole = json.load(open(path, encoding="utf-8"))
    steps = whole["pre_tokenizer"].get("pretokenizers", [whole["pre_tokenizer"]])
    patterns = [s["pattern"]["Regex"] for s in steps if s["type"] == "Split" and "Regex" in s["pattern"]]
    if not any(s["type"] == "ByteLevel" for s in steps) or len(patterns) > 1:
        raise ValueError("not byte-level BPE with one pattern")
    back = byte_of_char()
    added = {t["content"]: t["id"] for t in whole["added_tokens"]}
    ranks = {bytes(back[c] for c in token): i for token, i in whole["model"]["vocab"].items() if token not in added}
    encoding = package.Encoding("bench", pat_str=(patterns or [GPT2_PATTERN])[0], mergeable_ranks=ranks,
                                special_tokens=added)
    return lambda text: encoding.encode(text, allowed_special="all")


def gigatoken(path):
    import gigatoken as package
    return package.Tokenizer.from_json(open(path, encoding="utf-8").read()).encode


def fastokens(path):
    import fastokens as package
    t = package.Tokenizer.from_file(path)
    return lambda text: t.encode(text, add_special_tokens=False).ids


def iree(path):
    from iree.tokenizer import Tokenizer
    return Tokenizer.from_file(path).encode


def tokie(path):
    import tokie as package
    t = package.Tokenizer.from_json(path)
    t.no_padding()
    t.no_truncation()
    return lambda text: t.encode(text, add_special_tokens=False).ids


def python(path):
    import portico as package
    t = package.Tokenizer.from_file(path)
    return lambda text: t.encode(text, add_special_tokens=False).ids


def numpy(path):
    """Portico's module, ids as an array: as gigatoken returns them."""
    import portico as package
    t = package.Tokenizer.from_file(path)
    return lambda text: t.encode_ids(text, add_special_tokens=False, as_numpy=True)


def read_cell(path):
    with open(path, "rb") as file:
        passes, *lengths = map(int, file.readline().split())
        return passes, [file.read(length).decode() for length in lengths]


def measure(encode, prompts_path, ids_path):
    passes, prompts = read_cell(prompts_path)
    count = len(prompts) // passes
    gc.collect()
    gc.disable()
    ids, times = [], []
    begin = time.process_time()
    ids.append(encode(prompts[0]))
    first = time.process_time() - begin
    for p in range(passes):
        begin = time.process_time()
        for text in prompts[p * count + (p == 0):(p + 1) * count]:
            ids.append(encode(text))
        elapsed = time.process_time() - begin + (first if p == 0 else 0)
        times.append(elapsed / count)
    warm, stop = [], time.process_time() + WARM_SECONDS
    together = max(1, TOGETHER_BYTES // len(prompts[0].encode()))
    while len(warm) < 5 or time.process_time() < stop:
        begin = time.process_time()
        for _ in range(together):
            encode(prompts[0])
        warm.append((time.process_time() - begin) / together)
    gc.enable()
    with open(ids_path, "wb") as file:
        for one in ids:
            array.array("I", [len(one)]).tofile(file)
            array.array("I", [int(i) for i in one]).tofile(file)
    return {"cold": 1e6 * statistics.median(times), "warm": 1e6 * statistics.median(warm), "first": 1e6 * first}


def main():
    bytearray(b"\1") * HEAP_BYTES  # as TouchHeap of encode_worker.cc
    encode = globals()[sys.argv[1]](sys.argv[2])
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(encode, *line.split())), flush=True)


if __name__ == "__main__":
    main()
