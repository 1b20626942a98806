"""Tool calls and reasoning as clients see them. The mock engine repeats the prompt, so a prompt is what a model would
write: everything up to the stop string is the answer."""
import json
import subprocess
import urllib.error
import urllib.request

import openai
import pytest

from conftest import BINARY, ROOT

STOP = "\u23f9"
PLAIN = "{{ messages[-1].content }}"
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}
CALLS = ('Let me look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "K\u00f6ln", "days": 2}}\n</tool_call>\n'
         '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>')


@pytest.fixture
def hermes(serve):
    return serve("--tool-call-parser", "hermes", "--reasoning-parser", "qwen3", "--chat-template", PLAIN)


@pytest.fixture
def client(hermes):
    return openai.OpenAI(base_url=hermes.url + "/v1", api_key="none", max_retries=0)


def ask(client, text, **more):
    more.setdefault("tools", [WEATHER, TIME])
    return client.chat.completions.create(model="demo", messages=[{"role": "user", "content": text + STOP}], stop=[STOP],
                                          max_tokens=2000, temperature=0, **more)


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def gather(chunks):
    """Content, reasoning, calls and finish reasons of a stream."""
    content, reasoning, calls, finishes = "", "", {}, []
    for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            for piece in choice.delta.tool_calls or []:
                if piece.id:
                    assert piece.index not in calls and piece.type == "function" and piece.function.arguments == ""
                    calls[piece.index] = [piece.id, piece.function.name, ""]
                else:
                    calls[piece.index][2] += piece.function.arguments
            if choice.finish_reason:
                finishes.append(choice.finish_reason)
    return content, reasoning, [calls[i] for i in sorted(calls)], finishes


def test_parallel_calls_come_whole(client):
    choice = ask(client, CALLS).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me look.\n"
    assert [c.function.name for c in choice.message.tool_calls] == ["get_weather", "get_time"]
    assert choice.message.tool_calls[0].function.arguments == '{"city": "K\u00f6ln", "days": 2}'
    ids = [c.id for c in choice.message.tool_calls]
    assert len(set(ids)) == 2 and all(i.startswith("call_") and len(i) == 29 for i in ids)


def test_a_stream_gives_the_same_calls_in_pieces(client):
    content, _, calls, finishes = gather(ask(client, CALLS, stream=True))
    assert content == "Let me look.\n"
    assert [(name, json.loads(arguments)) for _, name, arguments in calls] == [
        ("get_weather", {"city": "K\u00f6ln", "days": 2}), ("get_time", {})]
    assert finishes == ["tool_calls"]


def test_strings_in_arguments_stream_while_they_arrive(client):
    # vllm#50627: half a minute of silence, then all arguments at once.
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "' + "far away " * 50 + '"}}\n</tool_call>'
    pieces = [c.choices[0].delta.tool_calls[0].function.arguments for c in ask(client, text, stream=True)
              if c.choices and c.choices[0].delta.tool_calls]
    assert len(pieces) > 40 and max(map(len, pieces)) < 60


def test_reasoning_and_a_call_that_come_together_are_both_there(client):
    # vllm#43221
    choice = ask(client, "<think>Cologne it is.</think>" + CALLS[len("Let me look.\n"):]).choices[0]
    assert choice.message.reasoning_content == "Cologne it is."
    assert len(choice.message.tool_calls) == 2 and choice.finish_reason == "tool_calls"


def test_reasoning_tokens_are_counted(client):
    answer = ask(client, "<think>one two three</think>four", tools=openai.NOT_GIVEN)
    assert answer.choices[0].message.content == "four"
    assert 0 < answer.usage.completion_tokens_details.reasoning_tokens < answer.usage.completion_tokens


def test_reasoning_stays_in_the_text_where_it_is_not_to_be_separated(client):
    answer = ask(client, "<think>a</think>b", extra_body={"separate_reasoning": False})
    assert answer.choices[0].message.content == "<think>a</think>b"


def test_reasoning_comes_in_one_piece_where_it_is_not_to_stream(client):
    chunks = ask(client, "<think>one two three four</think>b", stream=True, extra_body={"stream_reasoning": False})
    pieces = [c.choices[0].delta.reasoning_content for c in chunks
              if c.choices and getattr(c.choices[0].delta, "reasoning_content", None)]
    assert pieces == ["one two three four"]


def test_a_call_of_a_tool_that_nobody_offered_is_text(client):
    choice = ask(client, CALLS, tools=[TIME]).choices[0]
    assert choice.message.content.startswith('Let me look.\n<tool_call>\n{"name": "get_weather"')
    assert [c.function.name for c in choice.message.tool_calls] == ["get_time"]


def test_a_call_that_length_cuts_is_incomplete_and_says_length(client):
    answer = client.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": CALLS}], max_tokens=20, tools=[WEATHER])
    assert answer.choices[0].finish_reason == "length"


def test_without_tools_and_with_none_calls_are_text(client):
    assert ask(client, CALLS, tools=openai.NOT_GIVEN).choices[0].message.content == CALLS
    assert ask(client, CALLS, tool_choice="none").choices[0].message.content == CALLS


def test_logprobs_come_with_the_tokens_of_calls(client):
    answer = ask(client, CALLS, logprobs=True)
    tokens = "".join(p.token for p in answer.choices[0].logprobs.content)
    assert "get_weather" in tokens and "</tool_call>" in tokens
    streamed = ask(client, CALLS, logprobs=True, stream=True)
    assert sum(len(c.choices[0].logprobs.content) for c in streamed if c.choices and c.choices[0].logprobs) == len(
        answer.choices[0].logprobs.content)


def test_the_old_functions_get_the_old_answer(hermes):
    body = {"messages": [{"role": "user", "content": CALLS + STOP}], "stop": [STOP], "max_tokens": 2000,
            "functions": [WEATHER["function"], TIME["function"]], "function_call": "auto"}
    status, answer = post(hermes, "/v1/chat/completions", body)
    assert status == 200
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "get_weather", "arguments": '{"city": "K\u00f6ln", "days": 2}'}


@pytest.mark.parametrize("field, more", [
    ("tools", {"tools": [{"type": "function", "function": {}}]}),
    ("tools", {"tools": [TIME, TIME]}),
    ("tools", {"tools": [{"type": "custom", "custom": {"name": "run"}}]}),
    ("tool_choice", {"tools": [TIME], "tool_choice": {"type": "custom", "custom": {"name": "get_time"}}}),
    ("tool_choice", {"tool_choice": "sometimes"}),
    ("tool_choice", {"tool_choice": {"type": "function", "function": {"name": "nobody"}}, "tools": [TIME]}),
    ("tool_choice", {"tool_choice": "required"}),
    ("tool_choice", {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}),
    ("functions", {"functions": [{"name": ""}]}),
    ("function_call", {"functions": [TIME["function"]], "function_call": {"name": "nobody"}}),
    ("parallel_tool_calls", {"parallel_tool_calls": "no"}),
    ("separate_reasoning", {"separate_reasoning": "no"}),
])
def test_wrong_tools_are_a_400_that_names_the_field(hermes, field, more):
    status, answer = post(hermes, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], **more})
    assert status == 400 and answer["error"]["param"] == field


def test_kimi_calls_have_their_own_ids(serve):
    server = serve("--tool-call-parser", "kimi_k2", "--chat-template", PLAIN)
    text = ('<|tool_calls_section_begin|><|tool_call_begin|>functions.get_time:3<|tool_call_argument_begin|>{}'
            '<|tool_call_end|><|tool_calls_section_end|>')
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    assert ask(client, text).choices[0].message.tool_calls[0].id == "functions.get_time:3"


def test_vllms_name_of_the_field_can_be_chosen(serve):
    server = serve("--reasoning-parser", "deepseek_r1", "--reasoning-field", "reasoning", "--chat-template", PLAIN)
    _, answer = post(server, "/v1/chat/completions", {
        "messages": [{"role": "user", "content": "a</think>b" + STOP}], "stop": [STOP], "max_tokens": 500})
    message = answer["choices"][0]["message"]
    assert message["reasoning"] == "a" and message["content"] == "b"


def test_harmony_with_a_bad_header_is_no_error(serve):
    # vllm#51977: a stray word in a header was an error of the parser, and a 500.
    server = serve("--tool-call-parser", "gpt-oss", "--reasoning-parser", "gpt-oss", "--chat-template", PLAIN)
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    text = ("<|channel|>analysis stray<|message|>t<|end|><|start|>assistant<|channel|>commentary to=functions.get_time "
            "json<|message|>{}<|call|>")
    choice = ask(client, text).choices[0]
    assert choice.message.reasoning_content == "t"
    assert choice.message.tool_calls[0].function.name == "get_time" and choice.finish_reason == "tool_calls"


def test_texts_go_through_the_parsers_by_themselves(hermes):
    status, answer = post(hermes, "/parse_function_call",
                          {"text": CALLS, "tool_call_parser": "qwen25", "tools": [WEATHER, TIME]})
    assert status == 200 and answer["normal_text"] == "Let me look.\n"
    assert [c["name"] for c in answer["calls"]] == ["get_weather", "get_time"]
    status, answer = post(hermes, "/separate_reasoning", {"text": "a</think>b", "reasoning_parser": "deepseek-r1"})
    assert (status, answer) == (200, {"reasoning_text": "a", "text": "b"})
    _, answer = post(hermes, "/parse/function_call", {"text": CALLS, "tool_call_parser": "qwen"})
    assert answer["success"] and answer["tool_calls"][1]["function"] == {"name": "get_time", "arguments": "{}"}
    _, answer = post(hermes, "/parse/function_call", {"text": '[TOOL_CALLS] [{"name": "f", "arguments": {}}]', "tool_call_parser": "mistral"})
    assert len(answer["tool_calls"][0]["id"]) == 9
    assert post(hermes, "/parse/reasoning", {"text": "a", "reasoning_parser": "nobody"})[0] == 400


def test_a_text_that_is_cut_in_a_call_has_it_where_its_name_is_known(hermes):
    cut = {"text": CALLS[:CALLS.index('city')], "tool_call_parser": "hermes"}
    _, answer = post(hermes, "/parse_function_call", {**cut, "tools": [WEATHER]})
    assert answer["normal_text"] == "Let me look.\n" and [(c["name"], c["parameters"]) for c in answer["calls"]] == [("get_weather", '{"')]
    _, answer = post(hermes, "/parse_function_call", cut)
    assert answer["normal_text"] == cut["text"] and answer["calls"] == []


def test_texts_are_parsed_as_the_served_model_is(hermes):
    """`auto`, the servers' default, was a name of no parser."""
    status, answer = post(hermes, "/parse_function_call", {"text": CALLS, "tool_call_parser": "auto", "tools": [WEATHER, TIME]})
    assert status == 200 and [c["name"] for c in answer["calls"]] == ["get_weather", "get_time"]
    for path, field in (("/parse_function_call", "tool_call_parser"), ("/parse/reasoning", "reasoning_parser")):
        status, answer = post(hermes, path, {"text": "a", field: "response_template"})
        assert status == 400 and answer["error"]["param"] == field and "the model has no" in answer["error"]["message"]
    assert post(hermes, "/parse_function_call", {"text": "a", "tool_call_parser": "auto", "model": 7})[0] == 400


@pytest.mark.parametrize("path, field", [("/parse_function_call", "tool_call_parser"), ("/parse/function_call", "tool_call_parser"),
                                         ("/separate_reasoning", "reasoning_parser"), ("/parse/reasoning", "reasoning_parser")])
def test_a_parser_that_is_not_named_is_required(hermes, path, field):
    """It was said that it must be a string, and not that `auto` is one."""
    for body in ({"text": "a"}, {"text": "a", field: None}):
        status, answer = post(hermes, path, body)
        assert status == 400 and answer["error"]["param"] == field
        assert answer["error"]["message"] == f"{field} is required: a parser's name, or auto for the model's own"
    status, answer = post(hermes, path, {"text": "a", field: 7})
    assert status == 400 and answer["error"]["message"] == f"{field} must be a string"
    status, answer = post(hermes, path, {field: "auto"})
    assert status == 400 and answer["error"] | {"message": "text is required", "param": "text"} == answer["error"]


@pytest.mark.parametrize("path", ["/parse_function_call", "/parse/function_call"])
def test_texts_are_not_parsed_with_tools_that_are_none(hermes, path):
    # Nameless tools were dropped, so that their calls were text; of two of one name the first was.
    body = {"text": CALLS, "tool_call_parser": "hermes"}
    for tools in ([{"type": "function", "function": {}}], [TIME, TIME], [7], "get_time"):
        status, answer = post(hermes, path, {**body, "tools": tools})
        assert status == 400 and answer["error"]["param"] == "tools", tools
    for tools in (None, [], [{"function": TIME["function"]}]):
        assert post(hermes, path, {**body, "tools": tools})[0] == 200


def test_a_format_that_the_checkpoint_declares_is_read(start, tmp_path):
    for file in (ROOT / "models/demo").iterdir():
        if file.name not in ("chat_template.jinja", "model.safetensors", "tokenizer_config.json"):
            (tmp_path / file.name).symlink_to(file)
    declared = {"start_anchor": "<|im_start|>assistant\n", "fields": {
        "thinking": {"open": "<<", "close": ">>"}, "content": {},
        "tool_calls": {"open_pattern": "@(?P<name>\\w+)", "close": ";", "content": "json",
                       "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": PLAIN, "response_template": declared}))
    server = start("--engine", "mock", "--model-path", str(tmp_path), "--served-model-name", "demo")
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    text = '<<Hm.>>Well: @get_weather{"city": "a;b"};'
    choice = ask(client, text).choices[0]
    assert (choice.message.reasoning_content, choice.message.content, choice.finish_reason) == ("Hm.", "Well: ", "tool_calls")
    [call] = choice.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "a;b"}')
    content, reasoning, calls, finishes = gather(ask(client, text, stream=True))
    assert (content, reasoning, finishes) == ("Well: ", "Hm.", ["tool_calls"])
    assert [c[1:] for c in calls] == [["get_weather", '{"city": "a;b"}']]
    for name in ("auto", "response_template"):
        _, answer = post(server, "/parse_function_call", {"text": 'Well: @get_weather{"city": "a;b"};', "tool_call_parser": name})
        assert [c["name"] for c in answer["calls"]] == ["get_weather"], answer
        _, answer = post(server, "/separate_reasoning", {"text": "<<Hm.>>Well", "reasoning_parser": name})
        assert answer == {"reasoning_text": "Hm.", "text": "Well"}


@pytest.mark.parametrize("named, flags, calls", [
    ("mistral", [], 1), ("nobody", [], 0), (7, [], 0), ("mistral", ["--tool-call-parser", "none"], 0)])
def test_a_checkpoint_may_name_its_parsers(start, tmp_path, named, flags, calls):
    for file in (ROOT / "models/demo").iterdir():
        if file.name not in ("chat_template.jinja", "model.safetensors", "tokenizer_config.json"):
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": PLAIN, "tool_call_parser": named}))
    server = start("--engine", "mock", "--model-path", str(tmp_path), "--served-model-name", "demo", *flags)
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    text = '[TOOL_CALLS] [{"name": "get_time", "arguments": {}}]'
    message = ask(client, text).choices[0].message
    assert [c.function.name for c in message.tool_calls or []] == ["get_time"] * calls
    assert (message.content or "") == ("" if calls else text)


def test_the_demo_models_folder_names_its_parsers(start):
    """With --model-path its calls were text: the rules of `auto` find no format in its template."""
    server = start("--model-path", str(ROOT / "models/demo"), "--served-model-name", "demo")
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}}}}
    answer = server.chat("What is the weather in Cologne?", tools=[tool], temperature=0, max_tokens=100).json()["choices"][0]
    [call] = answer["message"]["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Cologne"}'}
    assert answer["finish_reason"] == "tool_calls" and not answer["message"]["content"]


def test_a_start_names_the_parser_that_calls_look_like_where_no_rule_knows_them(start, tmp_path):
    """SGLang's rules leave the calls of Qwen2.5, Llama 3 and Mistral in the text, and nothing said so."""
    for file in (ROOT / "models/demo").iterdir():
        if file.name not in ("chat_template.jinja", "model.safetensors", "tokenizer_config.json"):
            (tmp_path / file.name).symlink_to(file)
    template = ("{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>"
                "{% endfor %}{% endfor %}")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    server = start("--engine", "mock", "--model-path", str(tmp_path), "--served-model-name", "demo")
    assert "look like hermes (--tool-call-parser hermes)" in server.output()


def test_an_unknown_parser_ends_the_start_with_a_list():
    run = subprocess.run([str(BINARY), "serve", "--engine", "mock", "--port", "0", "--tool-call-parser", "nobody"],
                         capture_output=True, text=True, timeout=120)
    assert run.returncode == 2 and "--tool-call-parser: there is no parser `nobody`; there are auto, none, " in run.stderr
    assert "model" not in run.stdout, "the model was loaded first"
