"""Outputs as models of each family write them, made at random: calls whose arguments hold anything that JSON can, whole, cut off,
mixed with the markers of other families. Through `portico parse`, with fixed seeds."""
import json
import random
import subprocess

import pytest

from conftest import BINARY

WORDS = ["a", "Köln", "日本", "🙂", " ", "\n", '"', "\\", "{", "}", "[", "]", ",", ":", "<", ">", "</", "'", "`", "```", "null", "true",
         "\x7f", "(", ")", "=", ";", "|", "\\n", "\\u00e9", '\\"', "\r\n", '"}}', '{"name": "g", "arguments": {}}', "e9", "&amp;"]
OTHERS = ["<tool_call>", "</tool_call>", "<think>", "</think>", "[TOOL_CALLS]", "<|python_tag|>", "<｜tool▁calls▁begin｜>",
          "<function=", "</function>", "<parameter=", "<arg_key>", "<invoke name=", "<|tool_call>", "<|channel|>", "functools["]
NAMES = ["get_weather", "f", "ns.run", "do_it_2"]
SCHEMA = {"city": {"type": "string"}, "days": {"type": "integer"}, "opts": {"type": "object"}, "list": {"type": "array"},
          "flag": {"type": "boolean"}, "note": {"type": ["string", "null"]}}


def tools(names):
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": SCHEMA}}} for name in names]


class Dice(random.Random):
    def string(self, most, taken, others):
        while True:
            text = "".join(self.choice(OTHERS if self.random() < others else WORDS) for _ in range(self.randint(0, most)))
            if not any(marker in text for marker in taken):
                return text

    def value(self, depth, taken, others):
        kind = self.random()
        if depth and kind < 0.2:
            return {self.string(2, taken, 0) or "k": self.value(depth - 1, taken, others) for _ in range(self.randint(0, 3))}
        if depth and kind < 0.4:
            return [self.value(depth - 1, taken, others) for _ in range(self.randint(0, 3))]
        return self.string(6, taken, others) if kind < 0.7 else self.choice([0, -1, 1.5, 1e20, True, False, None, 12345678901234567890])

    def arguments(self, taken, others):
        made = {"city": self.string(6, taken, others), "days": self.choice([0, -3, 10**12]), "flag": self.random() < 0.5,
                "opts": {"k": self.value(1, taken, others)}, "list": [self.value(1, taken, others)],
                "note": self.choice([None, self.string(3, taken, others) + "."])}
        return {key: made[key] for key in self.sample(sorted(made), self.randint(0, 4))}

    def json(self, value):
        return json.dumps(value, ensure_ascii=self.random() < 0.5, indent=self.choice([None, None, 2]))


def written(value):
    """A value where strings stand without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def objects(begin, between, end, name="name", arguments="arguments"):
    return lambda dice, calls: begin + between.join(
        f'{{"{name}": "{n}", "{arguments}": {dice.json(a)}}}' for n, a in calls) + end


def named(begin, call, end):
    return lambda dice, calls: begin + "".join(call.format(i=i, n=n, a=dice.json(a)) for i, (n, a) in enumerate(calls)) + end


def tagged(begin, call, pair, call_end, end, values=written):
    return lambda dice, calls: begin + "".join(
        call.format(n=n) + "".join(pair.format(k=k, v=values(v), s="true" if isinstance(v, str) else "false")
                                   for k, v in a.items()) + call_end for n, a in calls) + end


def literal(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(map(literal, value)) + "]" if isinstance(value, list) else repr(value)


def python(begin, between, end):
    return lambda dice, calls: begin + between.join(
        f"{n}({', '.join(f'{k}={literal(v)}' for k, v in a.items())})" for n, a in calls) + end


def braces(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{braces(v)}" for k, v in value.items()) + "}"
    return "[" + ",".join(map(braces, value)) + "]" if isinstance(value, list) else (
        f'<|"|>{value}<|"|>' if isinstance(value, str) else json.dumps(value))


BAR = "<｜DSML｜"
# How a family writes calls, and what cannot stand in its strings.
FORMS = {
    "hermes": (objects("<tool_call>\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"), ()),
    "mistral": (objects("[TOOL_CALLS] [", ", ", "]"), ()),
    "llama3": (objects("<|python_tag|>", "; ", "", arguments="parameters"), ()),
    "json": (objects("[", ", ", "]", name="function"), ()),
    "granite": (objects("<|tool_call|>[", ", ", "]"), ()),
    "cohere_command4": (objects("<|START_ACTION|>[\n", ",\n", "\n]<|END_ACTION|>", "tool_name", "parameters"), ()),
    "apertus2509": (named("<|tools_prefix|>[", '{{"{n}": {a}}},', "]<|tools_suffix|>"), ()),
    "inkling": (named("", '<|message_model|>{n}<|content_invoke_tool_json|>{{"name": "{n}", "args": {a}}}<|end_message|>', ""), ()),
    "deepseekv3": (named("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{a}\n```<｜tool▁call▁end｜>",
                         "<｜tool▁calls▁end｜>"), ()),
    "deepseekv31": (named("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{a}<｜tool▁call▁end｜>",
                          "<｜tool▁calls▁end｜>"), ()),
    "kimi_k2": (named("<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.{n}:{i}<|tool_call_argument_begin|>{a}"
                      "<|tool_call_end|>", "<|tool_calls_section_end|>"), ()),
    "glm45": (tagged("", "<tool_call>{n}\n", "<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n", "</tool_call>\n", ""),
              ("<arg", "</", "\\n")),
    "hunyuan": (tagged("<tool_calls:6x>", "<tool_call:6x>{n}<tool_sep:6x>\n", "<arg_key:6x>{k}</arg_key:6x>\n"
                       "<arg_value:6x>{v}</arg_value:6x>\n", "</tool_call:6x>\n", "</tool_calls:6x>"), ("<arg", "</", "\\n")),
    "qwen3_coder": (tagged("", "<tool_call>\n<function={n}>\n", "<parameter={k}>\n{v}\n</parameter>\n",
                           "</function>\n</tool_call>\n", ""), ("</", "<parameter")),
    "deepseekv32": (tagged(BAR + "function_calls>\n", BAR + 'invoke name="{n}">\n', BAR + 'parameter name="{k}" string="{s}">{v}</｜DSML'
                           "｜parameter>\n", "</｜DSML｜invoke>\n", "</｜DSML｜function_calls>"), ("｜",)),
    "step3": (tagged("<｜tool_calls_begin｜>", '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{n}">',
                     '<steptml:parameter name="{k}">{v}</steptml:parameter>', "</steptml:invoke><｜tool_call_end｜>",
                     "<｜tool_calls_end｜>"), ("｜",)),
    "beam": (tagged("", " to={n}<|channel|>analysis <|constrain|>xml<|message|>",
                    '<rfl:parameter name="{k}">\n{v}\n</rfl:parameter>', "<|end|><|start|>assistant", ""), ("<|",)),
    "pythonic": (python("[", ", ", "]"), ()),
    "olmo3": (python("<function_calls>\n", "\n", "\n</function_calls>"), ()),
    "gemma4": (lambda dice, calls: "".join(f"<|tool_call>call:{n}{braces(a)}<tool_call|>" for n, a in calls),
               ('"', "{", "}", "[", "]", ",", ":", "<", ">", " ", "\n", "k")),
}


def parse(requests):
    run = subprocess.run([BINARY, "parse", "--jsonl"], text=True, capture_output=True, timeout=600,
                         input="".join(json.dumps(request) + "\n" for request in requests))
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.split("\n") if line]


def cuts(dice, text):
    yield list(text)
    for _ in range(3):
        places = sorted(dice.sample(range(len(text) + 1), min(len(text), dice.randint(1, 8))))
        yield [text[a:b] for a, b in zip([0, *places], [*places, len(text)])]


@pytest.mark.parametrize("family", FORMS)
def test_what_a_model_wrote_is_what_comes_out(family):
    form, taken = FORMS[family]
    dice = Dice(family)
    requests, checks = [], []

    def ask(text, check, **more):
        """The text whole, then cut in several ways."""
        request = {"id": len(requests), "tool_call_parser": family, "tools": tools(NAMES), **more}
        requests.append({**request, "text": text})
        checks.append(check)
        for chunks in cuts(dice, text):
            requests.append({**request, "chunks": chunks})
            checks.append(None)

    for _ in range(25):
        calls = [(dice.choice(NAMES), dice.arguments(taken, dice.choice([0, 0.2]))) for _ in range(dice.randint(1, 3))]
        lead = dice.choice(["", "Let me see.\n", "Über alles: "])
        text = lead + form(dice, calls)
        ask(text, (lead, calls, True))
        ask(text[:dice.randint(0, len(text))], (lead, calls, False))
        pieces = [text[i:i + dice.randint(0, 30)] for i in (dice.randint(0, len(text)) for _ in range(5))]
        ask("".join(piece + dice.choice(OTHERS + WORDS) for piece in pieces), None)

    got = parse(requests)
    whole = {}
    for request, check, answer in zip(requests, checks, got, strict=True):
        assert "error" not in answer
        assert whole.setdefault(request["id"], answer) == answer, request
        if check is None:
            continue
        lead, calls, finished = check
        names = [call["name"] for call in answer["tool_calls"]]
        for call in answer["tool_calls"][:None if finished else -1]:
            json.loads(call["arguments"])
        if finished:
            assert names == [name for name, _ in calls], request
            assert [json.loads(call["arguments"]) for call in answer["tool_calls"]] == [a for _, a in calls], request
            assert answer["content"].strip() == lead.strip()
        else:
            assert names == [name for name, _ in calls][:len(names)]
