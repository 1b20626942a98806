"""Many slow streams: 2,000 at 20 tokens a second on one core, and the gaps that they see; alone, or beside heavy requests.

    ./dev bench streams [--streams 2000] [--rate 20] [--secs 20]
    ./dev bench streams --beside [--streams 1000] [--rounds 3]

--beside: all cores, and in turn without and with clients that each send their next request when the last is answered:
/tokenize bodies of 30 MB to the model of the streams; /v1/score with 4,096 items and /update_weights_from_disk to a second
model on the llama engine. These clients have a lower priority, since on the same processors their own work would count.
/health is asked 50 times a second meanwhile, with real-time scheduling where that is allowed. Gaps are what clients see, so
that a busy machine spoils them; the turns of the shards, as the server measures them, are printed too: their length, and the
CPU time of those of a millisecond and more, which does not depend on what else runs.
"""
import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))
import bench_tools as bench

RAMP_SECONDS = 3
FORK = multiprocessing.get_context("fork")
DEMO = bench.ROOT / "models/demo"
ITEMS = 4096


def streams(server, options):
    tokens = int(options.rate * (options.secs + 5))  # no stream ends within the run
    return bench.measured_load(server, model="streams", mode="streams", conns=options.streams, secs=options.secs,
                               ramp=RAMP_SECONDS, tokens=tokens, prompt_bytes=256)


def report(figures, options):
    events = figures["events"]
    if not figures["all_gaps"]:
        raise SystemExit("no stream had two events: there are no gaps to report")
    print(f"{figures['open_streams']} of {options.streams} streams open at the end, {events / figures['seconds']:.0f} "
          f"events/s, {1e6 * figures['cpu'] / max(events, 1):.1f} us CPU an event, "
          f"{figures['cpu'] / figures['seconds']:.2f} cores")
    print(f"gaps: largest {figures['gap_max_ms']:.0f} ms (of each stream its largest: p99 {figures['gap_p99_ms']:.0f}, "
          f"median {figures['gap_p50_ms']:.0f}), p99.9 of all {figures['all_gaps_p999_ms']:.0f} ms", flush=True)


def turns(port):
    """{name: {upper bound in seconds: how many turns took longer}} of all shards so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
        text = reply.read().decode()
    found = {}
    series = r'^portico_shard_(turn|long_turn_cpu)_seconds_bucket\{shard="\d+",le="([^"]+)"\} (\S+)$'
    for name, bound, count in re.findall(series, text, re.M):
        buckets = found.setdefault(name, {})
        buckets[float(bound)] = buckets.get(float(bound), 0) + float(count)
    return {name: {bound: buckets[float("inf")] - count for bound, count in buckets.items()}
            for name, buckets in found.items()}


def report_turns(before, after):
    for name, title in (("turn", "turns of shards"), ("long_turn_cpu", "their CPU time")):
        longer = {bound: int(count - before[name][bound]) for bound, count in after[name].items()
                  if 0.005 <= bound < float("inf")}
        print(f"  {title}, how many were longer: "
              + ", ".join(f"{1e3 * bound:.0f} ms {count}" for bound, count in sorted(longer.items())), flush=True)


class Client(FORK.Process):
    """Sends one body again and again; `pause`: seconds between two. A process of its own, or one client would wait for another."""

    def __init__(self, port, path, body, pause=0.0):
        super().__init__(daemon=True)
        self.port, self.path, self.body, self.pause = port, path, body, pause
        self.stopped, self.told = FORK.Event(), FORK.SimpleQueue()

    def run(self):
        if self.body is None:  # a probe
            bench.run_at_once()
        else:  # its own work would be another machine's
            os.nice(5)
        method, headers = ("POST", {"content-type": "application/json"}) if self.body else ("GET", {})
        taken, statuses = [], {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        while not self.stopped.is_set():
            began = time.monotonic()
            try:
                connection.request(method, self.path, self.body, headers)
                reply = connection.getresponse()
                reply.read()
                status = reply.status
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
                connection.close()
            taken.append(time.monotonic() - began)
            statuses[status] = statuses.get(status, 0) + 1
            self.stopped.wait(self.pause)
        self.told.put((taken, statuses))

    def report(self):
        taken, statuses = self.told.get()
        taken.sort()
        p99 = taken[int(0.99 * (len(taken) - 1))] if taken else 0
        median = taken[len(taken) // 2] if taken else 0
        print(f"  {self.path}: {len(taken)} answers {statuses}, median {1e3 * median:.1f} ms, "
              f"p99 {1e3 * p99:.1f} ms", flush=True)


def heavy(port):
    words = "All the words that a body of thirty megabytes holds. "
    yield Client(port, "/tokenize", json.dumps({"model": "streams", "prompt": words * (30_000_000 // len(words))}).encode())
    yield Client(port, "/v1/score", json.dumps({"model": "work", "query": "Is it a city? ", "items": ["Rome"] * ITEMS,
                                                "label_token_ids": [1, 2]}).encode())
    yield Client(port, "/update_weights_from_disk", json.dumps({"model": "work", "model_path": str(DEMO)}).encode(), 1)


def beside(options):
    port = bench.free_port()
    command = [bench.BUILD / "portico", "serve", "--port", port, "--max-request-cost-bytes", "1GiB",
               "--model-path", DEMO, "--served-model-name", "streams", "--engine", "mock", "--mock-ttft-ms", 0, "--mock-itl-ms",
               1000 / options.rate, "--max-running-requests", 2 * options.streams,
               "--model-path", DEMO, "--served-model-name", "work", "--engine", "llama", "--max-queued-requests", 2 * ITEMS]
    with bench.Server(command, port, "/health", core="0,1") as server:
        for title, make in options.rounds * (("alone", lambda port: []), ("beside heavy requests", heavy)):
            clients = [*make(port), Client(port, "/health", None, 0.02)]
            before = turns(port)
            for client in clients:
                client.start()
            print(title)
            report(streams(server, options), options)
            for client in clients:
                client.stopped.set()
            for client in clients:
                client.report()
                client.join()
            report_turns(before, turns(port))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--streams", type=int)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--secs", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=1, help="of --beside")
    options = parser.parse_args()
    options.streams = options.streams or (1000 if options.beside else 2000)
    bench.build("http_load", "portico")
    if options.beside:
        beside(options)
        return
    with bench.portico("--served-model-name", "streams", "--mock-ttft-ms", 0, "--mock-itl-ms", 1000 / options.rate,
                       "--max-running-requests", 2 * options.streams) as server:
        report(streams(server, options), options)


if __name__ == "__main__":
    main()
