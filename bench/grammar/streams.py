"""What grammars cost streams that are generated together: tokens/s of 16 answers, free and constrained, from one server.

    python bench/grammar/streams.py [--model-path models/demo | --shape qwen3-0.6b [--kind q8_0] [--tokenizer DIR]] \\
        [--streams 16] [--tokens 128] [--rounds 5]

A server is started on the model; rounds take the free answers and each constraint in turn, each round in another order. Medians are
printed, and of what a constraint costs the median of the rounds' own ratios, with the least and the greatest: of tokens/s, and of the
server's processor time for a token, which other work on the machine changes less. Answers end by their number of tokens only: the
schemas ask for more than that. --shape writes a model with random weights (bench/llama/make_model.py), of the vocabulary in DIR.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
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


def random_model(shape, kind, tokenizer):
    """The path of a model of this shape, written once. Runs this script again in the environment of bench/llama, which has gguf."""
    folder = ROOT / "bench/llama"

    def load(name):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    llama = load("run")
    llama.WORK.mkdir(parents=True, exist_ok=True)
    path = llama.WORK / f"{shape}-{kind}-{tokenizer.resolve().name}.gguf"
    if not path.exists():
        llama.environment()
        print(f"[bench] writing {path.name}", flush=True)
        load("make_model").write(path, shape, kind, tokenizer / "tokenizer.json")
    return path


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


    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(server, options, constraint):
    """Tokens/s, and processor milliseconds for a token."""
    with concurrent.futures.ThreadPoolExecutor(options.streams) as pool:
        start, processor = time.perf_counter(), server.processor_seconds()
        tokens = sum(pool.map(lambda i: server.answer(i, options.tokens, constraint), range(options.streams)))
        return tokens / (time.perf_counter() - start), 1000 * (server.processor_seconds() - processor) / tokens


def cost(of, free, sign):
    """Percent more (sign 1) or less (-1) than in the free answers of the same round: median, least and greatest."""
    percents = sorted(100 * sign * (one / other - 1) for one, other in zip(of, free))
    return f"{statistics.median(percents):7.1f} % ({percents[0]:.1f} to {percents[-1]:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-path", default=ROOT / "models/demo")
    parser.add_argument("--shape")
    parser.add_argument("--kind", default="q8_0", choices=["q8_0", "bf16"])
    parser.add_argument("--tokenizer", type=pathlib.Path, default=ROOT / "models/demo")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    model = random_model(options.shape, options.kind, options.tokenizer) if options.shape else options.model_path
    rates, times = {name: [] for name in CONSTRAINTS}, {name: [] for name in CONSTRAINTS}
    server = Server(model, options.streams)
    try:
        for constraint in CONSTRAINTS.values():
            server.answer(0, 2, constraint)  # compiles it
        for number in range(options.rounds):
            names = list(CONSTRAINTS)
            for name in names[number % len(names):] + names[:number % len(names)]:
                rate, milliseconds = measured(server, options, CONSTRAINTS[name])
                rates[name].append(rate)
                times[name].append(milliseconds)
                print(f"[bench] round {number + 1}, {name}: {rate:.1f} tokens/s, {milliseconds:.3f} ms/token", flush=True)
    finally:
        server.process.terminate()
        server.process.wait()
    print(f"{pathlib.Path(model).name}: {options.streams} streams of {options.tokens} tokens, {options.rounds} rounds")
    print(f"{'':16}{'tokens/s':>10}{'less than free':>28}{'CPU ms/token':>15}{'more than free':>28}")
    for name in CONSTRAINTS:
        slower, dearer = ("", "") if name == "free" else (cost(rates[name], rates["free"], -1), cost(times[name], times["free"], 1))
        print(f"{name:16}{statistics.median(rates[name]):10.1f}{slower:>28}{statistics.median(times[name]):15.3f}{dearer:>28}")


if __name__ == "__main__":
    main()
