"""Grammars that are made to hurt, and endless variants of them."""
import json


def named(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def nested(depth, leaf):
    for _ in range(depth):
        leaf = {"type": "array", "items": leaf}
    return leaf


def branching(depth):
    """2^depth ways to hold at once."""
    return {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(depth)],
            "properties": {f"{c}{i}": {"type": "integer"} for i in range(depth) for c in "ab"}}


def overlapping(rules):
    """Rules of which each may begin and end behind each letter: a mask has to do with all of them at each."""
    numbers = range(rules)
    return "\n".join([f"root ::= ({' | '.join(f'a{i}' for i in numbers)})* \".\""]
                     + [f'a{i} ::= b{i} | [a-z] a{i} "{i}"' for i in numbers]
                     + [f'b{i} ::= [a-z ] [a-z ]? [a-z]? | "#{i};"' for i in numbers])


HOSTILE = [
    named(nested(100, {"type": "integer"})),
    named({"enum": [f"{'x' * 100}{i}" for i in range(4000)]}),
    named({"type": "string", "pattern": "(a{1,100}){1,100}"}),
    named({"type": "string", "pattern": "(" * 300 + "a" + ")" * 300}),
    named({"type": "string", "maxLength": 10**9}),
    named({"type": "array", "items": {"type": "array", "maxItems": 900, "items": {"type": "null"}}, "maxItems": 10**7}),
    named(branching(40)),
    named({"properties": {f"p{i}": {"type": "string"} for i in range(30000)}}),
    named({"$ref": "#"}),
    named({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    {"regex": "(a|a)*" * 200},
    {"regex": "(" * 5000},
    {"regex": "((a{0,100}){0,100}){0,100}"},
    {"regex": "[\\u0000-\\u{10ffff}]{10000}" * 20},
    {"ebnf": "root ::= root root | root"},
    {"ebnf": "root ::= " + "(" * 20000 + '"a"' + ")" * 20000},
    {"ebnf": 'root ::= ("a"{0,9000} "b"{0,9000}){0,9000}'},
    {"ebnf": "\n".join(["root ::= r0"] + [f'r{i} ::= r{i + 1} r{i + 1} | "a"' for i in range(3000)] + ['r3000 ::= "b"'])},
    {"structural_tag": {"type": "structural_tag", "format": json.loads(
        '{"type":"sequence","elements":[' * 60 + '{"type":"any_text"}' + "]}" * 60)}},
    {"guided_choice": ["y" * 1000 + str(i) for i in range(500)]},
    {"ebnf": overlapping(100)},
]


def variant(i):
    """The i-th of endless different ones: only equal texts share a compilation."""
    fields = json.loads(json.dumps(HOSTILE[i % len(HOSTILE)]))
    tail = f"z{i}"
    if "response_format" in fields:
        fields["response_format"]["json_schema"]["schema"]["title"] = tail
    elif "regex" in fields:
        fields["regex"] += tail
    elif "ebnf" in fields:
        fields["ebnf"] += f'\n{tail} ::= "z"'
    elif "guided_choice" in fields:
        fields["guided_choice"].append(tail)
    return fields
