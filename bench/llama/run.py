"""Portico beside llama-server of the same llama.cpp: decode, prefill and 16 chats, on one random model file.

Both servers load the same GGUF, in turn, with the same threads; rounds alternate; medians and the ratio are printed.
    ./dev bench llama [--shape qwen3-0.6b] [--kinds bf16 q8_0] [--rounds 3]
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
        """(seconds to the first token, seconds to the last, tokens)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        start = time.perf_counter()
        connection.request("POST", path, json.dumps({**body, "stream": True}), {"content-type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            sys.exit(f"{self.name}: {answer.status} {answer.read()[:500]}")
        first = last = None
        tokens = 0
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            choice = event["choices"][0] if event.get("choices") else None
            if choice is None or choice.get("delta", {}).get("role") and not choice["delta"].get("content"):
                continue
            if choice.get("finish_reason") and not choice.get("text") and not choice.get("delta", {}).get("content"):
                continue
            last = time.perf_counter() - start
            first = first if first is not None else last
            tokens += 1
        return first, last, tokens

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ids(rng, count):
    return [rng.randrange(300, 2000) for _ in range(count)]


def decode(server, rng, tokens):
    first, last, _ = server.stream("/v1/completions", {"prompt": ids(rng, 32), "max_tokens": tokens, "ignore_eos": True,
                                                       "temperature": 0})
    return (tokens - 1) / (last - first)


def prefill(server, rng, tokens):
    first, _, _ = server.stream("/v1/completions", {"prompt": ids(rng, tokens), "max_tokens": 2, "ignore_eos": True,
                                                    "temperature": 0})
    return tokens / first


def chats(server, rng, tokens):
    """Total tokens/s and the worst-but-one-percent time to first token of 16 chats, two turns each."""
    system = " ".join(rng.choice(["the", "count", "of", "days", "and", "names", "is", "seven", "plus", "five"])
                      for _ in range(300))
    firsts, lock = [], threading.Lock()

    def chat(number):
        messages = [{"role": "system", "content": system}]
        for turn in range(2):
            messages.append({"role": "user", "content": f"Question {number} of turn {turn}: what is {number} plus {turn}?"})
            first, _, _ = server.stream("/v1/chat/completions", {"messages": messages, "max_tokens": tokens,
                                                                 "ignore_eos": True, "temperature": 0})
            with lock:
                firsts.append(first)
            messages.append({"role": "assistant", "content": "It is a number."})

    threads = [threading.Thread(target=chat, args=(i,)) for i in range(CHATS)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    seconds = time.perf_counter() - start
    return CHATS * 2 * tokens / seconds, sorted(firsts)[max(0, int(len(firsts) * 0.99) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="qwen3-0.6b")
    parser.add_argument("--kinds", nargs="*", default=["bf16", "q8_0"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--decode-tokens", type=int, default=64)
    parser.add_argument("--prefill-tokens", type=int, default=512)
    parser.add_argument("--chat-tokens", type=int, default=24)
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
        context = 4096 * 4
        commands = {
            "portico": [ROOT / "build/release/portico", "serve", "--model-path", model, "--threads", options.threads,
                        "--max-total-tokens", context, "--max-running-requests", CHATS],
            "llama-server": [peer, "-m", model, "-t", options.threads, "-c", context, "-np", CHATS, "--kv-unified",
                             "--no-webui"],
        }
        figures = {name: {} for name in commands}
        for round_number in range(options.rounds):
            for name, command in commands.items():
                server = Server(name, command)
                rng = random.Random(round_number)
                decode(server, rng, 8)  # warm-up
                row = {"decode tok/s": decode(server, rng, options.decode_tokens),
                       "prefill tok/s": prefill(server, rng, options.prefill_tokens)}
                row["16 chats tok/s"], row["16 chats TTFT p99 s"] = chats(server, rng, options.chat_tokens)
                server.stop()
                for key, value in row.items():
                    figures[name].setdefault(key, []).append(value)
        print(f"\n{options.shape} {kind}, {options.threads} threads, median of {options.rounds} rounds")
        print("%-22s %12s %14s %8s" % ("", "portico", "llama-server", "ratio"))
        for key in figures["portico"]:
            ours = statistics.median(figures["portico"][key])
            theirs = statistics.median(figures["llama-server"][key])
            print("%-22s %12.2f %14.2f %8.2f" % (key, ours, theirs, ours / theirs), flush=True)


if __name__ == "__main__":
    main()
