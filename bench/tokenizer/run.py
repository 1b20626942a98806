"""Encode speed: Portico beside Hugging Face's tokenizers, tiktoken, gigatoken, fastokens, iree-tokenizer and tokie.

One thread, CPU time; prompts of 1, 20 and 200 KB; cold (no prompt comes twice) and warm (one prompt again and again). Every
tokenizer is a process of its own; all measure one cell before the next cell begins. A peer counts as exact in a cell
if its ids of all prompts equal those of `tokenizers`. No process takes new pages for what it returns: they were had before.
"offsets": the speed with offsets, cold and warm, as a part of that without, both into lists that are used again; "whole":
the same with all that an Encoding has (tokens, words, masks too). "batch": one thread and two on many prompts, wall time.
A Python module `portico` in the bench's venv is measured too: "python" with ids as a list, "numpy" with an array.
    ./dev bench tokenizer [--quick] [--families gpt2 ...] [--kinds english ...] [--sizes 1 20 200] [--out FILE.json]
Tokenizers: --tokenizers FOLDER of folders with tokenizer.json or .json.gz. Texts: texts.py; --corpora FOLDER.
"""
import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys
import venv

import texts

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHARED = pathlib.Path(os.environ.get("PORTICO_SHARED", ROOT.parent / "shared"))
BUILD = pathlib.Path(os.environ.get("PORTICO_BUILD", ROOT / "build/release"))
WORK = ROOT / "build/bench/tokenizer"
PACKAGES = {"hf": "tokenizers==0.23.3", "tiktoken": "tiktoken==0.14.0", "gigatoken": "gigatoken==0.10.0",
            "fastokens": "fastokens==0.3.5", "iree": "iree-tokenizer==0.3.0", "tokie": "tokie==0.1.4"}
FAMILIES = "gpt2 llama-3.2 qwen3 deepseek-v3 gpt-oss llama-2 gemma-3 t5-small bert-base-uncased".split()
MODES = {"portico": "ids", "reused": "reused", "offsets": "offsets", "whole": "whole"}  # encode_worker.cc
OURS = [*MODES, "python", "numpy"]
KEEP_PAGES = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TOP_PAD_": str(64 << 20)}
QUICK = "llama-3.2 qwen3".split()
SIZES = {1: 100, 20: 12, 200: 2}  # KB: prompts a pass
BATCH = 150  # prompts of 20 KB for one thread and two, besides those of the cells
PASSES = 3
CORE = "1"
ANSWER_SECONDS = 60


class Worker:
    """A process that measures cells. `error` says why it cannot."""

    def __init__(self, name, command):
        self.name, self.error = name, None
        single = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "PORTICO_THREADS": "1"}
        self.log = open(WORK / f"{name}.log", "w+")
        self.process = subprocess.Popen(["taskset", "-c", CORE, *map(str, command)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, env={**os.environ, **single, **KEEP_PAGES})
        self.answer()

    def answer(self):
        """The next line that it prints; of what a library prints by itself, only JSON counts."""
        import select
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_SECONDS)
            line = self.process.stdout.readline() if ready else ""
            if not line:
                self.log.seek(0)
                last = self.log.read().strip().splitlines()[-1:]
                self.error = "too slow" if not ready else (last or ["ended"])[0][:100]
                self.stop()
                return None
            if line.startswith("{"):
                return json.loads(line)

    def measure(self, prompts):
        """Its figures and its ids, or None."""
        if self.error:
            return None
        ids = WORK / f"{self.name}.ids"
        self.process.stdin.write(f"{prompts} {ids}\n")
        self.process.stdin.flush()
        figures = self.answer()
        if figures is not None:
            figures["ids"] = ids.read_bytes()
        return figures

    def stop(self):
        self.process.kill()
        self.process.wait()


def make_venv():
    """The Python of a venv that has the peers."""
    python = WORK / "venv/bin/python"
    if not python.exists():
        print("installing the peers into", WORK / "venv", flush=True)
        venv.create(WORK / "venv", with_pip=True)
    stamp = WORK / "venv/packages.txt"
    wanted = "\n".join(PACKAGES.values())
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES.values()], check=True)
        stamp.write_text(wanted)
    return python


def has_portico(python):
    return subprocess.run([python, "-c", "import portico; portico.Tokenizer"], capture_output=True).returncode == 0


def unpack(folder, family):
    """A plain tokenizer.json of the family."""
    plain, packed = folder / family / "tokenizer.json", folder / family / "tokenizer.json.gz"
    if plain.exists():
        return plain
    if not packed.exists():
        return None
    path = WORK / "tokenizers" / family / "tokenizer.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def write_prompts(name, prompts):
    path = WORK / f"{name}.prompts"
    path.write_bytes(" ".join(map(str, [PASSES, *map(len, prompts)])).encode() + b"\n" + b"".join(prompts))
    return path


def write_cells(options):
    """{(kind, size): (file, bytes a prompt)}, and {kind: file} for batches; no text lies in two of them."""
    cells, batches = {}, {}
    for kind, data in texts.build(options.corpora, options.kinds).items():
        at = 0
        for size in options.sizes:
            prompts, at = texts.prompts(data, size * 1000, PASSES * SIZES[size], at)
            cells[kind, size] = write_prompts(f"{kind}-{size}", prompts), sum(map(len, prompts)) / len(prompts)
        batches[kind] = write_prompts(f"{kind}-batch", texts.prompts(data, 20_000, BATCH, at)[0])
    return cells, batches


def measure_family(family, path, python, peers, cells):
    """Rows of one family: a dict for each cell and tokenizer."""
    workers = [Worker(name, [BUILD / "bench/tokenizer_worker", mode, path]) for name, mode in MODES.items()]
    workers += [Worker(peer, [python, HERE / "peer_worker.py", peer, path]) for peer in peers]
    rows = []
    for (kind, size), (prompts, length) in cells.items():
        reference = None
        found = {}
        for worker in sorted(workers, key=lambda w: w.name != "hf"):
            figures = worker.measure(prompts)
            if figures is None:
                continue
            ids = figures.pop("ids")
            reference = reference or ids
            found[worker.name] = dict(family=family, kind=kind, size=size, peer=worker.name, bytes=length,
                                      exact=ids == reference, **figures)
        rows += found.values()
        print_cell(found)
    for worker in workers:
        if worker.error:
            print(f"    {worker.name}: {worker.error}")
        worker.stop()
    return rows


def measure_batches(family, path, cells, batches):
    """One thread and two on a batch of each kind of text: wall time, on two cores that should have nothing else to do.

    The batch is what the longer cells have and as much again, 5 MB in all: each thread has to meet the common words once,
    and of a small batch that is a tenth. "bare" is what two processors of this machine give for arithmetic alone."""
    for kind, more in batches.items():
        files = [file for (k, size), (file, _) in cells.items() if k == kind and size > 1] + [more]
        done = subprocess.run([BUILD / "bench/tokenizer_batch_worker", path, *files], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{family:17} {kind:8} batch: {done.stderr.strip()}")
            continue
        t = json.loads(done.stdout)
        print(f"{family:17} {kind:8} batch  " + " ".join(
            f"{state}: one thread {t['one_' + state] / 1000:.1f} ms, two {t['two_' + state] / 1000:.1f} ms, "
            f"{t['one_' + state] / t['two_' + state]:.2f} x" for state in ("cold", "warm")) +
            f" bare {t['one_bare'] / t['two_bare']:.2f} x", flush=True)


def rate(row, state):
    return row["bytes"] / row[state]


def best_peer(found, state):
    """The fastest peer of a cell that gave the ids of `tokenizers` for all its prompts."""
    exact = [r for name, r in found.items() if name not in OURS and r["exact"]]
    return max(exact, key=lambda r: rate(r, state), default=None)


def print_cell(found):
    ours = found.get("portico")
    if ours is None:
        return
    line = f"{ours['family']:17} {ours['kind']:8} {ours['size']:3} KB "
    for state in ("cold", "warm"):
        best = best_peer(found, state)
        ratio = f"{rate(ours, state) / rate(best, state):5.2f} x {best['peer']:9}" if best else " " * 17
        line += f" {state} {ours[state]:8.1f} us {rate(ours, state):6.1f} MB/s {ratio}"
    reused, places, whole = (found[name] for name in MODES if name != "portico")
    offsets = (f" offsets {reused['cold'] / places['cold']:4.2f} {reused['warm'] / places['warm']:4.2f}"
               f" whole {reused['cold'] / whole['cold']:4.2f} {reused['warm'] / whole['warm']:4.2f}")
    wrong = "" if all(found[name]["exact"] for name in MODES) else "  NOT EXACT"
    others = " ".join(f"{name} {rate(r, 'cold'):.0f}/{rate(r, 'warm'):.0f}{'' if r['exact'] else '(x)'}"
                      for name, r in found.items() if name not in MODES)
    print(line + offsets + wrong + " | " + others, flush=True)


def summary(rows):
    cells = {}
    for row in rows:
        cells.setdefault((row["family"], row["kind"], row["size"]), {})[row["peer"]] = row
    ratios = []
    for key, found in cells.items():
        for state in ("cold", "warm"):
            best = best_peer(found, state)
            if "portico" in found and best:
                ratios.append((rate(found["portico"], state) / rate(best, state), key, state))
    ahead = sum(r >= 1 for r, *_ in ratios)
    below = sorted(r for r in ratios if r[0] < 0.8)
    wrong = sorted({r["family"] for r in rows if r["peer"] in MODES and not r["exact"]})
    print(f"\n{ahead} of {len(ratios)} cells ahead of the best exact peer (target: two thirds), "
          f"{len(below)} below 0.8 of it (target: none); not exact: {', '.join(wrong) or 'none'}")
    for ratio, (family, kind, size), state in below:
        print(f"    {ratio:4.2f} {family} {kind} {size} KB {state}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two families, 20 KB")
    parser.add_argument("--families", nargs="*")
    parser.add_argument("--kinds", nargs="*", default=list(texts.KINDS), choices=texts.KINDS)
    parser.add_argument("--sizes", nargs="*", type=int, choices=list(SIZES))
    parser.add_argument("--peers", nargs="*", default=list(PACKAGES), choices=list(PACKAGES))
    parser.add_argument("--tokenizers", type=pathlib.Path, default=SHARED / "data/tokenizers")
    parser.add_argument("--corpora", type=pathlib.Path, default=SHARED / "data/corpus")
    parser.add_argument("--out", type=pathlib.Path, help="all figures as JSON")
    options = parser.parse_args()
    options.families = options.families or (QUICK if options.quick else FAMILIES)
    options.sizes = options.sizes or ([20] if options.quick else list(SIZES))
    if not options.tokenizers.is_dir():
        raise SystemExit(f"there is no folder of tokenizers at {options.tokenizers}: give one with --tokenizers")
    WORK.mkdir(parents=True, exist_ok=True)
    if "PORTICO_BUILD" not in os.environ:
        subprocess.run(["ninja", "-C", BUILD, "tokenizer_worker", "tokenizer_batch_worker"], check=True, stdout=subprocess.DEVNULL)
    python = make_venv()
    peers = ["hf", *(p for p in options.peers if p != "hf"), *(OURS[1:] if has_portico(python) else [])]
    cells, batches = write_cells(options)
    rows = []
    for family in options.families:
        path = unpack(options.tokenizers, family)
        if path is None:
            print(f"{family}: no tokenizer.json in {options.tokenizers / family}")
            continue
        rows += measure_family(family, path, python, peers, cells)
        measure_batches(family, path, cells, batches)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1))
    summary(rows)


if __name__ == "__main__":
    sys.exit(main())
