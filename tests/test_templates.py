"""What a client sends is in the prompt, whatever the chat template can do, or the client hears why not: on every route that
renders chats."""
import json

import pytest
import requests

import grpc_client

CHAT = "/v1/chat/completions"
# As Qwen3's: the system message first, no other roles, and a content that must be there.
STRICT = ("{%- for m in messages -%}{%- if m.role == 'system' and loop.first -%}[system]{{ m.content + '' }}"
          "{%- elif m.role in ['user', 'assistant', 'tool'] -%}[{{ m.role }}]{{ m.content + '' }}"
          "{%- for c in m.tool_calls or [] -%}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{%- endfor -%}"
          "{%- endif -%}{%- endfor -%}{%- if add_generation_prompt -%}[assistant]{%- endif -%}")
# As DeepSeek V3's: calls only where the content is none, and their arguments as text.
ONLY_CALLS = ("{%- for m in messages -%}{%- if m.role == 'assistant' and m.content is none -%}"
              "{%- for c in m.tool_calls -%}<{{ c.function.name + ' ' + c.function.arguments }}>{%- endfor -%}"
              "{%- else -%}[{{ m.role }}]{{ m.content }}{%- endif -%}{%- endfor -%}")
# As Falcon's.
NO_SYSTEM = ("{%- for m in messages -%}{%- if m.role in ['user', 'assistant'] -%}[{{ m.role }}]{{ m.content }}{%- endif -%}"
             "{%- endfor -%}")
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def calling(**more):
    return {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {
        "name": "f", "arguments": '{"a":  1}'}}], **more}


def grpc_chat(server, body):
    sglang = grpc_client.Client(f"127.0.0.1:{server.port}").sglang
    chunk, = sglang.ChatComplete(json_body=json.dumps(body).encode())
    return chunk.status_code, json.loads(chunk.json_chunk)


def prompt(server, messages, **fields):
    """The prompt's text, the same on all routes, or the error's message."""
    body = {"messages": messages, **fields}
    more = {"return_token_ids": True, "max_tokens": 1}
    answer = requests.post(server.url + CHAT, json={**body, **more}, timeout=60)
    status, over_grpc = grpc_chat(server, {**body, **more})
    counted = requests.post(server.url + "/tokenize", json=body, timeout=60)
    streamed = requests.post(server.url + CHAT, json={**body, "stream": True, "max_tokens": 1}, timeout=60)
    assert answer.status_code == status == counted.status_code == streamed.status_code, (answer.text, counted.text)
    if status != 200:
        errors = [answer.json()["error"], over_grpc["error"], counted.json()["error"], streamed.json()["error"]]
        assert all(error == errors[0] for error in errors), errors
        assert errors[0]["param"] in ("messages", *fields), errors
        return "error: " + errors[0]["message"]
    ids = answer.json()["choices"][0]["prompt_token_ids"]
    assert over_grpc["choices"][0]["prompt_token_ids"] == ids == counted.json()["tokens"]
    return requests.post(server.url + "/detokenize", timeout=60,
                         json={"tokens": ids, "skip_special_tokens": False}).json()["text"]


@pytest.fixture
def strict(serve):
    return serve("--chat-template", STRICT)


def test_content_that_is_null_or_absent_beside_calls_is_an_empty_text(strict):
    for content in ({}, {"content": None}, {"content": ""}, {"content": []}):
        conversation = [message("user", "Weather?"), calling(**content), message("tool", "sunny", tool_call_id="a")]
        for tools in ({}, {"tools": [TOOL]}):
            assert prompt(strict, conversation, **tools) == '[user]Weather?[assistant]<f {"a": 1}>[tool]sunny[assistant]'


def test_calls_that_are_shown_only_without_content_have_none_and_keep_the_bytes_of_their_arguments(serve):
    server = serve("--chat-template", ONLY_CALLS)
    for content in ({}, {"content": None}, {"content": ""}):
        conversation = [message("user", "Weather?"), calling(**content), message("tool", "sunny", tool_call_id="a")]
        assert prompt(server, conversation) == '[user]Weather?<f {"a":  1}>[tool]sunny'
    both = [message("user", "Weather?"), calling(content="Let me see."), message("tool", "sunny", tool_call_id="a")]
    assert prompt(server, both) == '[user]Weather?[assistant]Let me see.<f {"a":  1}>[tool]sunny'


def test_a_developer_message_is_the_systems_where_the_template_does_not_show_it(strict):
    french, hi = message("developer", "Answer in French."), message("user", "Hi")
    assert prompt(strict, [french, hi]) == "[system]Answer in French.[user]Hi[assistant]"
    assert prompt(strict, [french, message("system", "Be brief."), hi]) == (
        "[system]Answer in French.\n\nBe brief.[user]Hi[assistant]")


@pytest.mark.parametrize("role,text", [("system", "A"), ("developer", "A"), ("function", "A"), ("latest_reminder", "A")])
def test_what_a_template_would_leave_out_is_a_400_that_names_message_and_role(strict, role, text):
    conversation = [message("user", "Hi"), message("assistant", "Yes?"), message(role, text), message("user", "Go.")]
    assert prompt(strict, conversation) == (
        f"error: messages[2] ({role}): this model's chat template would leave it out here")


def test_a_template_without_system_messages_has_them_before_the_first_user_message_and_the_log_says_so_once(serve):
    server = serve("--chat-template", NO_SYSTEM)
    conversation = [message("system", "A"), message("user", "b"), message("assistant", "c"), message("user", "d")]
    for _ in range(2):
        assert prompt(server, conversation) == "[user]A\n\nb[assistant]c[user]d"
    assert server.output().count("prepends it to the first user message") == 1


def test_parts_of_a_tools_message_are_a_text(strict):
    parts = [{"type": "text", "text": "sunny"}, {"type": "text", "text": "and warm"}]
    conversation = [message("user", "Weather?"), calling(), message("tool", parts, tool_call_id="a")]
    assert prompt(strict, conversation).endswith("[tool]sunny and warm[assistant]")
    assert prompt(strict, [message("system", parts), message("user", parts)]) == (
        "[system]sunny and warm[user]sunny and warm[assistant]")


def test_tokenize_takes_every_field_that_shapes_a_chats_prompt_or_refuses_it_with_the_same_words(serve):
    server = serve("--chat-template", STRICT + "{{ tools | tojson if tools }}{{ reasoning_effort }}{{ documents }}")
    conversation = [message("user", "Hi"), message("assistant", "Once upon")]
    assert prompt(server, conversation, continue_final_message=True) == "[user]Hi[assistant]Once upon"
    assert "f" in prompt(server, conversation, tools=[TOOL])
    for fields in ({"tools": [TOOL], "tool_choice": "none"}, {"reasoning_effort": "low"}, {"documents": [{"text": "d"}]},
                   {"functions": [{"name": "old"}]}, {"add_generation_prompt": False},
                   {"chat_template_kwargs": {"reasoning_effort": "x"}}):
        assert not prompt(server, conversation, **fields).startswith("error")
    for fields in ({"tool_choice": "bogus"}, {"reasoning_effort": "bogus"}, {"chat_template": "{{ messages }}"},
                   {"tools": [TOOL, TOOL]}, {"reasoning": {"effort": 7}}, {"documents": [7]}):
        assert prompt(server, conversation, **fields).startswith("error: ")
    calls = [message("user", "Hi"), calling(content="x")]
    assert "without tool_calls" in prompt(server, calls, continue_final_message=True)


def test_what_a_template_can_do_is_among_the_models_facts(strict):
    info = requests.get(strict.url + "/get_model_info", timeout=60).json()["chat_template"]
    plain = info["without_tools"]
    assert plain["roles"] == {"system": "shown", "developer": "left out", "user": "shown", "assistant": "shown", "tool": "shown",
                              "function": "left out", "latest_reminder": "left out"}
    assert plain["tool_calls"]["content"] == "empty" and info["with_tools"]["tools"] == "left out"
    over_grpc = grpc_client.Client(f"127.0.0.1:{strict.port}").sglang.GetModelInfo()
    assert json.loads(over_grpc.json_info)["chat_template"] == info


@pytest.mark.parametrize("name,messages,expected", [
    ("llamacpp--Qwen-Qwen3-0.6B", [message("developer", "Answer in French."), message("user", "Hi")],
     "<|im_start|>system\nAnswer in French.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
    ("llamacpp--Qwen-Qwen3-0.6B",
     [message("user", "Weather?"), calling(content=None), message("tool", "sunny", tool_call_id="a")],
     '<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n'
     "</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nsunny\n</tool_response><|im_end|>\n<|im_start|>assistant\n"),
    ("llamacpp--GLM-4.6",
     [message("user", "Weather?"), calling(), message("tool", [{"type": "text", "text": "sunny"}], tool_call_id="a")],
     "<tool_response>\nsunny\n</tool_response>"),
    ("tok--deepseek-v3", [message("user", "Weather?"), calling(content=None), message("tool", "sunny", tool_call_id="a")],
     'f\n```json\n{"a":  1}\n```'),
    ("vllm--template_falcon", [message("system", "A"), message("user", "b")], "User: A\n\nb\n"),
    ("llamacpp--openai-gpt-oss-120b",
     [message("user", "Weather?"), calling(content="Let me see."), message("tool", "sunny", tool_call_id="a"),
      message("assistant", "Sun."), message("user", "Thanks.")], "Let me see."),
    ("hfjs--deepseek-ai-DeepSeek-R1",
     [message("user", "Weather?"), calling(content="First."), message("tool", "sunny", tool_call_id="a"),
      calling(content="Second."), message("tool", "warm", tool_call_id="a")], "Second."),
])
def test_real_templates_show_what_a_client_sends(start, shared, name, messages, expected):
    server = start("--engine", "mock", "--chat-template", shared / f"templates/{name}.jinja")
    assert expected in prompt(server, messages)
