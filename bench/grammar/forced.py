"""Schemas with fixed keys: tokens a second with the tokens that a grammar forces computed together, and one by one.

    python bench/grammar/forced.py [--model-path DIR] [--dtype auto] [--rounds 5] [--streams 1 8]

Two servers of one build run side by side, and only one is asked at a time, in turn; medians are printed. Answers of both must be equal.
The demo model's vocabulary is small, so its runs are long; its steps are short, so what a step costs beside the model counts more.
"""
import argparse
import http.client
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def closed(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def cases():
    """Name, constraint."""
    numbers = closed(**{key: {"type": "integer", "minimum": 0, "maximum": 999} for key in (
        "customer_identification_number", "shipping_address_postal_code", "total_amount_in_cents", "number_of_line_items")})
    enums = closed(**{f"field_number_{i}": {"enum": ["red", "green", "blue"]} for i in range(12)})
    yield "long keys", {"json": numbers, "disable_any_whitespace": True}
    yield "long keys, white space", {"json": numbers}
    yield "enums", {"json": enums, "disable_any_whitespace": True}
    yield "choice", {"choice": ["the first of the two answers that are allowed", "another answer that is allowed too"]}
    yield "free text", {"regex": "[a-z ,.]{60}"}


class Server:
    def __init__(self, args, *flags):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        model = ["--model-path", args.model_path] if args.model_path else []
        self.process = subprocess.Popen(
            [ROOT / "build/release/portico", "serve", "--port", str(self.port), "--dtype", args.dtype, *model, *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                if self.request("GET", "/health")[0] == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit("the server ended")
            time.sleep(0.2)

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, json.dumps(body) if body else None, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def metric(self, name):
        lines = self.request("GET", "/metrics")[1].decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def run(self, constraint, streams, seed):
        """Tokens a second of so many streams at once, and their texts."""
        texts, tokens = [None] * streams, [0] * streams

        def ask(i):
            status, body = self.request("POST", "/v1/chat/completions", {
                "messages": [{"role": "user", "content": "Fill in the form."}], "temperature": 0.8, "seed": seed + i,
                "max_tokens": 400, "structured_outputs": constraint})
            answer = json.loads(body)
            if status != 200:
                sys.exit(str(answer))
            texts[i], tokens[i] = answer["choices"][0]["message"]["content"], answer["usage"]["completion_tokens"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(streams)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(tokens) / (time.perf_counter() - start), texts, sum(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-path", default="", help="the demo model if not given")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 8])
    args = parser.parse_args()
    servers = {"together": Server(args), "one by one": Server(args, "--disable-forced-tokens")}
    together, alone = servers.values()
    print(f"{'case':26}{'streams':>8}{'together':>12}{'one by one':>12}{'ratio':>8}{'forced':>8}{'refused':>9}")
    for name, constraint in cases():
        for streams in args.streams:
            speeds = {server: [] for server in servers}
            counts = [together.metric(f"portico_{kind}_tokens_total") for kind in ("forced", "refused_forced")]
            tokens = 0
            for round_number in range(-1, args.rounds):  # one to warm up
                results = {}
                for server_name, server in servers.items():
                    speed, results[server_name], count = server.run(constraint, streams, 100 * (round_number + 1))
                    if round_number >= 0:
                        speeds[server_name].append(speed)
                tokens += count
                if results["together"] != results["one by one"]:
                    sys.exit(f"{name}: the answers differ")
            medians = [statistics.median(values) for values in speeds.values()]
            shares = [(together.metric(f"portico_{kind}_tokens_total") - before) / tokens
                      for kind, before in zip(("forced", "refused_forced"), counts)]
            print(f"{name:26}{streams:8}{medians[0]:12.0f}{medians[1]:12.0f}{medians[0] / medians[1]:8.2f}"
                  f"{shares[0]:8.0%}{shares[1]:9.0%}", flush=True)
    for server in (together, alone):
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
