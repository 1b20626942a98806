"""Portico and SGLang's own two front ends, Python and Rust, before the same scheduler and model, in turns.

    python3 bench/sglang/run.py --python ~/sglang/bin/python [--concurrency 8 32] [--rounds 5] [--requests 200] [--tokens 64]

All run at the same time and sleep while they have nothing to do. In each round each of them gets the same streamed chats,
one front end after the other, so that what else the machine does falls on all of them; figures are medians of the rounds.
The processes' CPU time is read from /proc, the scheduler's apart from the front end's (SGLang's: the server, which also is
TokenizerManager, and the detokenizer). SGLang's Rust server (SGLANG_RUST_SERVER=1) runs inside the scheduler's process, so
that only both together can be compared with it; where the installed package has none, or it does not start, it is reported
as skipped. What a client sees is measured here: the time to the first token and tokens a second. With SGLang on a CPU the
scheduler is the slow part, so that tokens a second say little; CPU a token says what a front end costs beside a fast one.
"""
import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPU_FLAGS = ("--device", "cpu", "--attention-backend", "torch_native", "--dtype", "float32", "--disable-overlap-schedule",
             "--disable-cuda-graph", "--skip-server-warmup", "--mem-fraction-static", "0.1", "--max-total-tokens", "65536",
             "--context-length", "2048", "--log-level", "warning", "--sleep-on-idle")
KERNEL_STUB = """__version__ = "9.9.9"
def __getattr__(name):
    if name.startswith("__"): raise AttributeError(name)
    return lambda *a, **k: exec("raise NotImplementedError")
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def family(pid):
    found = [pid]
    for one in found:
        children = pathlib.Path(f"/proc/{one}/task/{one}/children")
        if children.exists():
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                found += [int(c) for c in (task / "children").read_text().split()]
    return found


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def cpu_seconds(pid):
    """In the program and in the kernel."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:13]]


class Server:
    def __init__(self, name, command, environment, log):
        self.name = name
        self.port = free_port()
        self.process = subprocess.Popen([*map(str, command(self.port))], env=environment, stdout=log, stderr=log,
                                        start_new_session=True)

    def stop(self):
        for pid in reversed(family(self.process.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def times(self):
        """CPU seconds of the front end, those of them in the kernel, and the scheduler's."""
        front = kernel = back = 0.0
        for pid in family(self.process.pid):
            name = name_of(pid)
            if "scheduler" in name and "portico serve" not in name:
                back += sum(cpu_seconds(pid))
            elif "resource_tracker" not in name and "sglang_launch.py" not in name:
                user, system = cpu_seconds(pid)
                front += user + system
                kernel += system
        return front, kernel, back


async def ask(port, number, tokens):
    """One streamed chat; the time to its first token, and the number of events with text."""
    body = json.dumps({"model": "demo", "stream": True, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                       "messages": [{"role": "user", "content": f"Tell me a story about fox number {number}, please."}]})
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write((f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                  f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n{body}").encode())
    first = None
    events = 0
    while line := await reader.readline():
        if line.startswith(b"HTTP/1.1") and b" 200" not in line:
            raise RuntimeError(line + await reader.read())
        if line.startswith(b"data: {") and b'"content":"' in line and b'"content":""' not in line:
            first = first or time.perf_counter() - began
            events += 1
    writer.close()
    return first, events


async def load(port, numbers, concurrency, tokens):
    numbers = iter(numbers)
    answers = []

    async def client():
        for number in numbers:
            answers.append(await ask(port, number, tokens))

    await asyncio.gather(*(client() for _ in range(concurrency)))
    return answers


def wait_ready(server, patience):
    deadline = time.time() + patience
    while time.time() < deadline:
        if server.process.poll() is not None:
            raise SystemExit(f"{server.name} has ended; see its log")
        try:
            return asyncio.run(ask(server.port, 0, 2))
        except (OSError, RuntimeError):
            time.sleep(0.5)
    raise SystemExit(f"{server.name} does not start")


def rust_server(python):
    """Why the package of this Python has no Rust server; None: it has one."""
    look = ("import importlib.util, pathlib; s = importlib.util.find_spec('sglang'); "
            "print(*(f for p in (s.submodule_search_locations if s else ()) "
            "for f in pathlib.Path(p, 'srt/rust_extensions').glob('_server*.so')))")
    found = subprocess.run([python, "-c", look], capture_output=True, text=True)
    if found.returncode:
        return found.stderr.strip().splitlines()[-1]
    return None if found.stdout.strip() else "the installed SGLang has no rust_extensions/_server"


def measure(server, numbers, concurrency, tokens):
    """One round, of these chats."""
    before = server.times()
    began = time.perf_counter()
    answers = asyncio.run(load(server.port, numbers, concurrency, tokens))
    took = time.perf_counter() - began
    after = server.times()
    count = len(numbers) * tokens
    front, kernel, back = (b - a for a, b in zip(before, after))
    result = {} if server.name == "sglang, Rust" else {
        "front end, CPU us a token": front / count * 1e6,
        "of it in the kernel": kernel / count * 1e6,
        "front end, CPU ms a request": front / len(numbers) * 1e3,
        "scheduler, CPU us a token": back / count * 1e6,
    }
    return result | {
        "together, CPU us a token": (front + back) / count * 1e6,
        "first token, median ms": statistics.median(a[0] for a in answers) * 1e3,
        "tokens a second": count / took,
        "events a request": statistics.mean(a[1] for a in answers),
    }


def compare(servers, concurrency, args):
    """All rounds of one number of chats at once."""
    rounds = {server.name: [] for server in servers}
    for first in range(0, args.rounds * args.requests, args.requests):
        numbers = range(first, first + args.requests)
        for server in servers:
            rounds[server.name].append(measure(server, numbers, concurrency, args.tokens))
    print(f"\n{args.rounds} rounds of {args.requests} chats of {args.tokens} tokens, {concurrency} at once: "
          "median (least to most)")
    medians = {}
    for name, results in rounds.items():
        print(f" {name}")
        for what in results[0]:
            values = [result[what] for result in results]
            medians[name, what] = statistics.median(values)
            print(f"  {what:32} {medians[name, what]:10.1f}   ({min(values):.1f} to {max(values):.1f})")
    front, together = "front end, CPU us a token", "together, CPU us a token"
    print(f" SGLang's Python front end takes {medians['sglang, Python', front] / medians['portico', front]:.1f} times the CPU "
          "of Portico for a token")
    for name in list(rounds)[1:]:
        print(f" With the scheduler, {name} takes {medians[name, together] / medians['portico', together]:.2f} times the CPU "
              "of Portico for a token", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", required=True, help="a Python that has SGLang")
    parser.add_argument("--portico", default=ROOT / "build/release/portico")
    parser.add_argument("--model", default=ROOT / "models/demo")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--cpu", action=argparse.BooleanOptionalAction, default=True,
                        help="run SGLang without a GPU; with --no-cpu its flags are its own")
    parser.add_argument("flags", nargs="*", help="after --: more flags of SGLang")
    args = parser.parse_args()
    flags = [*(CPU_FLAGS if args.cpu else ()), *args.flags]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SGLANG_USE_PICKLE_IPC": "0", "HF_HUB_OFFLINE": "1"}
        if args.cpu:
            stub = pathlib.Path(folder, "stub/sgl_kernel")
            stub.mkdir(parents=True)
            for name in ("__init__", "flash_attn", "mamba", "utils"):
                (stub / f"{name}.py").write_text(KERNEL_STUB)
            environment |= {"PYTHONPATH": str(stub.parent), "SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"}
        own = lambda port: [args.python, "-m", "sglang.launch_server", "--model-path", args.model,
                            "--served-model-name", "demo", "--port", port, *flags]
        commands = [
            ("portico", {}, lambda port: [args.portico, "serve", "--engine", "sglang", "--sglang-python", args.python,
                                      "--model-path", args.model, "--served-model-name", "demo", "--port", port, "--", *flags]),
            ("sglang, Python", {}, own),
            ("sglang, Rust", {"SGLANG_RUST_SERVER": "1"}, own),
        ]
        servers = []
        with contextlib.ExitStack() as running:
            for name, variables, command in commands:
                if name == "sglang, Rust" and (why := rust_server(args.python)):
                    print(f"{name}: skipped: {why}")
                    continue
                log = running.enter_context(open(pathlib.Path(folder, name + ".log"), "w+"))
                server = Server(name, command, environment | variables, log)
                running.callback(server.stop)
                try:
                    wait_ready(server, args.patience)
                    asyncio.run(load(server.port, range(max(args.concurrency)), max(args.concurrency), 8))
                    servers.append(server)
                except SystemExit as failed:
                    log.seek(0)
                    sys.stderr.write(log.read()[-3000:])
                    if name != "sglang, Rust":
                        raise
                    print(f"{name}: skipped: {failed}")
            for concurrency in args.concurrency:
                compare(servers, concurrency, args)


if __name__ == "__main__":
    main()
