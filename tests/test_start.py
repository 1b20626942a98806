"""Starting and refusing to start: folders as downloaded, damaged files, wrong flags."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest
import requests

from conftest import BINARY, ROOT, Server, wait_until

DEMO = ROOT / "models/demo"


def refused(*flags):
    """What `portico serve` says when it does not start: one line, and a status above 0."""
    result = subprocess.run([str(BINARY), "serve", "--port", "0", *map(str, flags)], capture_output=True, text=True,
                            timeout=120, cwd="/")
    assert result.returncode > 0, result.stderr
    lines = [line for line in result.stderr.strip().split("\n") if "portico serve:" in line]
    assert len(lines) == 1, result.stderr
    return lines[0]


@pytest.fixture
def folder(tmp_path):
    """A copy of the demo model to damage."""
    return pathlib.Path(shutil.copytree(DEMO, tmp_path / "model"))


@pytest.mark.parametrize("flags,word", [
    (("--port", "70000"), "port"),
    (("--no-such-flag",), "no-such-flag"),
    (("--engine", "abacus"), "engine"),
    (("--model-path", "/no/such/folder"), "/no/such/folder"),
    (("--ssl-keyfile", "/no/key.pem", "--ssl-certfile", "/no/cert.pem"), "/no/"),
    (("--dtype", "int3"), "dtype"),
    (("--max-total-tokens", "1"), "a KV cache of 1 tokens is too small for any request, which takes 2 or more"),
    (("--kv-cache-dtype", "int3"), "--kv-cache-dtype: `int3` is not a type of the KV cache; there are auto, float32, float16"),
    (("--cache-type-k", "q8_0"), "--kv-cache-dtype"),
    (("--max-queued-requests", "-5"), "max-queued-requests"),
    (("--mock-fault", "nonsense", "--engine", "mock"), "nonsense"),
    (("--config", "/no/such.yaml"), "/no/such.yaml"),
    (("--model-path", DEMO, "--model-path", "/no/such/folder", "--served-model-name", "second"), "model `second`: /no/such"),
    (("--model-path", DEMO, "--model-path", DEMO), "two models are called"),
    (("--context-length", "100000000"), "context"),
])
def test_a_wrong_flag_is_told_in_one_line(flags, word):
    assert word in refused(*flags)


def test_a_wrong_type_of_the_kv_cache_is_told_before_the_model_is_looked_for():
    """It was told behind the loading of the model's text, and without the name of its flag."""
    result = subprocess.run([str(BINARY), "serve", "--port", "0", "--kv-cache-dtype", "int3", "--model-path", "/no/such"],
                            capture_output=True, text=True, timeout=120, cwd="/")
    assert result.returncode == 2 and "--kv-cache-dtype: `int3`" in result.stderr and "/no/such" not in result.stderr


def test_the_kv_cache_has_the_type_that_is_asked_for(start):
    server = start("--kv-cache-dtype", "q8_0", "--max-total-tokens", "1024")
    assert "KV cache: 1024 tokens, 1360.0 KiB of q8_0 (as asked for)" in server.output()
    assert requests.get(server.url + "/get_server_info", timeout=60).json()["kv_cache_dtype"] == "q8_0"
    question = {"model": "demo", "temperature": 0, "messages": [{"role": "user", "content": "What is 7 plus 5?"}]}
    for _ in range(2):
        answer = requests.post(server.url + "/v1/chat/completions", json=question, timeout=60).json()
        assert answer["choices"][0]["message"]["content"] == "7 plus 5 is 12."


def test_too_long_a_context_is_refused_before_a_weight_is_converted(tmp_path):
    """The model was converted and loaded first, which takes minutes for a large one."""
    result = subprocess.run([str(BINARY), "serve", "--port", "0", "--model-path", str(DEMO), "--context-length", "4096"],
                            capture_output=True, text=True, timeout=120, cwd="/", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert "4096 is not from 1 to the model's 2048" in result.stderr and result.returncode > 0
    assert "ing: " not in result.stderr.replace("warning: ", ""), result.stderr
    assert not list(tmp_path.rglob("*.gguf"))


@pytest.mark.parametrize("name,damage", [
    ("config.json", lambda data: b"{"),
    ("config.json", lambda data: data.replace(b"LlamaForCausalLM", b"UnheardOfModel").replace(
        b"Qwen3ForCausalLM", b"UnheardOfModel")),
    ("model.safetensors", lambda data: data[:len(data) // 2]),
    ("model.safetensors", lambda data: b"\xff" * 8 + data[8:]),
    ("model.safetensors", lambda data: b""),
    ("tokenizer.json", lambda data: data[:len(data) // 2]),
    ("tokenizer.json", lambda data: b"[]"),
])
def test_a_damaged_folder_is_refused_naming_the_file(folder, name, damage):
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    assert str(folder) in refused("--model-path", folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_refused_naming_it(folder, name):
    (folder / name).unlink()
    assert name.split(".")[0] in refused("--model-path", folder)


def test_a_damaged_gguf_is_refused(tmp_path):
    for data in (b"", b"GGUF", b"GGUF" + b"\xff" * 100, b"not a gguf at all" * 10):
        path = tmp_path / "x.gguf"
        path.write_bytes(data)
        assert "x.gguf" in refused("--model-path", path)


def test_a_template_that_raises_is_a_400_with_its_message(start):
    server = start("--engine", "mock", "--chat-template", "{{ raise_exception('only cats may speak') }}")
    answer = server.chat("x")
    assert answer.status_code == 400 and answer.json()["error"]["message"] == "only cats may speak"
    assert requests.get(server.url + "/health", timeout=60).status_code == 200


def test_a_template_that_never_ends_is_a_400(start):
    server = start("--engine", "mock", "--chat-template",
                   "{% for i in range(100000) %}{% for j in range(100000) %}{{ j }}{% endfor %}{% endfor %}")
    assert server.chat("x").status_code == 400
    assert server.chat("x").json()["error"]["param"] == "messages"


def test_a_config_file_sets_what_the_command_line_does_not(tmp_path):
    config = tmp_path / "portico.yaml"
    config.write_text("engine: mock\nserved-model-name: from-file\n")
    server = Server("--config", config)
    try:
        assert requests.get(server.url + "/v1/models", timeout=60).json()["data"][0]["id"] == "from-file"
    finally:
        server.stop()
    server = Server("--config", config, "--served-model-name", "from-line")
    try:
        assert requests.get(server.url + "/v1/models", timeout=60).json()["data"][0]["id"] == "from-line"
    finally:
        server.stop()


def test_tls_serves_https(start, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                   capture_output=True)
    server = start("--engine", "mock", "--ssl-keyfile", key, "--ssl-certfile", certificate, wait=False)
    url = server.url.replace("http", "https")

    def serves():
        try:
            return requests.get(url + "/health", verify=str(certificate), timeout=60).status_code == 200
        except requests.ConnectionError:
            return False

    wait_until(serves, server.output)
    answer = requests.post(url + "/v1/chat/completions", verify=str(certificate), timeout=60,
                           json={"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3})
    assert answer.json()["usage"]["completion_tokens"] == 3


def test_the_same_greedy_answer_alone_among_others_and_after_any_history(demo):
    import concurrent.futures
    question = dict(content="What is 7 plus 5?", temperature=0, max_tokens=32)
    alone = demo.chat(**question).json()["choices"][0]["message"]["content"]
    others = [f"What is {i} plus {i + 3}?" for i in range(31)]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = [pool.submit(demo.chat, content=other, max_tokens=32) for other in others]
        among = pool.submit(demo.chat, **question).result().json()["choices"][0]["message"]["content"]
        assert all(a.result().status_code == 200 for a in answers)
    assert among == alone
    requests.post(demo.url + "/flush_cache", timeout=60)
    assert demo.chat(**question).json()["choices"][0]["message"]["content"] == alone
    assert demo.chat(**question).json()["choices"][0]["message"]["content"] == alone


def test_the_prefix_cache_is_reported_in_the_usage(demo):
    long = "Please remember that the days are long and the nights are short. " * 8
    demo.chat(long, max_tokens=2)
    usage = demo.chat(long + "What is 2 plus 2?", max_tokens=2).json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] // 2


def test_help_and_version_exit_with_0():
    for command in (["--help"], ["--version"], ["route", "--version"], ["launch", "-V"], ["serve", "--help"], ["tokenize", "--help"], ["detokenize", "--help"],
                    ["render", "--help"]):
        result = subprocess.run([str(BINARY), *command], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0 and result.stdout.strip(), command


def test_commands_speak_json_lines(tmp_path):
    lines = [json.dumps({"id": i, "text": text, "add_special_tokens": False}) for i, text in enumerate(["a b", "ü🙂"])]
    result = subprocess.run([str(BINARY), "tokenize", "--tokenizer-path", str(DEMO), "--jsonl"], text=True,
                            input="\n".join(lines) + "\n", capture_output=True, timeout=60)
    answers = [json.loads(line) for line in result.stdout.strip().split("\n")]
    assert [a["id"] for a in answers] == [0, 1] and all(a["ids"] for a in answers)


@pytest.mark.parametrize("command", ["serve", "route", "tokenize"])
def test_help_of_a_command_is_what_its_own_help_says(command):
    said = [subprocess.run([str(BINARY), *arguments], capture_output=True, text=True, timeout=60)
            for arguments in (["help", command], [command, "--help"])]
    assert said[0].stdout == said[1].stdout and "--" in said[0].stdout
    assert [answer.returncode for answer in said] == [0, 0]
