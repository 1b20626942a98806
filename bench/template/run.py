"""Chat templates: Portico, Jinja2 as transformers sets it up and minijinja on real templates and conversations.

Portico renders from parsed messages in C++ (and through its Python module where that is installed beside this Python);
the others from Python objects with the template compiled before. Microseconds a render, one core, medians; a render is
exact where it equals Jinja2's.
    ./dev bench template [--templates DIR] [--names NAME...] [--secs 0.15] [--verbose]
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PORTICO_BUILD", ROOT / "build/release"))
WORK = ROOT / "build/bench/template"
CLOCK = datetime.datetime(2024, 7, 26, 12, 34, 56)
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
NAMES = """llamacpp--meta-llama-Llama-3.2-3B-Instruct llamacpp--Qwen-Qwen3-0.6B llamacpp--Qwen-Qwen2.5-7B-Instruct
tok--deepseek-v3 llamacpp--deepseek-ai-DeepSeek-V3.1 ortx--gpt-oss trl--gemma3 mistralcommon--v7
llamacpp--mistralai-Mistral-Nemo-Instruct-2407 llamacpp--moonshotai-Kimi-K2 llamacpp--GLM-4.6 llamacpp--Qwen3-Coder
llamacpp--NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use llamacpp--microsoft-Phi-3.5-mini-instruct
ovms--chat_template_phi4_mini hfjs--Qwen-Qwen3.5-4B vllm--tool_chat_template_llama4_json
llamacpp--meetkai-functionary-medium-v3.2 axolotl--gemma4 vllm--template_chatml""".split()
WORDS = """the of a to in is was for on that with as by at from it his an are which or were this be had not have but first
one also their has its after they two who been other when time during there into all may more between years city many
than state used new some would over such most can only under these later about three then part known world team""".split()


def environment():
    """Runs this script again in a Python that has the peers."""
    python = WORK / "env/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", WORK / "env"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "jinja2==3.1.6", "minijinja==2.12.0"], check=True)
    if pathlib.Path(sys.prefix) != WORK / "env":
        os.execv(python, [str(python), *sys.argv])


def conversations():
    rng = random.Random(11)

    def text(low, high):
        return " ".join(rng.choices(WORDS, k=rng.randint(low, high))).capitalize() + "."

    def chat(turns, system):
        messages = [{"role": "system", "content": "You are a helpful assistant."}] if system else []
        for i in range(turns):
            messages.append({"role": "assistant" if i % 2 else "user", "content": text(20, 120)})
        return messages if turns % 2 else messages[:-1]

    def tool(i):
        field = {"type": "string", "description": text(5, 8)}
        return {"type": "function", "function": {"name": f"tool_{i}", "description": text(15, 20), "parameters": {
            "type": "object", "required": ["query"],
            "properties": {"query": field, "limit": {"type": "integer", "description": text(4, 6)},
                           "mode": {**field, "enum": ["fast", "exact"]}}}}}

    with_tools = [{"role": "system", "content": "You are a helpful assistant."}]
    for i in range(5):
        call = {"id": f"call{i:05}", "type": "function",
                "function": {"name": f"tool_{i}", "arguments": {"query": text(5, 5), "limit": 3}}}
        with_tools += [{"role": "user", "content": text(40, 40)},
                       {"role": "assistant", "content": "", "tool_calls": [call]},
                       {"role": "tool", "tool_call_id": call["id"], "name": f"tool_{i}", "content": text(60, 60)},
                       {"role": "assistant", "content": text(50, 50)}]
    return {"2": (chat(2, True), None), "20": (chat(20, True), None), "200": (chat(200, True), None),
            "20+tools": (with_tools[:-1], [tool(i) for i in range(8)])}


def variables(messages, tools):
    return {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": True, **SPECIAL}


def fail(message):
    raise ValueError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys,
                      default=lambda o: dict(o) if hasattr(o, "keys") else list(o))


def jinja2_render(source):
    import jinja2.ext
    import jinja2.sandbox

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("same"), [], [], body).set_lineno(line)

        def same(self, caller):
            return caller()

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = to_json
    made.globals.update(raise_exception=fail, strftime_now=CLOCK.strftime)
    template = made.from_string(source)
    return lambda messages, tools: template.render(**variables(messages, tools))


def minijinja_render(source):
    import minijinja
    made = minijinja.Environment(trim_blocks=True, lstrip_blocks=True)
    made.auto_escape_callback = lambda name: False
    made.add_filter("tojson", to_json)
    made.add_function("raise_exception", fail)
    made.add_function("strftime_now", CLOCK.strftime)
    made.add_template("chat", source)
    return lambda messages, tools: made.render_template("chat", **variables(messages, tools))


def module_render(source):
    import portico
    template = portico.ChatTemplate(source, SPECIAL)
    return lambda messages, tools: template.render(messages, tools=tools, add_generation_prompt=True)


def median_us(render, request, seconds):
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        render(*request)
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def cpp_render(path, request, seconds):
    """(µs, text)"""
    request_file, output = WORK / "request.json", WORK / "output.txt"
    request_file.write_text(json.dumps({"messages": request[0], "tools": request[1], "special": SPECIAL}))
    done = subprocess.run([BUILD / "bench/template_render", path, request_file, str(seconds), output],
                          capture_output=True, text=True, env={**os.environ, "PORTICO_FIXED_TIME": CLOCK.isoformat()})
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return float(done.stdout), output.read_bytes().decode()


def measure(path, talk, request, options):
    """{peer: µs}, and what was not exact."""
    source = path.read_bytes().decode()
    want_of = jinja2_render(source)
    want = want_of(*request)
    us, wrong = {"jinja2": median_us(want_of, request, options.secs)}, []
    try:
        us["portico"], got = cpp_render(path, request, options.secs)
        if got != want:
            wrong.append("portico differs")
    except ValueError as error:
        wrong.append(f"portico: {error}")
    for name, make in (("minijinja", minijinja_render), ("python", module_render)):
        try:
            render = make(source)
            got = render(*request)
            us[name] = median_us(render, request, options.secs)
            if got != want:
                wrong.append(f"{name} differs")
        except ImportError:
            pass
        except Exception as error:  # a peer's own kinds
            wrong.append(f"{name}: {str(error).splitlines()[0][:80]}")
    return us, wrong


def report(rows):
    def times(of, base):
        return [row[base] / row[of] for row in rows if of in row and base in row]

    for base, target in (("jinja2", 20), ("minijinja", 3)):
        ratios = times("portico", base)
        print(f"portico x {base:9}  median {statistics.median(ratios):6.1f}  least {min(ratios):6.1f}  "
              f"target {target} at the median" + (", none below 1" if base == "minijinja" else ""))
    if through := times("python", "jinja2"):
        print(f"its Python module x jinja2  median {statistics.median(through):.1f}  target 5")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", type=pathlib.Path, default=ROOT.parent / "shared/data/templates")
    parser.add_argument("--names", nargs="*", default=NAMES, help="files of that folder, without .jinja")
    parser.add_argument("--secs", type=float, default=0.15, help="for each cell and peer")
    parser.add_argument("--verbose", action="store_true", help="print every cell")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    environment()
    if "PORTICO_BUILD" not in os.environ:
        subprocess.run(["ninja", "-C", BUILD, "template_render"], check=True, stdout=subprocess.DEVNULL)
    paths = [path for name in options.names if (path := options.templates / f"{name}.jinja").exists()]
    if not paths:
        print(f"no templates in {options.templates}; only the demo model's")
        paths = [ROOT / "models/demo/chat_template.jinja"]
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    for talk, request in conversations().items():
        mine = []
        for path in paths:
            try:
                us, wrong = measure(path, talk, request, options)
            except Exception as error:  # Jinja2 refuses this conversation
                print(f"  {path.stem} {talk}: refused by Jinja2: {str(error)[:80]}")
                continue
            mine.append(us)
            for text in wrong:
                print(f"  {path.stem} {talk}: {text}")
            if options.verbose:
                print(f"  {path.stem:56} {talk:8} " + "  ".join(f"{n} {v:.1f}" for n, v in us.items()))
        rows += mine
        medians = {name: statistics.median(r[name] for r in mine if name in r)
                   for name in ("portico", "python", "minijinja", "jinja2") if any(name in r for r in mine)}
        print(f"{talk:9} {len(mine):2} templates  " + "  ".join(f"{n} {v:8.1f} us" for n, v in medians.items()), flush=True)
    report(rows)


if __name__ == "__main__":
    main()
