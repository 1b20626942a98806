"""Schemas as grammars: nothing that a schema forbids passes. Against JSON-Schema-Test-Suite and PyPI's jsonschema."""
import collections
import json
import os
import random

import jsonschema
import pytest

from json_schema_suite import Probe, groups, spellings


@pytest.fixture
def probe():
    running = Probe()
    yield running
    running.close()


def test_no_forbidden_instance_of_the_suite_passes(probe):
    counts = collections.Counter()
    wrong, refused = [], collections.Counter()
    for file, group in groups():
        counts["groups"] += 1
        texts = [list(spellings(test["data"])) for test in group["tests"]]
        answer = probe.ask(group["schema"], [text for variants in texts for text in variants])
        if "error" in answer:
            refused[file] += 1
            continue
        counts["taken"] += 1
        takes = iter(answer["takes"])
        passed = [any([next(takes) for _ in variants]) for variants in texts]
        forbidden = [test["description"] for test, good in zip(group["tests"], passed) if good and not test["valid"]]
        missed = [test for test, good in zip(group["tests"], passed) if not good and test["valid"]]
        if forbidden:
            wrong.append((file, group["description"], forbidden))
        elif not missed:
            counts["exact"] += 1
    print(dict(counts), "refused:", dict(refused))
    assert not wrong
    assert counts["groups"] > 300
    assert counts["taken"] >= 200 and counts["exact"] >= 200


WORDS = ["a", "b", "name", "item", "x y", "ä", 'q"t']


def random_schema(draw, depth=0):
    """A schema out of what is supported, not necessarily satisfiable."""
    kinds = ["integer", "number", "string", "enum", "const", "boolean", "null", "any"]
    if depth < 3:
        kinds += ["object", "array", "anyOf", "allOf", "object", "array"]
    kind = draw.choice(kinds)
    low = draw.randint(-30, 30)
    if kind == "integer":
        return {"type": "integer", "minimum": low, "maximum": low + draw.randint(0, 300)} if draw.random() < 0.7 else {
            "type": "integer", "multipleOf": draw.randint(1, 12)}
    if kind == "number":
        return {"type": "number", draw.choice(["minimum", "exclusiveMinimum"]): low / 8,
                draw.choice(["maximum", "exclusiveMaximum"]): low / 8 + draw.randint(1, 50) / 4}
    if kind == "string":
        least = draw.randint(0, 4)
        return draw.choice([{"type": "string"}, {"type": "string", "minLength": least, "maxLength": least + draw.randint(0, 30)},
                            {"type": "string", "pattern": draw.choice(["^[a-c]{2,4}$", "x+", "^(ab|c)*$", "^\\d\\w?\\S$"])},
                            {"type": "string", "format": draw.choice(["date", "time", "uuid", "ipv4", "email"])}])
    if kind == "enum":
        return {"enum": draw.sample([1, "a", None, True, 2.5, {"k": [1]}, "b\n", -7], draw.randint(1, 4))}
    if kind == "const":
        return {"const": draw.choice([0, "é", [1, {"z": None}], False])}
    if kind in ("boolean", "null"):
        return {"type": kind}
    if kind == "any":
        return draw.choice([{}, True, {"minimum": low}, {"maxItems": 2, "minLength": 1}, {"type": ["string", "null"]}])
    if kind == "array":
        schema = {"type": "array", "items": random_schema(draw, depth + 1), "maxItems": draw.randint(1, 4)}
        if draw.random() < 0.4:
            schema["prefixItems"] = [random_schema(draw, depth + 1) for _ in range(draw.randint(1, 2))]
        return schema
    if kind == "object":
        names = draw.sample(WORDS, draw.randint(0, 3))
        schema = {"type": "object", "properties": {name: random_schema(draw, depth + 1) for name in names},
                  "required": [name for name in names if draw.random() < 0.5]}
        schema["additionalProperties"] = draw.choice([False, False, True, random_schema(draw, depth + 2)])
        if draw.random() < 0.2 and schema["additionalProperties"] is False:
            schema["maxProperties"] = 2
        return schema
    return {kind: [random_schema(draw, depth + 1) for _ in range(2)]}


def same(value):
    """NaN and infinities aside, what Python reads."""
    return json.loads(value)


def test_what_masks_allow_is_valid(probe):
    draw = random.Random(23)
    finished = taken = 0
    count = 10_000 if "PORTICO_FUZZ_RUNS" in os.environ else 1500
    for seed in range(count):
        schema = random_schema(draw)
        answer = probe.ask(schema, made=3, seed=seed)
        if "error" in answer:
            continue
        taken += 1
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for text in answer["made"]:
            finished += 1
            error = jsonschema.exceptions.best_match(validator.iter_errors(same(text)))
            assert error is None, (schema, text, error)
    print(f"{taken} schemas taken, {finished} answers finished")
    assert taken > 0.6 * count and finished > count
