"""A grammar comes after the reasoning: SGLang's schedulers tell where that ends only if they were started with a parser."""
import sys
import types

import pytest
from conftest import ROOT

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
