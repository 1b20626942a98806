"""Many slow streams on one core: 2,000 at 20 tokens a second, and the largest gap that any of them sees.

    ./dev bench streams [--streams 2000] [--rate 20] [--secs 20]
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))
import bench_tools as bench

RAMP_SECONDS = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--secs", type=float, default=20)
    options = parser.parse_args()
    bench.build("http_load", "portico")
    tokens = int(options.rate * (options.secs + 5))  # no stream ends within the run
    with bench.portico("--mock-ttft-ms", 0, "--mock-itl-ms", 1000 / options.rate,
                       "--max-running-requests", 2 * options.streams) as server:
        figures = bench.measured_load(server, mode="streams", conns=options.streams, secs=options.secs,
                                      ramp=RAMP_SECONDS, tokens=tokens, prompt_bytes=256)
        events = figures["events"]
        print(f"{figures['open_streams']} of {options.streams} streams open at the end, {events / figures['seconds']:.0f} "
              f"events/s, {1e6 * figures['cpu'] / max(events, 1):.1f} us CPU an event, "
              f"{figures['cpu'] / figures['seconds']:.2f} cores")
        print(f"largest gap: {figures['gap_max_ms']:.0f} ms  (p99 of streams {figures['gap_p99_ms']:.0f}, median "
              f"{figures['gap_p50_ms']:.0f})  target <= 200")


if __name__ == "__main__":
    main()
