"""A grammar comes after the reasoning: SGLang's schedulers tell where that ends only if they were started with a parser."""
import json
import sys
import types

import grpc
import pytest
import requests
from conftest import ROOT, Server
from grpc_client import Client

from test_sglang import flags, generate

sys.path.insert(0, str(ROOT / "python/portico"))
PARSER = ("--reasoning-parser", "deepseek_r1")
BODY = {"text": "one", "require_reasoning": True, "sampling_params": {"max_new_tokens": 2, "json_schema": '{"type": "object"}'}}


def test_a_grammar_that_would_hold_for_the_reasoning_is_refused(start):
    # SGLang applied it from the first token, and the whole answer became reasoning.
    server = start(*flags(portico=PARSER))
    answer = generate(server, **BODY)
    assert answer.status_code == 400
    assert "started without a --reasoning-parser" in answer.text and "json_schema" in answer.text
    assert generate(server, **{**BODY, "require_reasoning": False}).status_code == 200


def test_a_grammar_after_the_reasoning_is_passed_on_where_sglang_has_a_parser(start):
    server = start(*flags("--stand-in-reasoning-parser", "deepseek-r1", portico=PARSER))
    assert generate(server, **BODY).status_code == 200


# Where it says so the answer begins inside of reasoning; where thinking is switched on it may begin with reasoning.
TEMPLATE = """{%- for message in messages -%}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% if opened is defined and opened -%}<think>{%- endif -%}
{%- endif -%}"""
GRAMMAR = {"regex": "SHOW[0-9]"}  # the stand-in's refusal shows what it got
BEHIND = {**GRAMMAR, "require_reasoning": True}
# SGLang would apply a grammar behind reasoning to nothing where the answer begins without it.
CASES = [({"opened": True}, BEHIND), ({"enable_thinking": True}, GRAMMAR), ({"enable_thinking": False}, GRAMMAR), ({}, GRAMMAR)]


@pytest.fixture(scope="module")
def shows(tmp_path_factory):
    template = tmp_path_factory.mktemp("template") / "template.jinja"
    template.write_text(TEMPLATE)
    server = Server(*flags("--stand-in-reasoning-parser", "qwen3",
                           portico=("--reasoning-parser", "qwen3", "--tool-call-parser", "none", "--chat-template", template)))
    yield server
    server.stop()


def chat(switches):
    return {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "chat_template_kwargs": switches, **GRAMMAR}


def said(answer):
    """What the scheduler's refusal in this body shows."""
    return json.loads(answer["error"]["message"])


@pytest.mark.parametrize("switches, sent", CASES)
def test_a_grammar_comes_after_the_reasoning_only_where_the_answer_begins_with_it(shows, switches, sent):
    answer = requests.post(shows.url + "/v1/chat/completions", json=chat(switches), timeout=60)
    assert answer.status_code == 400
    assert said(answer.json()) == sent
    chunk, = Client(f"127.0.0.1:{shows.port}").sglang.ChatComplete(json_body=json.dumps(chat(switches)).encode())
    assert chunk.status_code == 400
    assert said(json.loads(chunk.json_chunk)) == sent


@pytest.mark.parametrize("reasons, sent", [(True, BEHIND), (False, GRAMMAR)])
def test_where_no_template_says_it_the_request_says_whether_its_answer_begins_with_reasoning(shows, reasons, sent):
    answer = generate(shows, text="one", require_reasoning=reasons, sampling_params={"max_new_tokens": 4, **GRAMMAR})
    assert answer.status_code == 400
    assert said(answer.json()) == sent
    client = Client(f"127.0.0.1:{shows.port}")
    for call in (client.sglang.TextGenerate(text="one", require_reasoning=reasons, sampling_params={"max_new_tokens": 4, **GRAMMAR}),
                 client.scheduler.Generate(request_id="shown", tokenized={"input_ids": [5, 6]}, require_reasoning=reasons,
                                           sampling_params={"max_new_tokens": 4, **GRAMMAR})):
        with pytest.raises(grpc.RpcError) as refused:
            list(call)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        shown = refused.value.details()
        assert json.loads(shown[shown.index("{"):]) == sent


@pytest.fixture
def flags_for(monkeypatch):
    names = types.SimpleNamespace(ReasoningParser=types.SimpleNamespace(DetectorMap={"deepseek-r1": None, "kimi_k2": None}))
    for name in ("sglang", "sglang.srt", "sglang.srt.parser"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "sglang.srt.parser.reasoning_parser", names)
    monkeypatch.setenv("SGLANG_USE_PICKLE_IPC", "")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "")
    import sglang_launch

    detects = types.SimpleNamespace(resolve_auto_parsers=None)
    return lambda name, *given, engine=detects: sglang_launch.reasoning_flags(list(given), name, engine)


def test_the_schedulers_get_the_parser_of_the_front_end(flags_for):
    assert flags_for("deepseek_r1") == ["--reasoning-parser", "deepseek-r1"]
    assert flags_for("kimi_k2") == ["--reasoning-parser", "kimi_k2"]
    assert flags_for("auto") == ["--reasoning-parser", "auto"]
    assert flags_for("auto", engine=types.SimpleNamespace()) == []  # a release that detects none
    assert flags_for("none") == flags_for("seed_oss") == []
    for given in (["--reasoning-parser", "qwen3"], ["--reasoning-parser=qwen3"], ["--reasoning_parser", "qwen3"]):
        assert flags_for("auto", *given) == flags_for("deepseek_r1", *given) == []
