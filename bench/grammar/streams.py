"""What grammars cost streams that are generated together: tokens/s of 16 answers, free and constrained, from one server.

    python bench/grammar/streams.py [--model-path models/demo] [--streams 16] [--tokens 128] [--rounds 5]

A server is started on the model; rounds take the free answers and each constraint in turn, and medians are printed. Answers end by
their number of tokens only: the schemas ask for more than that. bench/llama/run.py leaves models of the sizes of real ones in
build/bench/llama.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]


def people(**bounds):
    name = {"type": "string", **bounds}
    person = {"type": "object", "properties": {"name": name, "age": {"type": "integer"}, "tags": {"type": "array", "items": name}},
              "required": ["name", "age", "tags"], "additionalProperties": False}
    return {"type": "array", "items": person, "minItems": 500}


CONSTRAINTS = {"free": {}, "schema": {"json_schema": json.dumps(people())},
               "maxLength 40": {"json_schema": json.dumps(people(maxLength=40))}}


class Server:
    def __init__(self, model, streams):
        log = ROOT / "build/bench-grammar-streams.log"
        command = [ROOT / "build/release/portico", "serve", "--model-path", model, "--port", "0", "--max-running-requests", streams]
        with open(log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out)
        while not (found := re.search(r"ready: http://\S*:(\d+)/", log.read_text(encoding="utf-8"))):
            if self.process.poll() is not None:
                sys.exit(f"the server ended; see {log}")
            time.sleep(0.1)
        self.port = int(found[1])

    def answer(self, number, tokens, constraint):
        sampling = {"max_new_tokens": tokens, "temperature": 1.0, "ignore_eos": True, "sampling_seed": number, **constraint}
        body = json.dumps({"text": f"List {number} people.", "sampling_params": sampling}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/generate", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=1800) as answer:
            return json.load(answer)["meta_info"]["completion_tokens"]


def tokens_per_second(server, options, constraint):
    with concurrent.futures.ThreadPoolExecutor(options.streams) as pool:
        start = time.perf_counter()
        tokens = sum(pool.map(lambda i: server.answer(i, options.tokens, constraint), range(options.streams)))
        return tokens / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-path", default=ROOT / "models/demo")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    figures = {name: [] for name in CONSTRAINTS}
    server = Server(options.model_path, options.streams)
    try:
        for constraint in CONSTRAINTS.values():
            server.answer(0, 2, constraint)  # compiles it
        for _ in range(options.rounds):
            for name, constraint in CONSTRAINTS.items():
                figures[name].append(tokens_per_second(server, options, constraint))
    finally:
        server.process.terminate()
        server.process.wait()
    free = statistics.median(figures["free"])
    print(f"{options.streams} streams of {options.tokens} tokens, median of {options.rounds} rounds")
    for name, rates in figures.items():
        rate = statistics.median(rates)
        print(f"{name:16}{rate:10.1f} tokens/s{100 * (1 - rate / free):8.1f} % less than free")


if __name__ == "__main__":
    main()
