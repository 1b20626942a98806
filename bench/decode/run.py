"""Decode speed: Portico beside Hugging Face's tokenizers, streams (one id a call) and whole lists.

Nanoseconds of CPU time a token, medians; texts of 20 KB of each kind. Portico runs in C++, tokenizers through its Python
module, the only way to its DecodeStream: some 100 ns a call are Python's. The two take turns. "differs": the texts are
not those of tokenizers.
    ./dev bench decode [--families gpt2 ...] [--kinds english ...] [--rounds 3]
Tokenizers and texts: as ./dev bench tokenizer.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tokenizer"))
import run as encode_bench
import texts

WORK = encode_bench.ROOT / "build/bench/decode"
BYTES, TEXTS, PASSES = 20_000, 3, 5


def peer(tokenizer_path, texts_path, ids_path, out_path):
    """In the venv's Python: writes the ids, then the decoded text, and prints the times."""
    import tokenizers
    from tokenizers.decoders import DecodeStream
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_path)
    lists = [tokenizer.encode(text, add_special_tokens=False).ids for text in json.loads(pathlib.Path(texts_path).read_text())]
    pathlib.Path(ids_path).write_text("".join(" ".join(map(str, ids)) + "\n" for ids in lists))

    def whole():
        return "".join(tokenizer.decode(ids, skip_special_tokens=False) for ids in lists)

    def stream():
        for ids in lists:
            decoder = DecodeStream(skip_special_tokens=False)
            for i in ids:
                decoder.step(tokenizer, i)

    def nanoseconds(call):
        times = []
        for _ in range(PASSES):
            begin = time.process_time_ns()
            call()
            times.append(time.process_time_ns() - begin)
        return statistics.median(times) / sum(map(len, lists))

    pathlib.Path(out_path).write_bytes(whole().encode())
    print(json.dumps({"stream": nanoseconds(stream), "whole": nanoseconds(whole)}))


def answer(command):
    return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)


def measure(python, path, data, rounds):
    """{"ours": {"stream": ns, "whole": ns}, "hf": ..., "same": whether the texts are}"""
    prompts, _ = texts.prompts(data, BYTES, TEXTS, 0)
    files = {name: WORK / name for name in ("texts.json", "ids", "hf.txt", "ours.txt")}
    files["texts.json"].write_text(json.dumps([prompt.decode() for prompt in prompts]))
    found = {"ours": [], "hf": []}
    for _ in range(rounds):
        found["hf"].append(answer([python, __file__, "--peer", path, files["texts.json"], files["ids"], files["hf.txt"]]))
        found["ours"].append(answer([encode_bench.BUILD / "bench/decode_worker", path, files["ids"], files["ours.txt"]]))
    row = {who: {kind: statistics.median(one[kind] for one in runs) for kind in ("stream", "whole")} for who, runs in found.items()}
    row["same"] = files["ours.txt"].read_bytes() == files["hf.txt"].read_bytes() * 2
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=encode_bench.FAMILIES)
    parser.add_argument("--kinds", nargs="+", default=texts.KINDS, choices=texts.KINDS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokenizers", type=pathlib.Path, default=encode_bench.SHARED / "data/tokenizers")
    parser.add_argument("--corpora", type=pathlib.Path, default=encode_bench.SHARED / "data/corpus")
    options = parser.parse_args()
    subprocess.run([encode_bench.ROOT / "dev", "build", "release", "decode_worker"], check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    encode_bench.WORK.mkdir(parents=True, exist_ok=True)
    python = encode_bench.make_venv()
    rows = []
    corpora = texts.build(options.corpora, options.kinds)
    for family in options.families:
        path = encode_bench.unpack(options.tokenizers, family)
        if path is None:
            print(f"{family}: no tokenizer.json in {options.tokenizers / family}")
            continue
        for kind, data in corpora.items():
            row = measure(python, path, data, options.rounds)
            rows.append(row)
            parts = [f"{what} {row['ours'][what]:6.1f} ns, tokenizers {row['hf'][what]:7.1f}, {row['hf'][what] / row['ours'][what]:6.1f} x"
                     for what in ("stream", "whole")]
            print(f"{family:17s} {kind:8s}  {'   '.join(parts)}{'' if row['same'] else '  differs'}", flush=True)
    for what, target in (("stream", 100), ("whole", 15)):
        ours = sorted(row["ours"][what] for row in rows)
        if ours:
            print(f"{what}: {ours[0]:.1f} to {ours[-1]:.1f} ns a token, median {statistics.median(ours):.1f}; "
                  f"{sum(value > target for value in ours)} of {len(ours)} above the target of {target}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        sys.exit(peer(*sys.argv[2:]))
    sys.exit(main())
