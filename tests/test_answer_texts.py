"""The text of an answer's tokens: its first space, special tokens in stop strings, echoes and log-probabilities."""
import gzip
import json

import pytest
import requests
import tokenizers

from conftest import Server
from grpc_client import Client

STORY = "Once upon a time"
QUESTION = "What is 7 plus 5?"
END = "<|im_end|>"
# Behind it an answer of the demo model goes on with the user's next turn.
BOUNDARY = "<|im_end|>\n<|im_start|>user"


@pytest.fixture(scope="module")
def mistral_json(shared):
    return gzip.decompress((shared / "tokenizers/mistral-v0.1/tokenizer.json.gz").read_bytes())


@pytest.fixture(scope="module")
def mistral(mistral_json, tmp_path_factory):
    """A server that repeats prompts in Mistral's tokens, whose decoder takes a space off the start of a text."""
    folder = tmp_path_factory.mktemp("mistral")
    (folder / "tokenizer.json").write_bytes(mistral_json)
    server = Server("--engine", "mock", "--tokenizer-path", folder, "--chat-template",
                    "{% for message in messages %}{{ message['content'] }}{% endfor %}")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def reference(mistral_json):
    return tokenizers.Tokenizer.from_str(mistral_json.decode())


def post(server, path, **body):
    answer = requests.post(server.url + path, json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(server, path, **body):
    with requests.post(server.url + path, json={**body, "stream": True}, stream=True, timeout=120) as answer:
        assert answer.status_code == 200, answer.text
        lines = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert lines.pop() == b"[DONE]"
    return [json.loads(line) for line in lines]


def completion(server, stream=False, **body):
    """The text, the finish reason and what matched."""
    if not stream:
        choice = post(server, "/v1/completions", **body)["choices"][0]
        return choice["text"], choice["finish_reason"], choice["matched_stop"]
    choices = [e["choices"][0] for e in events(server, "/v1/completions", **body)]
    return "".join(c["text"] for c in choices), choices[-1]["finish_reason"], choices[-1]["matched_stop"]


def chat(server, stream=False, **body):
    if not stream:
        choice = post(server, "/v1/chat/completions", **body)["choices"][0]
        return choice["message"]["content"], choice["finish_reason"], choice["matched_stop"]
    choices = [e["choices"][0] for e in events(server, "/v1/chat/completions", **body)]
    text = "".join(c["delta"].get("content") or "" for c in choices)
    return text, choices[-1]["finish_reason"], choices[-1]["matched_stop"]


def generate(server, stream=False, **body):
    answer = events(server, "/generate", **body)[-1] if stream else post(server, "/generate", **body)
    return answer["text"], answer["meta_info"]["finish_reason"]["type"], answer["meta_info"]["finish_reason"].get("matched")


def text_generate(server, stream=False, **body):
    messages = list(Client(f"127.0.0.1:{server.port}").sglang.TextGenerate(stream=stream, **body))
    reason = json.loads(messages[-1].meta_info["finish_reason"])
    return "".join(message.text for message in messages), reason["type"], reason.get("matched")


NATIVE = [generate, text_generate]
WAYS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@WAYS
def test_a_completion_of_a_sentencepiece_tokenizer_keeps_its_first_space(mistral, stream):
    assert completion(mistral, stream, prompt=STORY, max_tokens=2)[0] == " Once upon"
    assert completion(mistral, stream, prompt=STORY, max_tokens=2, echo=True)[0] == STORY + " Once upon"


@WAYS
@pytest.mark.parametrize("ask", NATIVE)
def test_native_generation_keeps_its_first_space(mistral, ask, stream):
    assert ask(mistral, stream, text=STORY, sampling_params={"max_new_tokens": 2})[0] == " Once upon"
    assert ask(mistral, stream, text=STORY, sampling_params={"max_new_tokens": 9, "stop": [" upon a"]}) == (
        " Once", "stop", " upon a")


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("prompt", [
    STORY, "a", "", "\n", " ", "  two", "x" * 300, "</s>", "<s> [INST] Hi [/INST]", "\N{GRINNING FACE}", "tab\there",
    "one two\N{MELTING FACE}", "é" * 30 + "\N{MELTING FACE}" * 9, "über Straße 漢字かな"])
def test_an_answer_is_the_decode_of_prompt_and_answer_less_the_prompts(mistral, reference, prompt, skip):
    ids = reference.encode(prompt).ids
    tokens = post(mistral, "/generate", input_ids=ids, sampling_params={"max_new_tokens": 7})["output_ids"]
    before = reference.decode(ids, skip_special_tokens=skip)
    both = reference.decode(ids + tokens, skip_special_tokens=skip)
    assert both.startswith(before)
    expected = both[len(before):]
    assert completion(mistral, prompt=prompt, max_tokens=7, skip_special_tokens=skip)[0] == expected
    assert completion(mistral, True, prompt=ids, max_tokens=7, skip_special_tokens=skip)[0] == expected
    sampling = {"max_new_tokens": 7, "skip_special_tokens": skip}
    assert generate(mistral, text=prompt, sampling_params=sampling)[0] == expected
    assert generate(mistral, True, input_ids=ids, sampling_params=sampling)[0] == expected
    if skip and prompt:  # an empty text is none over gRPC
        assert text_generate(mistral, text=prompt, sampling_params={"max_new_tokens": 7})[0] == expected


@WAYS
def test_a_chat_begins_without_the_space_and_a_continued_message_with_it(mistral, stream):
    asked = [{"role": "user", "content": STORY}]
    assert chat(mistral, stream, messages=asked, max_tokens=2)[0] == "Once upon"
    begun = [*asked, {"role": "assistant", "content": " there was"}]
    assert chat(mistral, stream, messages=begun, continue_final_message=True, max_tokens=2)[0] == " Once upon"


@WAYS
def test_offsets_and_tokens_of_a_completion_are_those_of_its_text(mistral, stream):
    body = {"prompt": STORY, "max_tokens": 3, "echo": True, "logprobs": 2}
    if stream:
        choices = [e["choices"][0] for e in events(mistral, "/v1/completions", **body)]
        logprobs = [c["logprobs"] for c in choices if c["logprobs"]]
        tokens, offsets = (sum((part[key] for part in logprobs), []) for key in ("tokens", "text_offset"))
        text = "".join(c["text"] for c in choices)
    else:
        choice = post(mistral, "/v1/completions", **body)["choices"][0]
        tokens, offsets, text = choice["logprobs"]["tokens"], choice["logprobs"]["text_offset"], choice["text"]
    assert tokens == ["<s>", "Once", " upon", " a", " time", " Once", " upon", " a"]
    assert "".join(tokens[1:]) == text
    assert all(text[offset:].startswith(token) for token, offset in zip(tokens[1:], offsets[1:], strict=True))


def test_alternatives_that_differ_in_a_space_have_a_key_each(mistral, reference):
    # Both would be "true", and the second of them was lost.
    ids = [reference.token_to_id("true"), reference.token_to_id("▁true")]
    answer = post(mistral, "/generate", text="x", return_logprob=True, return_text_in_logprobs=True,
                  token_ids_logprob=ids, sampling_params={"max_new_tokens": 1})
    assert [entry[2] for entry in answer["meta_info"]["output_token_ids_logprobs"][0]] == ["true", " true"]


def bytes_of(token):
    """What a token of log-probabilities stands for."""
    if not token.startswith("bytes:"):
        return token.encode()
    return token[len("bytes:"):].encode("latin-1").decode("unicode_escape").encode("latin-1")


@WAYS
def test_the_tokens_of_log_probabilities_joined_are_the_answer(mistral, stream):
    text = "true true\N{MELTING FACE} é\\漢"  # the face is in bytes
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 30, "logprobs": True, "top_logprobs": 2}
    if stream:
        choices = [e["choices"][0] for e in events(mistral, "/v1/chat/completions", **body)]
        content = "".join(c["delta"].get("content") or "" for c in choices)
        positions = sum((c["logprobs"]["content"] for c in choices if c["logprobs"]), [])
    else:
        choice = post(mistral, "/v1/chat/completions", **body)["choices"][0]
        content, positions = choice["message"]["content"], choice["logprobs"]["content"]
    assert len(positions) == 30 and positions[0]["token"] == "true"
    assert b"".join(bytes_of(p["token"]) for p in positions).decode(errors="replace") == content
    for position in positions:
        for token in (position, *position["top_logprobs"]):
            assert bytes_of(token["token"]) == bytes(token["bytes"])
    assert "bytes:\\xf0" in [p["token"] for p in positions]


def test_parts_of_a_character_have_a_key_each(demo):
    ids = post(demo, "/tokenize", prompt="\N{GRINNING FACE}", add_special_tokens=False)["tokens"]
    assert len(ids) > 1
    answer = post(demo, "/v1/completions", prompt=ids, echo=True, logprobs=20, max_tokens=1)["choices"][0]
    tokens = answer["logprobs"]["tokens"][:len(ids)]
    assert b"".join(bytes_of(token) for token in tokens) == "\N{GRINNING FACE}".encode()
    assert all(token.startswith("bytes:\\x") for token in tokens)
    # A key for each, and the chosen token's where it is none of the best.
    assert all(20 <= len(top) <= 21 for top in answer["logprobs"]["top_logprobs"][1:])


def test_tokens_are_spelled_as_the_vocabulary_has_them(mistral, reference):
    """vLLM's return_token_strs was taken, and answered without them."""
    for prompt in ("Once upon", ["Once upon", ""]):
        answer = post(mistral, "/tokenize", prompt=prompt, return_token_strs=True)
        spelled = [[reference.id_to_token(token) for token in tokens]
                   for tokens in (answer["tokens"] if isinstance(prompt, list) else [answer["tokens"]])]
        assert answer["token_strs"] == (spelled if isinstance(prompt, list) else spelled[0]) and "\u2581upon" in spelled[0]
    assert "token_strs" not in post(mistral, "/tokenize", prompt="Once upon")


SAMPLING = {"ignore_eos": True, "temperature": 0}


@WAYS
@pytest.mark.parametrize("stop", [END, BOUNDARY])
def test_a_stop_string_with_special_tokens_ends_a_chat(demo, stream, stop):
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 60, "temperature": 0}
    plain = chat(demo, **body)[0]
    assert plain and len(chat(demo, **body, ignore_eos=True)[0]) > len(plain)
    body |= {"ignore_eos": True, "stop": [stop]}
    assert chat(demo, stream, **body) == (plain, "stop", stop)
    assert chat(demo, stream, **body, skip_special_tokens=False) == (plain, "stop", stop)
    # What is hidden stays hidden.
    rest = stop.replace("<|im_end|>", "").replace("<|im_start|>", "")
    assert chat(demo, stream, **body, no_stop_trim=True) == (plain + rest, "stop", stop)
    assert chat(demo, stream, **body, no_stop_trim=True, skip_special_tokens=False) == (plain + stop, "stop", stop)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@WAYS
def test_a_stop_string_with_special_tokens_ends_an_answer_that_is_parsed(demo, stream):
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 60, "temperature": 0, "tools": [TOOL]}
    plain = chat(demo, **body)[0]
    assert chat(demo, stream, **body, ignore_eos=True, stop=[BOUNDARY]) == (plain, "stop", BOUNDARY)


@WAYS
def test_a_stop_string_with_special_tokens_ends_completions_and_native_generation(demo, stream):
    prompt = f"<|im_start|>user\n{QUESTION}{END}\n<|im_start|>assistant\n"
    plain = completion(demo, prompt=prompt, max_tokens=60, temperature=0)[0]
    for stop in (END, BOUNDARY):
        assert completion(demo, stream, prompt=prompt, max_tokens=60, stop=[stop], **SAMPLING) == (plain, "stop", stop)
        for ask in NATIVE:
            sampling = {"max_new_tokens": 60, "stop": [stop], **SAMPLING}
            assert ask(demo, stream, text=prompt, sampling_params=sampling) == (plain, "stop", stop)


def test_a_stop_string_is_named_by_the_scheduler_service_too(demo):
    ids = post(demo, "/tokenize", prompt=f"<|im_start|>user\n{QUESTION}{END}\n<|im_start|>assistant\n")["tokens"]
    service = Client(f"127.0.0.1:{demo.port}").scheduler
    request = service.Generate.request(request_id="stop")
    request.tokenized.input_ids.extend(ids)
    request.sampling_params.max_new_tokens = 60
    request.sampling_params.ignore_eos = True
    request.sampling_params.temperature = 0
    request.sampling_params.stop.append(BOUNDARY)
    complete = list(service.Generate(request))[-1].complete
    assert complete.finish_reason == "stop" and complete.matched_stop_str == BOUNDARY


USER = [3065, 271]  # <|im_start|>user


@WAYS
@pytest.mark.parametrize("skip, expected", [(True, "user"), (False, "<|im_start|>user")])
def test_the_echo_of_token_ids_shows_special_tokens_as_the_answer_does(mock, stream, skip, expected):
    body = {"echo": True, "max_tokens": 1, "skip_special_tokens": skip}
    assert completion(mock, stream, prompt=USER, **body)[0] == expected + "user"
    # A text is echoed as it was written.
    assert completion(mock, stream, prompt="<|im_start|>user", **body)[0] == "<|im_start|>useruser"
    if stream:
        texts = {0: "", 1: ""}
        for event in events(mock, "/v1/completions", prompt=[USER, [271, *USER]], **body):
            for choice in event["choices"]:
                texts[choice["index"]] += choice["text"]
    else:
        texts = {c["index"]: c["text"] for c in post(mock, "/v1/completions", prompt=[USER, [271, *USER]], **body)["choices"]}
    assert texts == {0: expected + "user", 1: "user" + expected + "user"}


def test_offsets_leave_out_the_special_tokens_that_an_echo_leaves_out(mock):
    body = {"prompt": [271, *USER], "echo": True, "max_tokens": 1, "logprobs": 1}
    choice = post(mock, "/v1/completions", **body)["choices"][0]
    assert choice["logprobs"]["tokens"] == ["user", "<|im_start|>", "user", "user"]
    assert choice["logprobs"]["text_offset"] == [0, 4, 4, 8]
    shown = post(mock, "/v1/completions", **body, skip_special_tokens=False)["choices"][0]
    assert shown["logprobs"]["text_offset"] == [0, 4, 16, 20]
