"""portico's chat templates against Jinja2 as transformers sets it up, on generated templates."""
import copy
import json
import os
import pathlib

import pytest

import portico
import snippets
from compare import Differences, answer, same

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESSAGES = [{"role": "user", "content": "hi"}]
TEMPLATES = 4000 if os.environ.get("PORTICO_CI") == "extended" else 800


@pytest.fixture(scope="module")
def compiled():
    utils = pytest.importorskip("transformers.utils.chat_template_utils")
    return utils._compile_jinja_template


def render_alike_or_both_fail(compiled, sources):
    differences = Differences()
    rendered = 0
    for source in sources:
        context = copy.deepcopy(snippets.CONTEXT)
        theirs = answer(lambda: compiled(source).render(messages=MESSAGES, **context))
        ours = answer(lambda: portico.ChatTemplate(source).render(MESSAGES, variables=snippets.CONTEXT))
        rendered += theirs is not None and theirs[0]
        if theirs is not None and not theirs[0]:
            theirs, ours = (False, ""), (ours[0], "" if not ours[0] else ours[1])
        if theirs is not None and " object at 0x" not in str(theirs[1]):
            same(differences, "render", source, theirs, ours)
    assert rendered > len(sources) / 5  # the generator must not make errors alone
    differences.check()


def test_generated_templates_render_alike_or_both_fail(compiled, seeded):
    render_alike_or_both_fail(compiled, [snippets.template(seeded) for _ in range(TEMPLATES)])


def test_generated_formats_are_made_alike_or_both_refused(compiled, seeded):
    render_alike_or_both_fail(compiled, [f"{{{{ {snippets.formatted(seeded)} }}}}" for _ in range(TEMPLATES)])


def conversations(random, count):
    import texts
    for _ in range(count):
        out = [{"role": "system", "content": texts.text(random)}] if random.random() < 0.5 else []
        for i in range(random.randint(1, 5)):
            out.append({"role": "user", "content": texts.text(random)})
            out.append({"role": "assistant", "content": texts.text(random)})
        yield out if random.random() < 0.5 else out[:-1]


def test_apply_chat_template_agrees_with_transformers(seeded):
    transformers = pytest.importorskip("transformers")
    folder = str(ROOT / "models/demo")
    reference = transformers.AutoTokenizer.from_pretrained(folder)
    ours = portico.ChatTemplate.from_pretrained(folder)
    tools = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}]
    differences = Differences()
    for conversation in conversations(seeded, 300):
        ends_with_answer = conversation[-1]["role"] == "assistant" and bool(conversation[-1]["content"].strip())
        options = {"tools": tools if seeded.random() < 0.3 else None}
        if ends_with_answer and seeded.random() < 0.5:
            options["continue_final_message"] = True
        else:
            options["add_generation_prompt"] = seeded.random() < 0.5
        for tokenize in (False, True):
            theirs = answer(lambda: plain(reference.apply_chat_template(conversation, tokenize=tokenize, **options)))
            mine = answer(lambda: plain(ours.apply_chat_template(conversation, tokenize=tokenize, **options)))
            same(differences, f"apply_chat_template({options}, tokenize={tokenize})", json.dumps(conversation), theirs, mine)
    differences.check()


def plain(value):
    return value if isinstance(value, str) else {name: list(value[name]) for name in ("input_ids", "attention_mask")}
