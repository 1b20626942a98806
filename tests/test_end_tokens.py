"""Which tokens end an answer: those of config.json and generation_config.json, the tokenizer's eos_token and <|eom_id|>."""
import json
import shutil

import pytest
import requests

from conftest import ROOT

DEMO = ROOT / "models/demo"
QUESTION = "What is 7 plus 5?"
END_OF_TEXT, IM_END, THINK = 3064, 3066, 3067
NAMES = {"text": "<|im_end|>", "typed": {"__type": "AddedToken", "content": "<|im_end|>", "lstrip": False},
         "object": {"content": "<|im_end|>", "single_word": False}}


@pytest.fixture
def folder(tmp_path):
    """The demo model as fine-tunes of base models are published: its own files end an answer with <|endoftext|>."""
    model = tmp_path / "model"
    shutil.copytree(DEMO, model)
    change(model / "config.json", eos_token_id=END_OF_TEXT)
    change(model / "generation_config.json", eos_token_id=END_OF_TEXT)
    return model


def change(path, **fields):
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **fields}))


def info(server):
    return requests.get(server.url + "/get_model_info", timeout=60).json()


def generate(server, **fields):
    prompt = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    return requests.post(server.url + "/generate", json={"text": prompt, **fields}, timeout=120).json()


def stream(server, path, body):
    text, finish = "", None
    with requests.post(server.url + path, json={**body, "stream": True}, stream=True, timeout=120) as answer:
        for line in answer.iter_lines():
            if not line.startswith(b"data: {"):
                continue
            choice = json.loads(line[6:])["choices"][0]
            text += choice["delta"].get("content") or "" if "delta" in choice else choice["text"]
            finish = choice["finish_reason"] or finish
    return text, finish


def test_the_tokenizers_end_token_ends_an_answer_on_every_route(start, folder, demo):
    # It was answered, and went on with the user's next turn.
    server = start("--model-path", folder)
    asked = {"temperature": 0, "max_tokens": 100}
    expected = demo.chat(QUESTION, **asked).json()["choices"][0]
    assert expected["finish_reason"] == "stop"
    chat = server.chat(QUESTION, **asked).json()["choices"][0]
    assert chat["message"]["content"] == expected["message"]["content"] and chat["finish_reason"] == "stop"
    assert chat["matched_stop"] == IM_END
    messages = {"messages": [{"role": "user", "content": QUESTION}], **asked}
    assert stream(server, "/v1/chat/completions", messages) == (expected["message"]["content"], "stop")
    native = generate(server, sampling_params={"temperature": 0, "max_new_tokens": 100})
    assert native["meta_info"]["finish_reason"] == {"type": "stop", "matched": IM_END}
    prompt = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    text, finish = stream(server, "/v1/completions", {"prompt": prompt, **asked})
    assert finish == "stop" and text == native["text"]


def test_the_model_info_and_the_log_name_every_end_token(start, folder):
    change(folder / "config.json", eos_token_id=[END_OF_TEXT, THINK])
    server = start("--model-path", folder)
    assert info(server)["eos_token_ids"] == [END_OF_TEXT, THINK, IM_END]
    assert "an answer ends with <|endoftext|> (3064), <|think|> (3067), <|im_end|> (3066)" in server.output()


@pytest.mark.parametrize("form", NAMES)
def test_the_end_token_may_be_named_in_any_form(start, folder, form):
    change(folder / "tokenizer_config.json", eos_token=NAMES[form])
    assert info(start("--model-path", folder))["eos_token_ids"] == [END_OF_TEXT, IM_END]


def test_the_end_token_may_be_named_by_the_older_file_alone(start, folder):
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    for name in ("eos_token", "added_tokens_decoder"):
        del settings[name]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    change(folder / "special_tokens_map.json", eos_token={"content": "<|im_end|>", "lstrip": False})
    assert info(start("--model-path", folder))["eos_token_ids"] == [END_OF_TEXT, IM_END]


def test_both_configurations_of_the_model_count(start, folder):
    change(folder / "config.json", eos_token_id=IM_END)
    change(folder / "tokenizer_config.json", eos_token=None)
    server = start("--model-path", folder)
    assert info(server)["eos_token_ids"] == [END_OF_TEXT, IM_END]
    assert server.chat(QUESTION, temperature=0, max_tokens=100).json()["choices"][0]["matched_stop"] == IM_END


def test_llamas_end_of_message_ends_an_answer_where_the_vocabulary_has_it(start, folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = folder / name
        path.write_text(path.read_text().replace('"<|think|>"', '"<|eom_id|>"'))
    server = start("--model-path", folder)
    assert info(server)["eos_token_ids"] == [END_OF_TEXT, IM_END, THINK]
    answer = generate(server, sampling_params={"max_new_tokens": 20, "logit_bias": {str(THINK): 100}})
    assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": THINK}
    assert answer["meta_info"]["completion_tokens"] == 1


def test_ignore_eos_and_min_tokens_speak_of_all_of_them(start, folder):
    server = start("--model-path", folder)
    for token in (END_OF_TEXT, IM_END):
        asked = {"temperature": 0, "logit_bias": {str(token): 100}, "max_tokens": 12}
        ignored = server.chat(QUESTION, **asked, ignore_eos=True).json()
        assert ignored["choices"][0]["finish_reason"] == "length" and ignored["usage"]["completion_tokens"] == 12
        later = server.chat(QUESTION, **asked, min_tokens=7).json()
        assert later["choices"][0]["matched_stop"] == token and later["usage"]["completion_tokens"] == 8
