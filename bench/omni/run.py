#!/usr/bin/env python3
"""What a pipeline of stages that do nothing costs: a request, a streamed chunk, a start, memory; driven through HTTP.

    ./dev bench omni [--requests 2000] [--chunks 200]
    bench/omni/run.py --peer 'PYTHON SCRIPT serve --port {port} --chunks {chunks} --processes 3'   # another server in the same run

Cases: three stages in this process, in three processes of C++, in three of Python; streamed speech (pcm, a chunk each 480
samples) and streamed chat with text and audio, of --chunks steps each; a tensor of 16 MB over two hops. CPU is that of the
server and all its children. A peer has a stage with the rule of portico.mock (docs/omni.md) and the model `mock`; its ratio is
printed where it answers.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))
import bench_tools as bench

WORK = bench.ROOT / "build/bench/omni"
PYTHON_STAGE = '''from portico.stage import Audio, Tensor

VALUES = bytearray(16 << 20)


def same():
    def run(part, request):
        return part
    return run


def make(part, request):
    return Tensor(VALUES, (len(VALUES) // 4,), "float32", "values")


def use(part, request):
    assert len(part.data) == len(VALUES)
    return Audio(bytes(960), 24000)
'''
STAGES = {
    "one process": ["name: a, factory_path: portico.pass, stream_to: [b]",
                    "name: b, factory_path: portico.mock, factory: {chunks: %d}, route_fn: portico.by_task, stream_to: [c, encode]",
                    "name: c, factory_path: portico.pass, terminal: true"],
    "3 processes": ["name: a, factory_path: portico.pass, process: pa, stream_to: [b]",
                    "name: b, factory_path: portico.mock, process: pb, factory: {chunks: %d}, route_fn: portico.by_task,"
                    " stream_to: [c, encode]",
                    "name: c, factory_path: portico.pass, process: pc, terminal: true"],
    "3 processes, one of Python": [
        "name: a, factory_path: bench_stage.same, env: {PYTHONPATH: '%s'}, stream_to: [b]" % WORK,
        "name: b, factory_path: portico.mock, process: pb, factory: {chunks: %d}, route_fn: portico.by_task,"
        " stream_to: [c, encode]",
        "name: c, factory_path: portico.pass, process: pc, terminal: true"],
}
TENSOR = ["name: a, factory_path: bench_stage.make, env: {PYTHONPATH: '%s'}, stream_to: [b]" % WORK,
          "name: b, factory_path: portico.pass, process: pb, stream_to: [c]",
          "name: c, factory_path: bench_stage.use, env: {PYTHONPATH: '%s'}, stream_to: [encode]" % WORK]
CHAT = {"model": "mock", "messages": [{"role": "user", "content": "hi"}]}
BOTH = {**CHAT, "stream": True, "modalities": ["text", "audio"], "audio": {"voice": "x", "format": "pcm"}}
SPEECH = {"model": "mock", "voice": "default", "input": "hi", "response_format": "pcm", "stream": True, "stream_format": "audio"}


def tree(pid):
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += tree(int(child))
    return found


class Server:
    def __init__(self, name, command):
        self.port = bench.free_port()
        self.log = open(WORK / f"{name.replace(' ', '-').replace(',', '')}.log", "w")
        began = time.monotonic()
        self.process = subprocess.Popen([word.format(port=self.port) for word in command], stdout=self.log,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        while self.status() != 200:
            if self.process.poll() is not None or time.monotonic() - began > 300:
                self.stop()
                sys.exit(f"{name} does not answer; see {self.log.name}")
            time.sleep(0.02)
        self.ready = time.monotonic() - began

    def status(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("POST", "/v1/chat/completions", json.dumps(CHAT), {"content-type": "application/json"})
            return connection.getresponse().status
        except OSError:
            return 0

    def cpu(self):
        """Seconds of CPU of the server and its children, by each process's own clock."""
        return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in tree(self.process.pid)) / 1e9

    def rss(self):
        """Proportional, so that what processes share counts once; megabytes."""
        lines = [line for pid in tree(self.process.pid) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:")]
        return sum(int(line.split()[1]) for line in lines) / 1024

    def stop(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


local = threading.local()


def ask(port, path, body):
    """Seconds that the request takes on this thread's connection."""
    if getattr(local, "port", None) != port:
        local.connection, local.port = http.client.HTTPConnection("127.0.0.1", port, timeout=120), port
    began = time.monotonic()
    local.connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = local.connection.getresponse()
    data = answer.read()
    if answer.status != 200:
        sys.exit(f"{path}: {answer.status} {data[:300]}")
    return time.monotonic() - began


def cpu_of(server, path, body, count, threads):
    """Microseconds of CPU a request."""
    before = server.cpu()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: ask(server.port, path, body), range(count)))
    return 1e6 * (server.cpu() - before) / count


def measure(start, a):
    """`start(chunks)` makes a server whose mock stage answers with so many steps."""
    server = start(1)
    try:
        row = {"ready s": server.ready, "memory MB": server.rss()}
        for _ in range(20):
            ask(server.port, "/v1/chat/completions", CHAT)
        row["latency ms"] = 1e3 * statistics.median(ask(server.port, "/v1/chat/completions", CHAT) for _ in range(200))
        row["us/request"] = cpu_of(server, "/v1/chat/completions", CHAT, a.requests, 16)
    finally:
        server.stop()
    server = start(a.chunks)
    try:
        row["us/speech chunk"] = cpu_of(server, "/v1/audio/speech", SPEECH, a.requests // 20, 4) / a.chunks
        row["us/text and audio"] = cpu_of(server, "/v1/chat/completions", BOTH, a.requests // 20, 4) / a.chunks
    finally:
        server.stop()
    return row


def measure_tensor(server):
    """Milliseconds of a request that makes 16 MB in one stage of Python, which another one gets by way of a third."""
    try:
        for _ in range(10):
            ask(server.port, "/v1/audio/speech", SPEECH)
        latency = statistics.median(ask(server.port, "/v1/audio/speech", SPEECH) for _ in range(50))
        cpu = cpu_of(server, "/v1/audio/speech", SPEECH, 200, 4)
    finally:
        server.stop()
    print(f"16 MB tensor over 2 hops, 3 processes: latency {1e3 * latency:.1f} ms, CPU {cpu / 1e3:.1f} ms a request")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--peer", help="a command; {port} and {chunks} are filled in")
    a = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "bench_stage.py").write_text(PYTHON_STAGE)
    bench.build("portico")
    rows = {}

    def portico(name, chunks):
        made = [stage % chunks if "%d" in stage else stage for stage in STAGES[name]]
        return serve(name, made)

    def serve(name, made):
        made = [*made, "name: encode, factory_path: portico.encode, terminal: true"]
        file = WORK / "pipeline.yaml"
        file.write_text("name: mock\nvoices: {x: default}\nstages:\n" + "".join(f"  - {{{stage}}}\n" for stage in made))
        return Server(name, [str(bench.BUILD / "portico"), "omni", "serve", str(file), "--port", "{port}"])

    def peer(chunks):
        return Server("peer", [word.replace("{chunks}", str(chunks)) for word in shlex.split(a.peer)])

    for name in [*STAGES, *(["peer"] if a.peer else [])]:
        start = peer if name == "peer" else (lambda chunks, name=name: portico(name, chunks))
        rows[name] = measure(start, a)
        print(f"[bench] {name}: {rows[name]}", flush=True)
    columns = list(next(iter(rows.values())))
    print("| | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join(f"{row[key]:.3g}" for key in columns) + " |")
    measure_tensor(serve("tensor", TENSOR))
    if "peer" in rows:
        for name in STAGES:
            print(f"| {name} / peer | " + " | ".join(f"{rows[name][key] / rows['peer'][key]:.3g}" for key in columns) + " |")


if __name__ == "__main__":
    main()
