"""CPU a request of two commits, in turns: how much the later one costs beside the earlier.

Builds BASE in build/gate and measures it, the tree as it is, and BASE again (what noise alone does) in each round: mock
engine, one core for the server, the load on the other. A row says by how much the median of the rounds' ratios is off 1,
with the least and the largest.
    ./dev bench gate BASE [--rounds 7] [--secs 3]
"""
import argparse
import importlib.util
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))
import bench_tools as bench

FOLDER = bench.ROOT / "build/gate"
TOKENS = 32


def build_base(commit):
    """The commit's program, in a work tree of its own."""
    name = subprocess.run(["git", "rev-parse", "--short=12", f"{commit}^{{commit}}"], cwd=bench.ROOT, check=True,
                          capture_output=True, text=True).stdout.strip()
    tree = FOLDER / name
    program = tree / "build/release/portico"
    if program.exists():
        return program
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "worktree", "prune"], cwd=bench.ROOT, check=True)
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--detach", tree, name], cwd=bench.ROOT, check=True)
    (tree / "build").mkdir(exist_ok=True)
    for shared in ("deps", "downloads"):
        link = tree / "build" / shared
        if not link.exists() and (bench.ROOT / "build" / shared).exists():
            link.symlink_to(bench.ROOT / "build" / shared)
    subprocess.run(["./dev", "build", "release", "portico"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    return program


def start(program, *flags):
    port = bench.free_port()
    return bench.Server([program, "serve", "--engine", "mock", "--shards", "1", "--port", str(port), "--model-path",
                         str(bench.ROOT / "models/demo"), "--served-model-name", "demo", *map(str, flags)], port,
                        "/health")


def http_rows(options):
    flags = dict(conns=options.conns, secs=options.secs, tokens=TOKENS)
    measured = bench.measured_load

    def a_request(server):
        figures = measured(server, **flags)
        return figures["cpu"] / figures["requests"]

    def a_chunk(server):
        figures = measured(server, stream=True, **flags)
        return figures["cpu"] / figures["events"]

    return {"HTTP/1.1, a whole answer": a_request, "HTTP/1.1, a chunk of a stream": a_chunk}


def grpc_rows(options):
    if shutil.which("h2load") is None or shutil.which("protoc") is None:
        print("without gRPC: h2load or protoc is not installed")
        return {}
    spec = importlib.util.spec_from_file_location("grpc_bench", pathlib.Path(__file__).parents[1] / "grpc/run.py")
    grpc = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(grpc)
    grpc.WORK.mkdir(parents=True, exist_ok=True)
    text = "Some words to say. " * 54
    call = grpc.body("gate-tokenize.bin", grpc.encoded("TokenizeRequest", f'text: "{text}"'))
    ids = " ".join(f"input_ids: {token}" for token in grpc.PROMPT)
    generate = grpc.body("gate-generate.bin", grpc.encoded(
        "GenerateRequest", f"{ids} stream: true sampling_params {{ max_new_tokens: {TOKENS} }}"))

    def tokenize(server):
        return grpc.cpu_a_message(server, 1, 20000, path=grpc.SERVICE + "Tokenize", file=call, headers=grpc.GRPC,
                                  connections=8, streams=64)

    def stream(server):
        return grpc.cpu_a_message(server, TOKENS, 2000, path=grpc.SERVICE + "Generate", file=generate,
                                  headers=grpc.GRPC, connections=8, streams=64)

    return {"gRPC, Tokenize of 1 KB": tokenize, "gRPC, a message of a stream": stream}


def ratios(over, under):
    return [a / b for a, b in zip(over, under)]


def spread(values):
    return f"{statistics.median(values):6.3f} ({min(values):.3f} to {max(values):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="a commit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--secs", type=float, default=3)
    parser.add_argument("--conns", type=int, default=32)
    options = parser.parse_args()
    base = build_base(options.base)
    bench.build("http_load", "portico")
    rows = {**http_rows(options), **grpc_rows(options)}
    print(f"{'CPU, ratio to ' + options.base:34}{'this tree':>26}{'the same again':>26}", flush=True)
    with start(base) as first, start(bench.BUILD / "portico") as tree, start(base) as again:
        for title, measure in rows.items():
            figures = [[measure(server) for server in (first, tree, again)] for _ in range(options.rounds)]
            once, now, twice = zip(*figures)
            print(f"{title:34}{spread(ratios(now, once)):>26}{spread(ratios(twice, once)):>26}", flush=True)


if __name__ == "__main__":
    os.chdir(bench.ROOT)
    sys.exit(main())
