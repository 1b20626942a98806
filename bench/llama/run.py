"""Portico beside llama-server of the same llama.cpp: decode, prompts, long and short chats, on one random model file.

The servers load the same GGUF, in turn, with the same threads and as many KV cells; rounds alternate; medians and the
ratio to the better of llama-server's two cache layouts are printed.
    ./dev bench llama [--shape qwen3-0.6b] [--kinds bf16 q8_0] [--rounds 3] [--rows decode prompts chats long-chats cached]
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build/bench/llama"
CHATS = 16
LONG_CHATS = 8
ROWS = ["decode", "prompts", "chats", "long-chats", "cached"]
CELLS = 1280 * CHATS  # of both; the peer without --kv-unified gives each chat 1,280
AFTER_CACHED = "1,024 after 14,000 / in empty cache"  # of a server's own speeds: 1 if others' cells cost nothing


def environment():
    """Re-runs this script inside an environment that has gguf and numpy."""
    python = WORK / "env/bin/python"
    if pathlib.Path(sys.prefix) == WORK / "env":
        return
    if not python.exists():
        print("[bench] making build/bench/llama/env (gguf, numpy)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", WORK / "env"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "gguf==0.19.0", "numpy==2.2.6"], check=True)
    os.execv(python, [str(python), *sys.argv])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, name, command):
        self.name, self.port = name, free_port()
        self.log = open(WORK / f"{name}.log", "w")
        self.process = subprocess.Popen([*map(str, command), "--port", str(self.port)], stdout=self.log,
                                        stderr=subprocess.STDOUT)
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit(f"{name} ended; see {self.log.name}")
            time.sleep(0.2)
        sys.exit(f"{name} is not ready; see {self.log.name}")

    def stream(self, path, body):
        """Seconds from the request to each event that carries a token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1800)
        start = time.perf_counter()
        connection.request("POST", path, json.dumps({**body, "stream": True}), {"content-type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            sys.exit(f"{self.name}: {answer.status} {answer.read()[:500]}")
        times = []
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            choice = event["choices"][0] if event.get("choices") else None
            if choice is None or choice.get("delta", {}).get("role") and not choice["delta"].get("content"):
                continue
            if choice.get("finish_reason") and not choice.get("text") and not choice.get("delta", {}).get("content"):
                continue
            times.append(time.perf_counter() - start)
        return times

    def complete(self, prompt, tokens):
        return self.stream("/v1/completions", {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True,
                                               "temperature": 0})

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ids(rng, count):
    return [rng.randrange(300, 2000) for _ in range(count)]


def decode(server, rng, tokens):
    times = server.complete(ids(rng, 32), tokens)
    return (tokens - 1) / (times[-1] - times[0])


def prefill(server, rng, tokens):
    return tokens / server.complete(ids(rng, tokens), 2)[0]


def fill_cache(server, rng, tokens):
    """Prompts that nobody asks for again."""
    for _ in range(tokens // 1000):
        server.complete(ids(rng, 1000), 1)


def together(work):
    """Runs each of `work` in a thread of its own; their results, and the seconds that all took."""
    results = [None] * len(work)

    def one(i):
        results[i] = work[i]()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(work))]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results, time.perf_counter() - start


def long_chats(server, rng, tokens):
    """8 different prompts of 1,000 tokens, begun at once."""
    prompts = [ids(rng, 1000) for _ in range(LONG_CHATS)]
    streams, seconds = together([lambda p=p: server.complete(p, tokens) for p in prompts])
    last_first = max(times[0] for times in streams)
    # The gaps of running streams while prompts are still being computed: each is one step or more.
    gaps = [b - a for times in streams for a, b in zip(times, times[1:]) if a < last_first]
    return {"8 long chats s": seconds, "8 long chats last TTFT s": last_first,
            "8 long chats longest gap s": max(gaps, default=0),
            "8 long chats longest gap, steps": max(gaps, default=0) / (statistics.median(gaps) if gaps else 1)}


def chats(server, rng, tokens):
    """Total tokens/s and the worst-but-one-percent time to first token of 16 chats, two turns each."""
    system = " ".join(rng.choice(["the", "count", "of", "days", "and", "names", "is", "seven", "plus", "five"])
                      for _ in range(300))

    def chat(number):
        firsts = []
        messages = [{"role": "system", "content": system}]
        for turn in range(2):
            messages.append({"role": "user", "content": f"Question {number} of turn {turn}: what is {number} plus {turn}?"})
            firsts.append(server.stream("/v1/chat/completions", {"messages": messages, "max_tokens": tokens,
                                                                 "ignore_eos": True, "temperature": 0})[0])
            messages.append({"role": "assistant", "content": "It is a number."})
        return firsts

    firsts, seconds = together([lambda i=i: chat(i) for i in range(CHATS)])
    firsts = sorted(sum(firsts, []))
    return {"16 chats tok/s": CHATS * 2 * tokens / seconds,
            "16 chats TTFT p99 s": firsts[max(0, int(len(firsts) * 0.99) - 1)]}


def measure(server, seed, options):
    rng = random.Random(seed)
    decode(server, rng, 8)  # warm-up
    row = {}
    if "decode" in options.rows:
        row["decode tok/s"] = decode(server, rng, options.decode_tokens)
    if "prompts" in options.rows or "cached" in options.rows:
        row["512 new tokens, tok/s"] = prefill(server, rng, 512)
        row["1,024 new tokens, tok/s"] = prefill(server, rng, 1024)
    if "chats" in options.rows:
        row.update(chats(server, rng, options.chat_tokens))
    if "long-chats" in options.rows:
        row.update(long_chats(server, rng, options.answer_tokens))
    if "cached" in options.rows:
        fill_cache(server, rng, 14000)
        row["1,024 after 14,000 cached, tok/s"] = prefill(server, rng, 1024)
        row[AFTER_CACHED] = row["1,024 after 14,000 cached, tok/s"] / row["1,024 new tokens, tok/s"]
    return row


def report(title, figures):
    """The ratio is to whichever of the peer's settings is the better one in that row."""
    names = list(figures)
    print(f"\n{title}")
    print("%-36s" % "" + "".join("%22s" % name for name in names) + "%8s" % "ratio")
    for key in figures["portico"]:
        medians = [statistics.median(figures[name][key]) for name in names]
        best = max(medians[1:]) if "tok/s" in key or key == AFTER_CACHED else min(medians[1:])
        print("%-36s" % key + "".join("%22.2f" % m for m in medians) +
              ("%8.2f" % (medians[0] / best) if best else "%8s" % "-"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="qwen3-0.6b")
    parser.add_argument("--kinds", nargs="*", default=["bf16", "q8_0"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=ROWS)
    parser.add_argument("--decode-tokens", type=int, default=64)
    parser.add_argument("--chat-tokens", type=int, default=24)
    parser.add_argument("--answer-tokens", type=int, default=96, help="of each of the 8 long chats")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    environment()
    import make_model

    subprocess.run([ROOT / "scripts/llama.sh", ROOT / "build/deps/llama-server", "plain", "--server"], check=True)
    peer = ROOT / "build/deps/llama-server/bin/llama-server"
    for kind in options.kinds:
        model = WORK / f"{options.shape}-{kind}.gguf"
        if not model.exists():
            print(f"[bench] writing {model.name}", flush=True)
            make_model.write(model, options.shape, kind, ROOT / "models/demo/tokenizer.json")
        commands = {
            "portico": [ROOT / "build/release/portico", "serve", "--model-path", model, "--threads", options.threads,
                        "--max-total-tokens", CELLS, "--max-running-requests", CHATS],
            "llama-server": [peer, "-m", model, "-t", options.threads, "-c", CELLS, "-np", CHATS, "--no-webui"],
            "llama-server unified": [peer, "-m", model, "-t", options.threads, "-c", CELLS, "-np", CHATS,
                                     "--kv-unified", "--no-webui"],
        }
        figures = {name: {} for name in commands}
        for round_number in range(options.rounds):
            for name, command in commands.items():
                print(f"[bench] round {round_number + 1}, {name}", flush=True)
                server = Server(name.replace(" ", "-"), command)
                row = measure(server, round_number, options)
                print("        " + ", ".join(f"{key}: {value:.4g}" for key, value in row.items()), flush=True)
                for key, value in row.items():
                    figures[name].setdefault(key, []).append(value)
                server.stop()
        report(f"{options.shape} {kind}, {options.threads} threads, median of {options.rounds} rounds", figures)


if __name__ == "__main__":
    main()
