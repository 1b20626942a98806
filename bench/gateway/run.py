#!/usr/bin/env python3
"""Gateways beside each other: CPU a request and a streamed chunk, latency, memory, time to ready.

    ./dev bench gateway [--smg BIN] [--router PYTHON] [--rounds 3] [--run portico/round_robin,smg/cache_aware,…]
    pip install smg==1.13.0 sglang-router==0.3.2      # the peers, each in an environment of its own; either may be left out

One gateway at a time on core 0; two workers and the load on core 1. Workers over HTTP replay recorded answers without
understanding requests; NAME-tokens has gRPC workers (`portico serve --engine mock`), where the gateway renders and tokenizes.
Each prompt has its own text of 2.5 KB. SLOW streams get a chunk a second; `--prompts N` sends N prompts more. Rounds alternate; medians are printed, and ratios to the cheaper peer of the same kind
and policy. `direct` is the load on a worker without a gateway: what it takes is no gateway's.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))
import bench_tools as bench

MODEL = bench.ROOT / "models/demo"
WORKERS = 2
STREAMS, ITL_MS = 256, 20
SLOW, SLOW_ITL_MS = 1000, 1000
PEERS = {
    "portico": "{binary} route --host 127.0.0.1 --port {port} --worker-urls {workers} --policy {policy}"
               " --prometheus-port {metrics} --log-level warn",
    "smg": "{smg} launch --host 127.0.0.1 --port {port} --worker-urls {workers} --policy {policy}"
           " --prometheus-port {metrics} --log-level warn",
    "router": "{router} -m sglang_router.launch_router --host 127.0.0.1 --port {port} --worker-urls {workers}"
              " --policy {policy} --prometheus-port {metrics} --log-level warn",
}
COLUMNS = [("us/request", "request"), ("us/chunk", "chunk"), ("p50 us", "p50"), ("p99 us", "p99"),
           ("idle RSS MB", "idle"), ("idle anonymous MB", "anonymous"), ("RSS MB after", "after"), ("KiB/slow stream", "slow"),
           ("RSS MB after the prompts", "prompts"), ("ready s", "ready"), ("requests/s", "rate")]


def children(pid):
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += children(int(child))
    return found


def cpu_seconds(pids):
    """Of all threads, by each process's own clock (clock_getcpuclockid), which counts nanoseconds."""
    return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in pids) / 1e9


def rss_mb(pids, field="VmRSS"):
    lines = [line for pid in pids for line in open(f"/proc/{pid}/status") if line.startswith(field)]
    return sum(int(line.split()[1]) for line in lines) / 1024


def answered(port, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status == 200 and bool(reply.read())
    except OSError:
        return False


class Gateway:
    def __init__(self, a, name, policy, urls, model):
        self.port = bench.free_port()
        command = PEERS[name].format(binary=bench.BUILD / "portico", smg=a.smg, router=a.router, port=self.port, policy=policy,
                                     workers=" ".join(urls), metrics=bench.free_port())
        if model:
            command += f" --model-path {model}"
        self.log = open(bench.WORK / f"gateway-{name}.log", "w")
        began = time.monotonic()
        self.process = subprocess.Popen(["taskset", "-c", str(bench.SERVER_CORE), *shlex.split(command)], stdout=self.log,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}).encode()
        while not answered(self.port, "/v1/chat/completions", body):
            if self.process.poll() is not None or time.monotonic() - began > 60:
                self.stop()
                sys.exit(f"{name} does not answer; see {self.log.name}")
            time.sleep(0.005)
        self.ready = time.monotonic() - began

    def pids(self):
        return children(self.process.pid)

    def cpu(self):
        return cpu_seconds(self.pids())

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def load(port, **flags):
    figures = bench.load(port, **flags)
    if figures["errors"]:
        sys.exit(f"{figures['errors']} errors in {figures['requests']} requests")
    return figures


class Direct:
    """No gateway: a worker's own port."""
    def __init__(self, port):
        self.port = port

    def pids(self):
        return []

    def cpu(self):
        return 0.0


def requests(gateway, a):
    """Figures of whole answers."""
    load(gateway.port, conns=8, secs=1, tokens=8, prompt_bytes=2500)
    before = gateway.cpu()
    figures = load(gateway.port, conns=32, secs=a.secs, tokens=8, prompt_bytes=2500)
    row = {"request": 1e6 * (gateway.cpu() - before) / figures["requests"], "rate": figures["requests"] / figures["seconds"]}
    figures = load(gateway.port, conns=1, secs=a.secs, tokens=8, prompt_bytes=2500)
    row.update(p50=figures["p50_us"], p99=figures["p99_us"])
    done = 0
    while done < a.prompts:
        done += load(gateway.port, conns=32, secs=5, tokens=8, prompt_bytes=2500)["requests"]
        row["prompts"] = max(row.get("prompts", 0), rss_mb(gateway.pids()))
    return row


def chunks(gateway, a):
    """Figures of paced streams, none of which ends within the run, so that their beginnings cost next to nothing."""
    before = gateway.cpu()
    figures = load(gateway.port, mode="streams", conns=STREAMS, secs=a.secs, tokens=chunk_count(a), prompt_bytes=256)
    return {"chunk": 1e6 * (gateway.cpu() - before) / max(figures["events"], 1)}


def slow_streams(gateway, a):
    """What streams take that wait most of their time."""
    before, most = rss_mb(gateway.pids()), 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        streams = pool.submit(load, gateway.port, mode="streams", conns=SLOW, secs=a.secs + 2, ramp=2, tokens=chunk_count(a), prompt_bytes=256)
        while not streams.done():
            most = max(most, rss_mb(gateway.pids()))
            time.sleep(0.1)
    if streams.result()["open_streams"] != SLOW:
        sys.exit(f"{streams.result()['open_streams']} of {SLOW} slow streams were open at the end")
    return {"slow": (most - before) * 1024 / SLOW}


def chunk_count(a):
    return int(1000 * (a.secs + 2) / ITL_MS)


def start(command):
    port = bench.free_port()
    return bench.Server([word if word != "PORT" else port for word in command], port, "/health", core=bench.LOAD_CORE)


def http_workers(a, itl_ms):
    """Two that replay what `portico serve --engine mock` answers."""
    whole, frames = bench.WORK / "gateway-whole", bench.WORK / f"gateway-frames-{chunk_count(a)}"
    if not frames.exists():
        with bench.portico("--mock-itl-ms", 1) as server:
            whole.write_bytes(b"".join(bench.record(server.port, bench.chat_request(8, False))))
            bench.write_frames(frames, bench.record(server.port, bench.chat_request(chunk_count(a), True)))
    return [start([bench.BUILD / "bench/http_raw_server", "PORT", whole, frames, itl_ms]) for _ in range(WORKERS)]


def token_workers(a, itl_ms):
    return [start([bench.BUILD / "portico", "serve", "--engine", "mock", "--shards", 1, "--port", "PORT", "--model-path",
                   MODEL, "--served-model-name", "demo", "--mock-ttft-ms", 0, "--mock-itl-ms", itl_ms,
                   "--max-running-requests", 1024]) for _ in range(WORKERS)]


def one_round(a, spec):
    """Requests, chunks and slow streams each before workers and a gateway of their own."""
    name, _, policy = spec.partition("/")
    name, tokens, _ = name.partition("-tokens")
    row = {}
    for figures, itl_ms in ((requests, 0), (chunks, ITL_MS), (slow_streams, SLOW_ITL_MS)):
        workers = (token_workers if tokens else http_workers)(a, itl_ms)
        try:
            if name == "direct":
                if figures is not slow_streams:
                    row.update(figures(Direct(workers[0].port), a))
                continue
            scheme = "grpc" if tokens else "http"
            urls = [f"{scheme}://127.0.0.1:{worker.port}" for worker in workers]
            gateway = Gateway(a, name, policy or "round_robin", urls, MODEL if tokens else None)
            try:
                time.sleep(1)
                row.update(ready=gateway.ready, idle=rss_mb(gateway.pids()), anonymous=rss_mb(gateway.pids(), "RssAnon"))
                row.update(figures(gateway, a))
                if figures is not slow_streams:
                    row["after"] = rss_mb(gateway.pids())
            finally:
                gateway.stop()
        finally:
            for worker in workers:
                worker.stop()
    return row


def report(results):
    medians = {spec: {key: statistics.median(row[key] for row in rows) for _, key in COLUMNS if all(key in row for row in rows)}
               for spec, rows in results.items() if rows}
    print("| gateway/policy | " + " | ".join(title for title, _ in COLUMNS) + " |")
    print("|" + "---|" * (len(COLUMNS) + 1))
    for spec, row in medians.items():
        print(f"| {spec} | " + " | ".join(f"{row[key]:.3g}" if key in row else "–" for _, key in COLUMNS) + " |")
    for spec, row in medians.items():
        name, _, policy = spec.partition("/")
        if not name.startswith("portico"):
            continue
        peers = [other for key, other in medians.items() if key.split("/")[0] in
                 (name.replace("portico", "smg"), name.replace("portico", "router")) and key.split("/")[1:] == [policy]]
        for title, key in COLUMNS[:2]:
            if peers and key in row:
                best = min(peer[key] for peer in peers if key in peer)
                print(f"{spec}: {row[key] / best:.2f} x the cheaper peer's {title}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smg", help="the program smg")
    parser.add_argument("--router", help="a Python that has sglang_router")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--secs", type=float, default=4, help="of each measurement")
    parser.add_argument("--prompts", type=int, default=0, help="so many more of 2.5 KB, each another, for the memory that they take")
    parser.add_argument("--run", help="gateways and policies; default: Portico and the peers given, with three policies")
    a = parser.parse_args()
    specs = a.run.split(",") if a.run else ["direct"] + [
        f"{name}/{policy}" for policy in ("round_robin", "cache_aware")
        for name in ("portico", *(["smg"] if a.smg else []), *(["router"] if a.router else []))
    ] + ["portico/cost", "portico-tokens/round_robin", *(["smg-tokens/round_robin"] if a.smg else [])]
    bench.build("http_load", "http_raw_server", "portico")
    results = {spec: [] for spec in specs}
    for number in range(a.rounds):
        for spec in specs:
            row = one_round(a, spec)
            results[spec].append(row)
            print(f"[bench] round {number + 1} {spec}: " + " ".join(f"{key}={value:.3g}" for key, value in row.items()), flush=True)
    report(results)


if __name__ == "__main__":
    main()
