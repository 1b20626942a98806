"""CPU a gRPC message: Portico's Generate beside its SSE, and its gRPC layer beside grpc++, tonic and a bare nghttp2 loop.

All serve one core, h2load on the other is the same light client for all. Mock engine, prompts of 64 token ids, a stream
of 128 messages, one a step of 5 ms; the layer, grpc++ (callback API), tonic (a runtime of one thread; built where there
is cargo) and the raw loop make messages of the same size at the same pace. Rounds alternate; medians are printed. SSE is
measured over HTTP/1.1, a connection for each stream, and over HTTP/2 as the calls are.
    ./dev bench grpc [--rounds 3] [--secs 3] [--layer] [--row "512 on"]
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))
import bench_tools as bench

WORK = bench.ROOT / "build/bench/grpc"
TOKENS = 128
STEP_MS = 5
MESSAGE_BYTES = 160  # of Generate's messages with the mock engine, about
GRPC = ("-H", "content-type: application/grpc", "-H", "te: trailers")
JSON = ("-H", "content-type: application/json")
SERVICE = "/sglang.runtime.v1.SglangService/"
PROGRAMS = bench.BUILD / "bench"
TONIC = pathlib.Path(__file__).resolve().parent / "tonic"
STREAMS = [(1, 1), (64, 1), (64, 8), (512, 1), (512, 8)]
PROMPT = list(range(100, 164))


def body(name, content):
    path = WORK / name
    path.write_bytes(content)
    return path


def framed(message):
    return b"\0" + len(message).to_bytes(4, "big") + message


def encoded(kind, text):
    proto = bench.ROOT / "proto"
    command = ["protoc", f"--proto_path={proto}", f"--encode=sglang.runtime.v1.{kind}", "sglang/runtime/v1/sglang.proto"]
    return framed(subprocess.run(command, input=text.encode(), check=True, capture_output=True).stdout)


def load(port, path, file, headers, connections, streams, requests, http1=False):
    command = ["taskset", "-c", str(bench.LOAD_CORE), "h2load", "-n", str(requests), "-d", file, *headers]
    command += ["--h1", "-c", streams] if http1 else ["-c", connections, "-m", streams // connections]
    result = subprocess.run(list(map(str, [*command, f"http://127.0.0.1:{port}{path}"])), capture_output=True, text=True,
                            check=True).stdout
    done = re.search(r"(\d+) succeeded", result)
    good = re.search(r"(\d+) 2xx", result)
    if int(done[1]) != requests or int(good[1]) != requests:
        raise SystemExit(f"of {requests} requests for {path}:\n{result}")


def cpu_a_message(server, messages, requests, **flags):
    before = server.cpu()
    load(server.port, requests=requests, **flags)
    return 1e6 * (server.cpu() - before) / (requests * messages)


class Table:
    """Rows of medians; `measures`: {column: a function that measures once}."""

    def __init__(self, columns, ratios, only):
        self.columns, self.ratios, self.only = columns, ratios, only
        print(f"{'CPU us a message':34}" + "".join(f"{name:>11}" for name in columns) +
              "".join(f"{a + '/' + b:>16}" for a, b in ratios), flush=True)

    def row(self, title, measures, rounds):
        if self.only not in title:
            return
        figures = {name: [] for name in self.columns}
        for _ in range(rounds):
            for name in self.columns:
                figures[name].append(measures[name]())
        median = {name: statistics.median(values) for name, values in figures.items()}
        print(f"{title:34}" + "".join(f"{median[name]:11.2f}" for name in self.columns) +
              "".join(f"{median[a] / median[b]:16.2f}" for a, b in self.ratios), flush=True)


def stream_requests(streams, secs):
    return max(1, round(secs * 1000 / (STEP_MS * TOKENS))) * streams


def layer_servers():
    """{name: program} of those that can be built here."""
    servers = {"layer": PROGRAMS / "grpc_layer_server", "raw": PROGRAMS / "grpc_raw_server"}
    bench.build("grpc_layer_server", "grpc_raw_server")
    try:
        bench.build("grpc_grpcpp_server")
        servers["grpc++"] = PROGRAMS / "grpc_grpcpp_server"
    except subprocess.CalledProcessError:
        print("without grpc++: libgrpc++-dev is not installed")
    if shutil.which("cargo") is None:
        print("without tonic: there is no cargo")
        return servers
    target = bench.ROOT / "build/bench/tonic"
    built = subprocess.run(["cargo", "build", "--release", "--quiet", "--target-dir", target], cwd=TONIC,
                           capture_output=True, text=True)
    if built.returncode == 0:
        servers["tonic"] = target / "release/grpc_tonic_server"
    else:
        print(f"without tonic: cargo cannot build it: {built.stderr.strip()[-300:]}")
    return servers


def layers(options):
    servers = layer_servers()
    table = Table(list(servers), [("layer", name) for name in servers if name != "layer"], options.row)
    request = body("echo.bin", framed(b"x" * 200))

    def measure(program, messages, size, step, requests, connections, streams):
        port = bench.free_port()
        with bench.Server([program, port, messages, size, step], port) as server:
            return cpu_a_message(server, messages, requests, path="/bench.Echo/Call", file=request, headers=GRPC,
                                 connections=connections, streams=streams)

    for streams, connections in [(1, 1), (64, 1), (512, 8)]:
        table.row(f"whole, 1 KB, {streams} on {connections}",
                  {name: lambda p=program: measure(p, 1, 1000, 0, 10000 if streams == 1 else 50000, connections, streams)
                   for name, program in servers.items()}, options.rounds)
    for streams, connections in STREAMS:
        table.row(f"streamed, {streams} on {connections}",
                  {name: lambda p=program: measure(p, TOKENS, MESSAGE_BYTES, STEP_MS, stream_requests(streams, options.secs),
                                                   connections, streams)
                   for name, program in servers.items()}, options.rounds)
    print("targets, streamed: layer/raw <= 1.5, layer/grpc++ <= 0.25\n")


def portico(options):
    text = f"input_ids: {PROMPT} sampling_params {{ max_new_tokens: {TOKENS} ignore_eos: true }} stream: "
    calls = {True: body("stream.bin", encoded("GenerateRequest", text + "true")),
             False: body("whole.bin", encoded("GenerateRequest", text + "false"))}
    bodies = {stream: body(f"{stream}.json", json.dumps(
        {"input_ids": PROMPT, "sampling_params": {"max_new_tokens": TOKENS, "ignore_eos": True}, "stream": stream}).encode())
        for stream in (True, False)}
    prompt = "Some words to say. " * 50
    tokenize = body("tokenize.bin", encoded("TokenizeRequest", f'text: "{prompt}"'))
    tokenize_json = body("tokenize.json", json.dumps({"text": prompt, "prompt": prompt}).encode())
    table = Table(["gRPC", "HTTP/1.1", "HTTP/2"], [("gRPC", "HTTP/1.1"), ("gRPC", "HTTP/2")], options.row)

    def measures(server, messages, requests, grpc, http, connections, streams):
        flags = dict(connections=connections, streams=streams)
        call = lambda **more: cpu_a_message(server, messages, requests, **flags, **more)
        return {"gRPC": lambda: call(path=SERVICE + grpc[0], file=grpc[1], headers=GRPC),
                "HTTP/1.1": lambda: call(path=http[0], file=http[1], headers=JSON, http1=True),
                "HTTP/2": lambda: call(path=http[0], file=http[1], headers=JSON)}

    with bench.portico("--mock-itl-ms", 0, "--max-running-requests", 2048) as server:
        for streams, connections in [(64, 1), (64, 8)]:
            table.row(f"Tokenize, 1 KB, {streams} on {connections}",
                      measures(server, 1, 20000, ("Tokenize", tokenize), ("/tokenize", tokenize_json), connections, streams),
                      options.rounds)
            table.row(f"Generate, whole, {streams} on {connections}",
                      measures(server, 1, 10000, ("Generate", calls[False]), ("/generate", bodies[False]), connections,
                               streams), options.rounds)
    with bench.portico("--mock-itl-ms", STEP_MS, "--max-running-requests", 2048,
                       "--incremental-streaming-output") as server:
        for streams, connections in STREAMS:
            table.row(f"Generate, streamed, {streams} on {connections}",
                      measures(server, TOKENS, stream_requests(streams, options.secs), ("Generate", calls[True]),
                               ("/generate", bodies[True]), connections, streams), options.rounds)
    print("target, streamed at 64 and more: gRPC/HTTP < 1")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--secs", type=float, default=3)
    parser.add_argument("--row", default="", help="only rows whose titles contain this")
    parser.add_argument("--layer", action="store_true", help="the gRPC layer alone")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    bench.WORK.mkdir(parents=True, exist_ok=True)
    layers(options)
    if not options.layer:
        bench.build("portico")
        portico(options)


if __name__ == "__main__":
    sys.exit(main())
