"""Requests on which Portico in front of SGLang's scheduler is compared with SGLang's own Python server."""
import json
import math
import random

import requests

WORDS = ("once upon a time there was small fox who lived under old oak and wanted to see the sea one day "
         "lighthouse keeper found letter from his sister in garden rain began fall softly").split()
STOPS = [".", " the", "\n", "a", ", ", " she", "fox", "e w"]


def sentence(rng, least=2, most=14):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most))).capitalize()


def sampling(rng, **more):
    params = {"max_new_tokens": rng.randint(1, 24), "temperature": 0, **more}
    if rng.random() < 0.3:
        params["stop"] = rng.sample(STOPS, rng.randint(1, 2))
        params["no_stop_trim"] = rng.random() < 0.3
    if rng.random() < 0.2:
        params["stop_token_ids"] = rng.sample(range(3000), 40)
    if rng.random() < 0.2:
        params["frequency_penalty"] = round(rng.uniform(-1, 1), 2)
    elif rng.random() < 0.2:  # together they depend on an order that SGLang leaves to a set of classes
        params["repetition_penalty"] = round(rng.uniform(0.8, 1.4), 2)
    if rng.random() < 0.15:
        params["logit_bias"] = {str(rng.randrange(3000)): round(rng.uniform(-20, 20), 1)}
    if rng.random() < 0.2:
        params["min_new_tokens"] = rng.randint(0, params["max_new_tokens"])
    if rng.random() < 0.15:
        params["ignore_eos"] = True
    if rng.random() < 0.1:
        params["skip_special_tokens"] = False
    return params


def grammar(rng):
    return rng.choice([
        {"regex": "(yes|no|maybe)( please)?"},
        {"regex": "[0-9]{3}-[a-f]{2}"},
        {"json_schema": '{"type":"object","properties":{"name":{"enum":["fox","owl"]},"age":{"type":"integer"}},'
                        '"required":["name","age"],"additionalProperties":false}'},
        {"ebnf": 'root ::= "the " ("fox" | "owl") " sleeps"'},
    ])


def generate(rng):
    body = {}
    if rng.random() < 0.25:
        body["input_ids"] = [rng.randrange(3000) for _ in range(rng.randint(1, 20))]
    else:
        body["text"] = sentence(rng)
    body["sampling_params"] = sampling(rng)
    kind = rng.random()
    if kind < 0.35:
        body["return_logprob"] = True
        body["logprob_start_len"] = rng.choice([-1, 0, 0, 1]) if "text" in body else -1
        body["top_logprobs_num"] = rng.choice([0, 0, 3])
        if rng.random() < 0.3:
            body["token_ids_logprob"] = rng.sample(range(3000), 3)
        body["return_text_in_logprobs"] = rng.random() < 0.3
    elif kind < 0.45:
        body["sampling_params"]["n"] = 2
    elif kind < 0.6:
        body["stream"] = True
    elif kind < 0.75:
        body["sampling_params"] = {"max_new_tokens": 40, "temperature": 0, **grammar(rng)}
    return "/generate", body


def completion(rng):
    body = {"model": "demo", "prompt": sentence(rng), "max_tokens": rng.randint(1, 20), "temperature": 0}
    if rng.random() < 0.3:
        body["stop"] = rng.sample(STOPS, 1)
    if rng.random() < 0.3:
        body["logprobs"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        body["stream"] = True
    if rng.random() < 0.2:
        body["n"] = 2
    return "/v1/completions", body


def chat(rng):
    messages = [{"role": "user", "content": sentence(rng) + "."}]
    if rng.random() < 0.3:
        messages.insert(0, {"role": "system", "content": "Answer briefly."})
    body = {"model": "demo", "messages": messages, "max_tokens": rng.randint(1, 24), "temperature": 0}
    if rng.random() < 0.3:
        body["stream"] = True
    if rng.random() < 0.3 and not body.get("stream"):
        body.update(logprobs=True, top_logprobs=2)
    if rng.random() < 0.2:
        body["stop"] = rng.sample(STOPS, 1)
    if rng.random() < 0.2:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": {
            "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
            "additionalProperties": False}}}
    return "/v1/chat/completions", body


def is_constrained(body):
    return "response_format" in body or not {"regex", "json_schema", "ebnf"}.isdisjoint(body.get("sampling_params", ()))


def cases(count, constrained, seed=24):
    """So many requests, all of them with a grammar or none."""
    rng = random.Random(seed)
    while count > 0:
        path, body = rng.choices([generate, completion, chat], [3, 1, 1])[0](rng)
        if is_constrained(body) == constrained:
            count -= 1
            yield path, body


def as_sglang_spells(probs):
    """Log-probabilities with parts of characters as SGLang decodes them, not as `bytes:\\xf0`."""
    if isinstance(probs, dict):
        return {key: as_sglang_spells(value) for key, value in probs.items()}
    if isinstance(probs, list):
        return [as_sglang_spells(value) for value in probs]
    if not isinstance(probs, str) or not probs.startswith("bytes:"):
        return probs
    return probs[6:].encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")


def meaning(path, answer):
    """What must be the same in an answer: a list of (text, ids, finish, log-probabilities, prompt tokens)."""
    if path == "/generate":
        rows = answer if isinstance(answer, list) else [answer]
        out = []
        for row in rows:
            if "meta_info" not in row:
                return [("error",)]
            meta = row["meta_info"]
            probs = {k: meta.get(k) for k in ("output_token_logprobs", "input_token_logprobs", "output_top_logprobs",
                                              "input_top_logprobs", "output_token_ids_logprobs",
                                              "input_token_ids_logprobs") if k in meta}
            out.append((row["text"], row["output_ids"], meta["finish_reason"], as_sglang_spells(probs), meta["prompt_tokens"],
                        meta["completion_tokens"]))
        return out
    if "choices" not in answer:
        return [("error",)]
    out = []
    for choice in answer["choices"]:
        text = choice["text"] if "text" in choice else choice["message"]["content"]
        probs = choice.get("logprobs")
        if probs and "content" in probs:
            probs = [[p["token"], p["logprob"], [[t["token"], t["logprob"]] for t in p["top_logprobs"]]]
                     for p in probs["content"]]
        elif probs:
            probs = {k: probs[k] for k in ("tokens", "token_logprobs")}
        out.append((text or "", choice["finish_reason"], choice.get("matched_stop"), as_sglang_spells(probs)))
    return out


def collect_stream(path, events):
    """A stream's events as one whole answer."""
    if path == "/generate":
        return events[-1]
    choices = {}
    for event in events:
        for part in event.get("choices", []):
            whole = choices.setdefault(part["index"], {"index": part["index"], "text": "", "finish_reason": None,
                                                       "matched_stop": None, "logprobs": None})
            whole["text"] += part["text"] if "text" in part else part["delta"].get("content") or ""
            if part.get("finish_reason"):
                whole["finish_reason"] = part["finish_reason"]
                whole["matched_stop"] = part.get("matched_stop")
    return {"choices": [choices[i] for i in sorted(choices)]}


def same(a, b, tolerance=1e-4):
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and (
            math.isclose(a, b, rel_tol=1e-6, abs_tol=tolerance) or a == b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], tolerance) for k in a)
    return a == b


def ask(url, path, body):
    """The status, and what must be the same in the answer."""
    response = requests.post(url + path, json=body, stream=body.get("stream", False), timeout=120)
    if response.status_code != 200:
        return response.status_code, None
    if not body.get("stream"):
        return 200, meaning(path, response.json())
    events = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith(b"data: {")]
    return 200, meaning(path, collect_stream(path, events))


def difference(ours, theirs, path, body):
    """What two servers answer differently, or None."""
    mine, other = ask(ours, path, body), ask(theirs, path, body)
    if mine[0] == other[0] and same(mine[1], other[1]):
        return None
    return f"{path} {json.dumps(body)}\n  ours   {mine}\n  theirs {other}"
