"""Masks and compilation: Portico beside xgrammar's core (its own reading of schemas) and llguidance, in one run.

    pip install llguidance==1.9.1 numpy; ninja -C build/release grammar_masks
    python bench/grammar/run.py --tokenizer DIR [--rows 151936] [--rounds 5]

Each round takes every case once with each contender, in turn. A token's time is the median over the rounds, so that a neighbour on the
machine does not count; mean and p99 are over a case's tokens. "Cold" is until a request has its grammar from the process that compiles,
"again" until an equal one has it. A contender that refuses a schema or an answer shows as such. llguidance is called from Python, which
costs it a microsecond or so a mask. What grammars cost a server's streams: streams.py.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = "The quick brown fox jumps over the lazy dog and nobody knows why it should. "


def string(**bounds):
    return {"type": "string", **bounds}


def closed(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def tools(count):
    branches = [closed(name={"const": f"tool_{i}"}, arguments=closed(
        query=string(), limit={"type": "integer"}, **{f"option_{i}": {"enum": ["fast", "exact", i]}})) for i in range(count)]
    answer = {"name": f"tool_{count - 1}", "arguments": {"query": WORDS, "limit": 7, f"option_{count - 1}": "exact"}}
    return {"anyOf": branches}, answer


def cases():
    """Name, whether it bounds lengths, schema, answer."""
    person = closed(name=string(), age={"type": "integer"}, email=string(), tags={"type": "array", "items": string()})
    someone = {"name": "Ada Lovelace", "age": 36, "email": "ada@example.org", "tags": ["first", "programmer", WORDS]}
    yield "flat", False, person, someone
    yield "nested", False, closed(people={"type": "array", "items": person}, total={"type": "number"}), {
        "people": [someone] * 4, "total": 17.25}
    yield "enums", False, closed(**{f"f{i}": {"enum": ["red", "green", "blue", i]} for i in range(40)}), {
        f"f{i}": "green" for i in range(40)}
    yield "any object", False, {"type": "object"}, {"a": [1, 2.5, None, {"b": WORDS}], "c": {"d": True}}
    yield "recursive", False, {"$ref": "#/$defs/t", "$defs": {"t": {
        "type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}},
        "required": ["v", "next"], "additionalProperties": False}}}, {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}}
    yield "128 tools", False, *tools(128)
    for most in (20, 200, 2000, 20000):
        yield f"maxLength {most}", True, closed(a=string(maxLength=most), b=string(maxLength=most)), {
            "a": (WORDS * 300)[:most * 9 // 10][:4000], "b": "short"}


class Worker:
    def __init__(self, tokenizer, rows, peer):
        self.peer = peer
        self.process = subprocess.Popen([ROOT / "build/release/bench/grammar_masks", tokenizer, str(rows)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, schema, answer):
        print(json.dumps({"schema": schema, "answer": answer, "peer": self.peer}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


class Llguidance:
    def __init__(self, tokenizer, rows):
        import llguidance
        import llguidance.numpy
        self.lib = llguidance
        text = (pathlib.Path(tokenizer) / "tokenizer.json").read_text(encoding="utf-8")
        self.tokens = llguidance.LLTokenizer(text, n_vocab=rows)
        self.mask = llguidance.numpy.allocate_token_bitmask(1, rows)

    def run(self, schema, answer):
        start = time.perf_counter()
        grammar = self.lib.LLMatcher.grammar_from_json_schema(json.dumps(schema))
        matcher = self.lib.LLMatcher(self.tokens, grammar)
        if matcher.get_error():
            return {"error": matcher.get_error()}
        self.lib.numpy.fill_next_token_bitmask(matcher, self.mask, 0)
        compile_ms = 1000 * (time.perf_counter() - start)
        fills = []
        for token in self.tokens.tokenize_str(answer):
            start = time.perf_counter_ns()
            self.lib.numpy.fill_next_token_bitmask(matcher, self.mask, 0)
            fills.append((time.perf_counter_ns() - start) / 1000)
            if not matcher.consume_token(token):
                return {"error": "the answer does not fit"}
        return {"compile_ms": compile_ms, "mask_us": fills}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--rows", type=int, default=151936)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", default="", help="only cases whose name holds this")
    args = parser.parse_args()
    contenders = {"portico": Worker(args.tokenizer, args.rows, False), "xgrammar": Worker(args.tokenizer, args.rows, True),
                  "llguidance": Llguidance(args.tokenizer, args.rows)}
    print(f"{'case':16}{'contender':12}{'compile ms':>12}{'mask mean µs':>14}{'p99 µs':>10}{'tokens':>8}{'cold ms':>10}{'again ms':>10}")
    sums = {True: {}, False: {}}
    for name, bounded, schema, answer in cases():
        if args.case not in name:
            continue
        runs = {contender: [] for contender in contenders}
        for _ in range(args.rounds):
            for contender, worker in contenders.items():
                runs[contender].append(worker.run(schema, json.dumps(answer)))
        for contender, results in runs.items():
            error = next((r["error"] for r in results if "error" in r), None)
            if error:
                print(f"{name:16}{contender:12}  {error[:90]}")
                continue
            times = sorted(statistics.median(token) for token in zip(*(r["mask_us"] for r in results)))
            mean = statistics.mean(times)
            p99 = times[len(times) * 99 // 100]
            cost = statistics.median(r["compile_ms"] for r in results)
            sums[bounded].setdefault(contender, {})[name] = mean
            requests = "".join(f"{statistics.median(r[key] for r in results):10.{digits}f}"
                               for key, digits in (("cold_ms", 1), ("again_ms", 3)) if key in results[0])
            print(f"{name:16}{contender:12}{cost:12.1f}{mean:14.2f}{p99:10.1f}{len(times):8}{requests}")
    for bounded, rival in ((False, "xgrammar"), (True, "llguidance"), (False, "llguidance"), (True, "xgrammar")):
        ours, theirs = sums[bounded].get("portico", {}), sums[bounded].get(rival, {})
        both = ours.keys() & theirs.keys()
        if both:
            ratio = sum(ours[n] for n in both) / sum(theirs[n] for n in both)
            print(f"mask, {'with' if bounded else 'without'} length bounds: portico / {rival} = {ratio:.2f} ({len(both)} cases)")


if __name__ == "__main__":
    main()
