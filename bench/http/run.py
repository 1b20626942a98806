"""CPU a request: Portico with the mock engine beside a raw epoll server that sends the same bytes.

One shard on one core, load on the other; distinct 2 KB prompts, 32 tokens; whole, streamed at once, and streamed at
a pace (every token in a send of its own; the request's own work is in it; streams begin evenly over a second, so that
both servers have as many to serve in a millisecond). Rounds alternate; medians are printed.
--echo measures the net room alone; --profile Portico while a profile runs beside Portico without one.
    ./dev bench http [--rounds 5] [--secs 4] [--echo | --profile]
"""
import argparse
import json
import re
import shutil
import statistics
import sys
import time
import urllib.request

import bench_tools as bench

TOKENS = 32
PACED_TOKENS = 128
PACED_ITL_MS = 20
PACED_CONNS = 256
PACED_RAMP = 1


def alternate(servers, rounds, measure):
    """{name: [figures of each round]}, one server after the other within a round."""
    results = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            results[name].append(measure(server))
    return results


def report(title, results, per, target=None):
    """`per`: what of a round's figures the CPU is divided by."""
    median = {name: statistics.median(1e6 * r["cpu"] / per(r) for r in rounds) for name, rounds in results.items()}
    names = list(results)
    ratio = statistics.median(
        (a["cpu"] / per(a)) / (b["cpu"] / per(b)) for a, b in zip(results[names[0]], results[names[1]]))
    rates = "  ".join(f"{name} {median[name]:6.2f} us ({statistics.median(r['requests'] / r['seconds'] for r in results[name]):.0f} req/s)"
                      for name in names)
    verdict = "" if target is None else f"  target <= {target}"
    print(f"{title:34} {rates}  ratio {ratio:.2f}{verdict}", flush=True)


def echo(options):
    bench.build("http_load", "http_raw_server", "http_echo_server")
    port = bench.free_port()
    with bench.Server([bench.BUILD / "bench/http_echo_server", port], port) as server:
        whole = bench.WORK / "echo.bin"
        whole.write_bytes(b"".join(bench.record(port, bench.chat_request(TOKENS, False))))
        frames = bench.WORK / "echo.frames"
        bench.write_frames(frames, [b"-"])
        with bench.raw_server(whole, frames) as raw:
            results = alternate({"portico": server, "raw": raw}, options.rounds,
                                lambda s: bench.measured_load(s, conns=options.conns, secs=options.secs))
            report("net alone, 1 KB answer", results, lambda r: r["requests"], 1.15)


def at_once(options):
    with bench.portico("--mock-ttft-ms", 0, "--mock-itl-ms", 0) as server, \
            bench.portico("--mock-ttft-ms", 0, "--mock-itl-ms", 10) as slow:
        whole = bench.WORK / "whole.bin"
        whole.write_bytes(b"".join(bench.record(server.port, bench.chat_request(TOKENS, False))))
        frames = bench.WORK / "stream.frames"
        bench.write_frames(frames, bench.record(slow.port, bench.chat_request(TOKENS, True)))
        slow.stop()
        with bench.raw_server(whole, frames) as raw:
            servers = {"portico": server, "raw": raw}
            flags = dict(conns=options.conns, secs=options.secs, tokens=TOKENS)
            report("whole answer, a request",
                   alternate(servers, options.rounds, lambda s: bench.measured_load(s, **flags)),
                   lambda r: r["requests"], 6)
            report("streamed without pause, a chunk",
                   alternate(servers, options.rounds, lambda s: bench.measured_load(s, stream=True, **flags)),
                   lambda r: r["events"], 1.2)


def paced(options):
    with bench.portico("--mock-ttft-ms", 0, "--mock-itl-ms", PACED_ITL_MS) as server:
        whole = bench.WORK / "whole.bin"
        frames = bench.WORK / "paced.frames"
        bench.write_frames(frames, bench.record(server.port, bench.chat_request(PACED_TOKENS, True)))
        with bench.raw_server(whole, frames, PACED_ITL_MS) as raw:
            flags = dict(conns=PACED_CONNS, secs=max(options.secs, 6), tokens=PACED_TOKENS, stream=True,
                         ramp=PACED_RAMP)
            report(f"paced, {PACED_CONNS} streams, a chunk",
                   alternate({"portico": server, "raw": raw}, options.rounds,
                             lambda s: bench.measured_load(s, **flags)),
                   lambda r: r["events"], 1.2)


def profiled(options):
    """The recorder's own thread shares the server's core, so that all of its work counts."""
    folder = bench.WORK / "profiles"
    mock = ("--mock-ttft-ms", 0, "--mock-itl-ms", 0)

    def post(server, path):
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", json.dumps({"run_id": "bench"}).encode(),
                                         {"content-type": "application/json"})
        urllib.request.urlopen(request, timeout=60).read()

    with bench.portico(*mock) as without, bench.portico(*mock, "--profile-dir", folder, "--profile-max-bytes", 1 << 40) as recorded:
        for title, flags in (("whole answer, a request", {}), ("streamed, a request", {"stream": True})):
            def measure(server, flags=flags):
                if server is recorded:
                    post(server, "/start_request_profile")
                figures = bench.measured_load(server, conns=options.conns, secs=options.secs, tokens=TOKENS, **flags)
                if server is recorded:
                    post(server, "/stop_request_profile")
                    while list(folder.glob("**/records_*")):  # become lines now: not within the next round
                        time.sleep(0.05)
                    shutil.rmtree(folder)
                return figures
            results = alternate({"profile": recorded, "without": without}, options.rounds, measure)
            report(title, results, lambda r: r["requests"])
            rates = {name: [r["requests"] / r["seconds"] for r in rounds] for name, rounds in results.items()}
            ratio = statistics.median(a / b for a, b in zip(rates["profile"], rates["without"]))
            print(f"{'':34} throughput with a profile {ratio:.3f} of that without  target >= 0.97", flush=True)
        metrics = urllib.request.urlopen(f"http://127.0.0.1:{recorded.port}/metrics", timeout=60).read().decode()
        counts = {name: re.search(rf"^portico_profile_{name}_total (\S+)$", metrics, re.M)[1] for name in ("events", "dropped", "cut")}
        print("events: " + ", ".join(f"{count} {name}" for name, count in counts.items()).replace(" events", " written"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=float, default=4)
    parser.add_argument("--conns", type=int, default=32)
    parser.add_argument("--echo", action="store_true", help="the net room alone")
    parser.add_argument("--profile", action="store_true", help="throughput while a profile runs")
    options = parser.parse_args()
    if options.echo:
        echo(options)
        return
    if options.profile:
        bench.build("http_load", "portico")
        profiled(options)
        return
    bench.build("http_load", "http_raw_server", "portico")
    at_once(options)
    paced(options)


if __name__ == "__main__":
    sys.exit(main())
