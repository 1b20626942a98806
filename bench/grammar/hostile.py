"""What 200 hostile grammars at once do to everybody else: how they are answered, /health meanwhile, and what is left to compute.

    python bench/grammar/hostile.py [--requests 200] [--rounds 3] [--model-path models/demo]

Each round sends so many chats, each with a grammar of its own, from threads of one process. Another process asks for /health every
5 ms, with real-time scheduling where that is allowed, or it would count its own waiting for a processor. Printed are the statuses,
the time until the last answer, /health's median, p99 and largest, and the server's processor time in the second that begins a second
after the last answer, with its compiling processes.
"""
import argparse
import collections
import concurrent.futures
import http.client
import json
import multiprocessing
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/http"), str(ROOT / "tests")]
import bench_tools as bench
import hostile_grammars

FORK = multiprocessing.get_context("fork")


def ask(port, number):
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, **hostile_grammars.variant(number)})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def send_all(port, first, count, told):
    os.nice(5)  # the clients' own work on the same processors is not what is measured
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        told.put(collections.Counter(pool.map(lambda number: ask(port, number), range(first, first + count))))


def probe(port, stopped, told):
    bench.run_at_once()
    taken = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not stopped.is_set():
        began = time.monotonic()
        connection.request("GET", "/health")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        taken.append(time.monotonic() - began)
        stopped.wait(0.005)
    told.put(sorted(taken))


def processes_of(pid):
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            found += processes_of(int(child))
    return found


def processor_seconds(pid):
    total = 0
    for process in processes_of(pid):
        fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(server, number, options):
    stopped, statuses, times = FORK.Event(), FORK.SimpleQueue(), FORK.SimpleQueue()
    probing = FORK.Process(target=probe, args=(server.port, stopped, times), daemon=True)
    sending = FORK.Process(target=send_all, args=(server.port, 1000 * (number + 1), options.requests, statuses), daemon=True)
    probing.start()
    began = time.monotonic()
    sending.start()
    counts = statuses.get()
    took = time.monotonic() - began
    stopped.set()
    taken = times.get()
    time.sleep(1)
    before = processor_seconds(server.process.pid)
    time.sleep(1)
    left = processor_seconds(server.process.pid) - before
    listed = ", ".join(f"{count} x {status}" for status, count in sorted(counts.items()))
    print(f"{listed} in {took:.1f} s; /health {len(taken)} times: median {1e3 * taken[len(taken) // 2]:.2f} ms, "
          f"p99 {1e3 * taken[int(0.99 * (len(taken) - 1))]:.2f}, largest {1e3 * taken[-1]:.2f}; "
          f"a second later {100 * left:.0f} % of a processor, {len(processes_of(server.process.pid)) - 1} processes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-path", default=ROOT / "models/demo")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    bench.build("portico")
    port = bench.free_port()
    command = [bench.BUILD / "portico", "serve", "--port", port, "--model-path", options.model_path]
    with bench.Server(command, port, "/health", core="0-1") as server:
        for number in range(options.rounds):
            measure(server, number, options)


if __name__ == "__main__":
    main()
