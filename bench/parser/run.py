"""Reading a model's output: Portico beside smg's crates tool-parser and reasoning-parser, in one run.

    ninja -C build/release parser_worker
    CARGO_TARGET_DIR=build/smg-parser cargo build --release --manifest-path bench/parser/smg/Cargo.toml
    python bench/parser/run.py [--rounds 7] [--tokenizer DIR]

Texts come in chunks as a model's tokens do: cut by the tokenizer, or into pieces of four characters without one. Each round takes
every case once with each contender, in turn; the figure is the processor time of a chunk, the least over the rounds, so that a
neighbour on the machine does not count. A case counts where both find the same calls.
"""
import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROSE = ("The quick brown fox jumps over the lazy dog, and nobody knows why it should; but every evening, when the light goes, "
         "it does so again. ") * 40
FORECAST = ("Clear skies in the morning, a light wind from the west, and showers towards the evening. " * 12).strip()
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "text": {"type": "string"}, "days": {"type": "integer"}}}}}
    for name in ("get_weather", "publish")]
CALLS = [("get_weather", {"city": "Cologne", "days": 3}), ("publish", {"text": FORECAST, "days": 2})]


def each(form, calls=None):
    return "".join(form.format(name=name, json=json.dumps(arguments)) for name, arguments in calls or CALLS)


def tagged(begin, key, value, end):
    return "".join(begin.format(name=name) + "".join(
        key.format(key=k) + value.format(value=v) for k, v in arguments.items()) + end for name, arguments in CALLS)


def python_list():
    return "[" + ", ".join(f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})" for name, arguments in CALLS) + "]"


# Name, Portico's parsers, smg's, whether it begins inside reasoning, text.
CASES = [
    ("hermes", ("hermes", ""), ("qwen", ""), False,
     each('<tool_call>\n{{"name": "{name}", "arguments": {json}}}\n</tool_call>\n')),
    ("llama", ("llama3", ""), ("llama", ""), False,
     "<|python_tag|>" + json.dumps({"name": "publish", "parameters": CALLS[1][1]})),
    ("mistral", ("mistral", ""), ("mistral", ""), False,
     "[TOOL_CALLS] " + json.dumps([{"name": name, "arguments": arguments} for name, arguments in CALLS])),
    ("deepseek v3.1", ("deepseekv31", ""), ("deepseek31", ""), False,
     "<｜tool▁calls▁begin｜>" + each("<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json}<｜tool▁call▁end｜>") + "<｜tool▁calls▁end｜>"),
    ("kimi k2", ("kimi_k2", ""), ("kimik2", ""), False,
     "<|tool_calls_section_begin|>" + "".join(
         f"<|tool_call_begin|>functions.{name}:{i}<|tool_call_argument_begin|>{json.dumps(arguments)}<|tool_call_end|>"
         for i, (name, arguments) in enumerate(CALLS)) + "<|tool_calls_section_end|>"),
    ("glm 4.5", ("glm45", ""), ("glm45_moe", ""), False,
     tagged("<tool_call>{name}\n", "<arg_key>{key}</arg_key>\n", "<arg_value>{value}</arg_value>\n", "</tool_call>\n")),
    ("qwen3 coder", ("qwen3_coder", ""), ("qwen_xml", ""), False,
     tagged("<tool_call>\n<function={name}>\n", "<parameter={key}>\n", "{value}\n</parameter>\n",
            "</function>\n</tool_call>\n")),
    ("pythonic", ("pythonic", ""), ("pythonic", ""), False, python_list()),
    ("plain text", ("hermes", "qwen3"), ("qwen", "qwen3"), False, PROSE),
    ("reasoning", ("hermes", "qwen3"), ("qwen", "qwen3"), True, PROSE + "</think>" + PROSE),
]
ALONE = [(f"{size // 1000} KB of arguments", "hermes", size) for size in (1_000, 1_000_000)]


class Worker:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, parsers, inside, chunks, passes):
        print(json.dumps({"tool_call_parser": parsers[0], "reasoning_parser": parsers[1], "in_reasoning": inside, "tools": TOOLS,
                          "chunks": chunks, "passes": passes}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def cutter(folder):
    if not folder:
        return lambda text: [text[i:i + 4] for i in range(0, len(text), 4)]
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))

    def cut(text):
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        # Tokens of a part of a character share its place.
        return [piece for piece in (text[a:b] for a, b in dict.fromkeys(offsets)) if piece]
    return cut


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokenizer", default="", help="a folder with tokenizer.json")
    args = parser.parse_args()
    cut = cutter(args.tokenizer)
    ours = Worker(ROOT / "build/release/bench/parser_worker")
    smg = Worker(ROOT / "build/smg-parser/release/smg-parser-worker")
    print(f"{'case':24}{'chunks':>8}{'portico ns/chunk':>18}{'smg ns/chunk':>14}{'ratio':>8}")
    for name, mine, theirs, inside, text in CASES:
        chunks = cut(text)
        runs = {"portico": [], "smg": []}
        for _ in range(args.rounds):
            runs["portico"].append(ours.run(mine, inside, chunks, 200))
            runs["smg"].append(smg.run(theirs, inside, chunks, 20))
        best = {}
        for contender, results in runs.items():
            if "error" in results[0]:
                print(f"{name:24}{contender}: {results[0]['error'][:90]}")
                break
            best[contender] = min(r["ns"] for r in results) / len(chunks)
        if len(best) < 2:
            continue
        same = runs["portico"][0]["names"] == runs["smg"][0]["names"]
        note = "" if same else f"  calls: {runs['portico'][0]['names']}, smg {runs['smg'][0]['names']}"
        print(f"{name:24}{len(chunks):8}{best['portico']:18.0f}{best['smg']:14.0f}{best['smg'] / best['portico']:8.1f}{note}")
    for name, tools, size in ALONE:
        text = each('<tool_call>\n{{"name": "{name}", "arguments": {json}}}\n</tool_call>',
                    [("publish", {"text": (FORECAST * (size // len(FORECAST) + 1))[:size]})])
        chunks = cut(text)
        ns = min(ours.run((tools, ""), False, chunks, max(1, 1_000_000 // size))["ns"] for _ in range(args.rounds))
        print(f"{name:24}{len(chunks):8}{ns / len(chunks):18.0f}{'':14}{'':8}  {ns / len(text):.2f} ns a byte")


if __name__ == "__main__":
    main()
