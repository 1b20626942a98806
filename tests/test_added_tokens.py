"""Added tokens that files beside the tokenizer.json name: of the text commands and of a server."""
import json
import shutil
import subprocess

import pytest
import requests

from conftest import BINARY, ROOT

DEMO = ROOT / "models/demo"
TOOL_CALL, TOOL_CALL_END, X = 3070, 3071, 87


@pytest.fixture
def folder(tmp_path):
    """The demo model, whose tokenizer.json does not know <tool_call> and </tool_call>; tokenizer_config.json does."""
    model = tmp_path / "model"
    shutil.copytree(DEMO, model)
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [token for token in tokenizer["added_tokens"] if token["id"] < TOOL_CALL]
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    return model


def change(path, **fields):
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **fields}))


def run(*words):
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ids(folder, text, *flags):
    return [int(word) for word in run("tokenize", "--tokenizer-path", folder, "--ids", *flags, text).split()]


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=120)


def test_tokens_that_only_the_settings_name_are_tokens(folder):
    # Six tokens; AutoTokenizer has these two.
    assert ids(folder, "<tool_call>x") == [TOOL_CALL, X]
    assert ids(folder, "<tool_call>x", "--added-tokens", "auto") == [TOOL_CALL, X]
    assert len(ids(folder, "<tool_call>x", "--added-tokens", "file")) == 6
    assert len(ids(folder / "tokenizer.json", "<tool_call>x")) == 6
    shown = run("detokenize", "--tokenizer-path", folder, "--skip-special-tokens", TOOL_CALL, X, 3066)
    assert shown == "<tool_call>x"


def test_explain_names_the_file_of_each_added_token(folder):
    lines = run("tokenize", "--tokenizer-path", folder, "--explain").splitlines()
    assert 'added token 3066 "<|im_end|>" (special) of tokenizer.json' in lines
    assert 'added token 3070 "<tool_call>" of tokenizer_config.json' in lines
    change(folder / "tokenizer_config.json", tokenizer_class="MarianTokenizer")
    lines = run("tokenize", "--tokenizer-path", folder, "--explain").splitlines()
    assert any("AutoTokenizer cannot load this folder: the class MarianTokenizer" in line for line in lines)
    assert not any(line.startswith("added token 3070") for line in lines)


def test_a_servers_texts_have_them(start, folder):
    server = start("--model-path", folder)
    text = "<tool_call>x</tool_call>"
    assert post(server, "/tokenize", prompt=text).json()["tokens"] == [TOOL_CALL, X, TOOL_CALL_END]
    assert post(server, "/detokenize", tokens=[TOOL_CALL, X, 3066], skip_special_tokens=True).json()["text"] == "<tool_call>x"
    answer = post(server, "/v1/completions", prompt=text, max_tokens=1).json()
    assert answer["usage"]["prompt_tokens"] == 3
    native = post(server, "/generate", text=text, sampling_params={"max_new_tokens": 1}).json()
    assert native["meta_info"]["prompt_tokens"] == 3
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
    chat = server.chat("What is the weather in Paris?", tools=tools, tool_choice="required", temperature=0, max_tokens=100)
    assert chat.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


def test_an_id_beyond_the_models_rows_is_refused_and_never_drawn(start, folder):
    settings = json.loads((folder / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    settings["3072"] = {**settings["3071"], "content": "<beyond>"}
    change(folder / "tokenizer_config.json", added_tokens_decoder=settings, eos_token="<beyond>")
    server = start("--model-path", folder)
    beyond = 3072
    assert post(server, "/tokenize", prompt="<beyond>").json()["tokens"] == [beyond]
    sampling = {"max_new_tokens": 1}
    for refused in (post(server, "/v1/completions", prompt="a <beyond>", max_tokens=1),
                    post(server, "/v1/completions", prompt=[beyond], max_tokens=1),
                    server.chat("a <beyond>", max_tokens=1),
                    server.chat("a", logit_bias={str(beyond): 1}, max_tokens=1),
                    server.chat("a", stop_token_ids=[beyond], max_tokens=1),
                    post(server, "/generate", text="<beyond>", sampling_params=sampling),
                    post(server, "/generate", input_ids=[beyond], sampling_params=sampling)):
        assert refused.status_code == 400, refused.text
        assert "3072 is not in the vocabulary (0 to 3071)" in refused.text
    # Nor does it end an answer.
    assert beyond not in requests.get(server.url + "/get_model_info", timeout=60).json()["eos_token_ids"]
    drawn = post(server, "/generate", text="a", sampling_params={"max_new_tokens": 200, "temperature": 100, "ignore_eos": True})
    assert len(drawn.json()["output_ids"]) == 200 and max(drawn.json()["output_ids"]) < beyond
