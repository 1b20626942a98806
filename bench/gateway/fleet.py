#!/usr/bin/env python3
"""A fleet of simulated engines behind a gateway: what each policy makes of its caches, and what clients wait for.

    pip install aiohttp smg sglang-router        # the peers may be left out
    bench/gateway/fleet.py --binary build/release/portico [--smg BIN] [--router PYTHON] [--run portico/cost,smg/cache_aware]

Eight processes `portico serve --engine mock --mock-kv-cells N` have the llama engine's scheduler and prefix cache and steps of
8 ms + 0.1 ms a prompt token that is not cached + 0.06 ms a sequence. All gateways get the same requests at the same times,
in each of --rounds rounds other ones; what is printed are medians of the rounds.
Hit rate: prompt tokens that the workers found cached. TTFT: from when a request was due to its first token at the client.
Imbalance: the most prompt tokens that one worker has computed, over the mean.
"""
import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

try:
    import aiohttp
except ImportError:
    sys.exit("fleet.py needs aiohttp: pip install aiohttp")

PORTICO_POLICIES = ["cost", "cache_aware", "prefix_hash", "bucket", "least_load", "power_of_two", "round_robin", "random"]
TRAFFICS = ["shared", "turns", "skewed", "random"]
WORDS = [f"{a}{b}{c}" for a in ("ba", "de", "fi", "go", "lu", "my", "na", "po") for b in ("l", "n", "r", "s", "t")
         for c in ("a", "e", "i", "o", "u")]


class Texts:
    """Words of about 2.5 tokens each with the demo model's tokenizer; `--words` scales all lengths."""

    def __init__(self, seed, scale):
        self.random, self.scale = random.Random(seed), scale

    def words(self, low, high=None):
        count = int(self.random.uniform(low, high or low) * self.scale)
        return " ".join(self.random.choice(WORDS) for _ in range(max(count, 1)))


class Request:
    def __init__(self, due, messages, tokens, follow=None):
        self.due, self.messages, self.tokens, self.follow = due, messages, tokens, follow


def user(text):
    return {"role": "user", "content": text}


def prefixed(texts, seconds, rate, count, skew):
    """Prompts that begin with one of `count` long texts."""
    prefixes = [texts.words(750, 1750) for _ in range(count)]
    weights = [1 / (i + 1) ** skew for i in range(count)]
    due = 0.0
    while (due := due + texts.random.expovariate(rate)) < seconds:
        prefix = texts.random.choices(prefixes, weights)[0]
        yield Request(due, [{"role": "system", "content": prefix}, user(texts.words(50, 250))],
                      texts.random.randint(10, 40))


def turns(texts, seconds, rate, system_words):
    """Conversations of six turns, each of which says again all that was said."""
    system = [{"role": "system", "content": texts.words(system_words)}] if system_words else []
    due = 0.0
    while (due := due + texts.random.expovariate(rate / 6)) < seconds:
        questions = [texts.words(100, 350) for _ in range(6)]
        pauses = [texts.random.expovariate(1 / 2.5) for _ in range(6)]

        def follow(request, answer, number=1, questions=questions, pauses=pauses):
            if number == 6:
                return None
            messages = [*request.messages, {"role": "assistant", "content": answer}, user(questions[number])]
            again = lambda one, text: follow(one, text, number + 1)  # noqa: E731
            return Request(request.due + pauses[number], messages, request.tokens, again)

        yield Request(due, [*system, user(questions[0])], texts.random.randint(10, 40), follow)


def alone(texts, seconds, rate):
    due = 0.0
    while (due := due + texts.random.expovariate(rate)) < seconds:
        yield Request(due, [user(texts.words(min(6000, 300 * texts.random.lognormvariate(0, 0.9))))],
                      texts.random.randint(10, 40))


def traffic(name, a, seed):
    texts = Texts(seed, a.words)
    return list({"shared": lambda: prefixed(texts, a.seconds, a.rate, 24, 0),
                 "skewed": lambda: prefixed(texts, a.seconds, a.rate, 64, 1.4),
                 "turns": lambda: turns(texts, a.seconds, a.rate, a.system_words),
                 "random": lambda: alone(texts, a.seconds, a.rate)}[name]())


def get(url, timeout=5):
    with urllib.request.urlopen(url, timeout=timeout) as reply:
        return reply.read().decode()


def wait_for(what, timeout=60):
    deadline = time.time() + timeout
    while True:
        with contextlib.suppress(OSError, ValueError):
            if what():
                return
        if time.time() > deadline:
            sys.exit("a process has not become ready")
        time.sleep(0.05)


class Workers:
    def __init__(self, a, cells):
        self.ports = [a.port + 1 + i for i in range(a.workers)]
        self.processes = [subprocess.Popen(
            [a.binary, "serve", "--engine", "mock", "--mock-kv-cells", str(cells), "--port", str(port), "--shards", "1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for port in self.ports]
        for port in self.ports:
            wait_for(lambda port=port: get(f"http://127.0.0.1:{port}/health") is not None)

    def urls(self):
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def counts(self):
        """Of each worker: prompt tokens, and those that were cached."""
        counts = []
        for url in self.urls():
            text = get(url + "/metrics")
            counts.append([sum(float(line.split()[-1]) for line in text.splitlines() if re.match(name + r"[{ ]", line))
                           for name in ("portico_prompt_tokens_total", "portico_cached_prompt_tokens_total")])
        return counts

    def flush(self):
        for url in self.urls():
            request = urllib.request.Request(url + "/flush_cache", method="POST")
            urllib.request.urlopen(request, timeout=10).read()

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


def gateway_command(name, policy, urls, a):
    port, prometheus = str(a.port), str(a.port + 90)
    common = ["--host", "127.0.0.1", "--port", port, "--worker-urls", *urls, "--policy", policy, "--prometheus-port", prometheus]
    if name == "portico":
        return [a.binary, "route", *common, "--load-monitor-interval", "1"]
    if name == "smg":
        return [a.smg, "launch", *common, "--log-level", "warn"]
    return [a.router, "-m", "sglang_router.launch_router", *common, "--log-level", "warn"]


def answers(port):
    """Whether the gateway gets an answer from a worker."""
    body = json.dumps({"model": "demo", "messages": [user("hello")], "max_tokens": 1}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as reply:
        return reply.status == 200


class Result:
    def __init__(self):
        self.first, self.failed = [], 0


async def ask(session, url, request, started, result):
    body = {"model": "demo", "messages": request.messages, "max_tokens": request.tokens, "stream": True, "temperature": 0,
            "stream_options": {"include_usage": True}}
    text, first, buffer = [], None, b""
    try:
        async with session.post(url, json=body) as reply:
            if reply.status != 200:
                result.failed += 1
                return None
            async for piece in reply.content.iter_any():
                if first is None and b'"content":"' in piece.replace(b'"content":""', b""):
                    first = time.monotonic() - started - request.due
                if request.follow:
                    buffer += piece
    except (aiohttp.ClientError, asyncio.TimeoutError):
        result.failed += 1
        return None
    if first is None:
        result.failed += 1
        return None
    result.first.append(first)
    if not request.follow:
        return None
    for line in buffer.split(b"\n"):
        if line.startswith(b"data: {"):
            choices = json.loads(line[6:])["choices"]
            text.append((choices[0]["delta"].get("content") or "") if choices else "")
    following = request.follow(request, "".join(text))
    if following:
        # The next turn is said a pause after this answer has come.
        following.due += time.monotonic() - started - request.due
    return following


async def drive(a, requests):
    result, started, tasks = Result(), time.monotonic() + 0.2, set()
    url = f"http://127.0.0.1:{a.port}/v1/chat/completions"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:

        async def run(request):
            while request:
                await asyncio.sleep(max(0.0, started + request.due - time.monotonic()))
                request = await ask(session, url, request, started, result)

        for request in requests:
            await asyncio.sleep(max(0.0, started + request.due - time.monotonic() - 0.01))
            task = asyncio.create_task(run(request))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        while tasks:
            await asyncio.wait(tasks)
    return result


def measure(name, policy, kind, workers, a, seed):
    workers.flush()
    gateway = subprocess.Popen(gateway_command(name, policy, workers.urls(), a), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(lambda: answers(a.port))
        workers.flush()
        time.sleep(1)
        before = workers.counts()
        result = asyncio.run(drive(a, traffic(kind, a, seed)))
        after = workers.counts()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(gateway.pid, signal.SIGKILL)
        gateway.wait()
    prompts = [y[0] - x[0] for x, y in zip(before, after, strict=True)]
    cached = [y[1] - x[1] for x, y in zip(before, after, strict=True)]
    computed = [p - c for p, c in zip(prompts, cached, strict=True)]
    first = sorted(result.first) or [float("nan")]
    return {"gateway": name, "policy": policy, "traffic": kind, "seed": seed, "requests": len(result.first), "failed": result.failed,
            "hit": sum(cached) / max(sum(prompts), 1), "p50": first[len(first) // 2] * 1e3,
            "p99": first[min(len(first) - 1, int(len(first) * 0.99))] * 1e3,
            "imbalance": max(computed) * len(computed) / max(sum(computed), 1)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", default=str(pathlib.Path(__file__).parents[2] / "build/release/portico"))
    p.add_argument("--smg", help="the program smg")
    p.add_argument("--router", help="a python that has sglang_router")
    p.add_argument("--run", help="comma list of GATEWAY/POLICY: portico, smg, router")
    p.add_argument("--traffic", default=",".join(TRAFFICS))
    p.add_argument("--workers", type=int, default=8)
    p.add_argument("--cells", type=int, default=24000, help="KV cells of each worker")
    p.add_argument("--turns-cells", type=int, default=15000, help="with `turns`; 15000 are half of what the conversations have in all")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--rate", type=float, default=20, help="requests a second")
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--words", type=float, default=1, help="scales the lengths of prompts")
    p.add_argument("--system-words", type=int, default=200, help="of the system prompt that all conversations of `turns` share")
    p.add_argument("--port", type=int, default=23500, help="the gateway's; workers have those behind it")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json", help="a file for the rows")
    a = p.parse_args()
    runs = a.run.split(",") if a.run else [f"portico/{policy}" for policy in PORTICO_POLICIES]
    if not a.run and a.smg:
        runs += ["smg/cache_aware"]
    if not a.run and a.router:
        runs += ["router/cache_aware"]
    rows = []
    try:
        for kind in a.traffic.split(","):
            workers = Workers(a, a.turns_cells if kind == "turns" else a.cells)
            try:
                results = {run: [] for run in runs}
                for seed in range(a.seed, a.seed + a.rounds):
                    for run in runs:
                        results[run].append(measure(*run.split("/"), kind, workers, a, seed))
            finally:
                workers.stop()
            print(f"\n{kind}: {'gateway/policy':24} {'hit':>6} {'p50 ms':>8} {'p99 ms':>8} {'imbalance':>10} {'requests':>9} failed",
                  flush=True)
            for run, of_run in results.items():
                rows += of_run
                row = {key: statistics.median(r[key] for r in of_run) for key in ("hit", "p50", "p99", "imbalance")}
                print(f"{'':{len(kind) + 1}} {run:24} {row['hit']:6.3f} {row['p50']:8.0f} {row['p99']:8.0f} {row['imbalance']:10.2f} "
                      f"{sum(r['requests'] for r in of_run):9} {sum(r['failed'] for r in of_run):6}", flush=True)
    finally:
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
