"""SGLangs that cannot be spoken to, several of them, and SGLang's own server in their place."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import types

import pytest
import requests
from conftest import ROOT, Server, wait_until

from test_sglang import DEMO, STAND_IN, flags, generate

LAUNCHER = ROOT / "python/portico/sglang_launch.py"
MODEL = ("--model-path", DEMO, "--served-model-name", "demo")


def refusal(*arguments):
    """What a server says that does not start."""
    server = Server("--engine", "sglang", *MODEL, *arguments, wait=False)
    assert server.process.wait(120) == 1
    said = [line for line in server.output().splitlines() if line.startswith("portico serve: ")]
    assert len(said) == 1, server.output()
    os.unlink(server.log.name)
    return said[0]


def package(folder, monkeypatch, version, messages):
    """A package `sglang` of that release, whose message module is this text."""
    managers = folder / "sglang/srt/managers"
    managers.mkdir(parents=True)
    for each in (folder / "sglang", folder / "sglang/srt", managers):
        (each / "__init__.py").write_text("")
    (folder / "sglang/__init__.py").write_text(f"__version__ = {version!r}\n")
    (managers / "io_struct.py").write_text(textwrap.dedent(messages))
    monkeypatch.setenv("PYTHONPATH", str(folder))


REAL_LAUNCHER = ("--sglang-python", sys.executable, "--sglang-launcher", LAUNCHER)


def test_a_python_without_sglang_is_named(tmp_path, monkeypatch):
    (tmp_path / "sglang.py").write_text("raise ImportError('No module named sglang')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = refusal(*REAL_LAUNCHER)
    assert "has no SGLang that can be imported" in said and "--sglang-python names the Python that has it" in said


def test_the_launcher_alone_says_what_helps(tmp_path, monkeypatch):
    """It named --sglang-python, a flag that it does not have."""
    (tmp_path / "sglang.py").write_text("raise ImportError('No module named sglang')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run([sys.executable, LAUNCHER, "--ipc-dir", tmp_path], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    failed = [json.loads(line) for line in done.stdout.splitlines()][-1]
    assert done.returncode == 1 and failed["event"] == "failed", done
    assert "has no SGLang that can be imported (No module named sglang); run this script with the Python" in failed["message"]
    assert "--sglang-python" not in failed["message"]


TRACEBACK = """Traceback (most recent call last):
  File "scheduler.py", line 3, in run_scheduler_process
    import sgl_kernel
ImportError: libcuda.so.1: cannot open shared object file
"""


@pytest.mark.parametrize("log, event, why", [
    (TRACEBACK, "", "SGLang's launcher has ended: ImportError: libcuda.so.1: cannot open shared object file; its log says more"),
    ("loading\n", "", "SGLang's launcher has ended without a reason; its log says more"),
    (TRACEBACK, "a scheduler has ended", "cannot be started: a scheduler has ended; the last exception in its log is ImportError: libcuda.so.1: c"),
    (TRACEBACK, "libcuda.so.1: cannot open shared object file", "cannot be started: libcuda.so.1: cannot open shared object file"),
])
def test_the_last_exception_is_the_reason_where_none_is_given(tmp_path, log, event, why):
    """A scheduler that fails prints its traceback and ends the launcher by a signal: there was no reason."""
    launcher = tmp_path / "launcher.py"
    failed = json.dumps({"event": "failed", "message": event}) if event else ""
    launcher.write_text(f"import os, sys\nsys.stderr.write({log!r})\nsys.stderr.flush()\nos.write(3, {failed!r}.encode() + b'\\n' * {bool(event)})\n")
    said = refusal("--sglang-python", sys.executable, "--sglang-launcher", launcher)
    assert why in said and said.count("libcuda.so.1") <= 1, said


def test_a_python_that_is_not_there_is_named(tmp_path):
    assert f"{tmp_path}/python cannot be started" in refusal("--sglang-python", tmp_path / "python")


@pytest.mark.parametrize("version, messages, why", [
    ("0.4.9", "", "SGLang 0.4.9 has no msgpack messages; 0.5.16 is the first release with them"),
    ("0.5.23", "_USE_PICKLE_IPC = True", "SGLang 0.5.23 speaks pickle in spite of SGLANG_USE_PICKLE_IPC=0"),
    ("0.5.23", "import no_such_module", "the message module of SGLang 0.5.23 cannot be imported"),
])
def test_a_release_with_other_messages_is_refused(tmp_path, monkeypatch, version, messages, why):
    package(tmp_path, monkeypatch, version, messages)
    assert why in refusal(*REAL_LAUNCHER)


def test_a_layout_that_nobody_knows_is_refused_with_its_field():
    said = refusal(*flags("--stand-in-new-field")[2:6], "--", "--stand-in-new-field")
    assert "SGLang 0.5.23 has messages that Portico does not know" in said and "invented_field" in said


def test_an_engine_that_cannot_be_joined_is_refused(tmp_path):
    facts = tmp_path / "facts.json"
    attach = ("--attach", facts)
    assert "cannot read" in refusal(*attach)
    facts.write_text('{"facts": {"addresses"')
    facts.chmod(0o600)
    assert "is not what SGLang's launcher writes with --facts" in refusal(*attach)
    facts.chmod(0o666)
    assert "belongs to another user, or others may write it" in refusal(*attach)


def started(folder, *engine):
    """A stand-in that runs on its own, and the file that tells of it."""
    facts = folder / "facts.json"
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    process = subprocess.Popen([sys.executable, STAND_IN, "--ipc-dir", folder, "--facts", facts, "--model-path", DEMO, *engine],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(facts.exists, "it does not start")
    return process, facts


def test_sockets_that_others_can_reach_are_not_joined(tmp_path):
    engine, facts = started(tmp_path / "open")
    try:
        (tmp_path / "open").chmod(0o755)
        assert "is open to others, or belongs to another user" in refusal("--attach", facts)
    finally:
        engine.kill()
        engine.wait()


def ask(server, count, **body):
    """The statuses of so many requests at once."""
    statuses = []
    one = lambda i: statuses.append(generate(server, text=f"one two {i}", **body).status_code)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def test_several_engines_answer_behind_one_server_and_outlive_each_other(tmp_path, start):
    engines = [started(tmp_path / name, "--stand-in-itl-ms", "5") for name in "ab"]
    try:
        server = start("--engine", "sglang", "--attach", ",".join(str(facts) for _, facts in engines), *MODEL,
                       "--policy", "round_robin")
        sampling = {"max_new_tokens": 4, "ignore_eos": True}
        assert ask(server, 8, sampling_params=sampling) == [200] * 8
        response = requests.post(server.url + "/generate", stream=True, timeout=60, json={
            "text": "one", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
        next(response.iter_lines())
        response.close()
        server.settle()
        assert requests.post(server.url + "/flush_cache", timeout=60).status_code == 200
        assert generate(server, text="x", session_params={"id": "s"}).status_code == 400
        assert requests.post(server.url + "/open_session", json={"capacity_of_str_len": 9}, timeout=60).status_code == 400
        engines[0][0].kill()
        engines[0][0].wait()
        wait_until(lambda: "local://0 failed" in server.output(), "its death goes unnoticed")
        assert ask(server, 8, sampling_params=sampling) == [200] * 8
        assert requests.get(server.url + "/health", timeout=60).status_code == 200
    finally:
        for process, _ in engines:
            process.kill()
            process.wait()


def test_engines_are_started_on_gpus_of_their_own_and_pool_behind_a_policy(start):
    server = start(*flags(portico=("--sglang-replicas", "2", "--is-embedding"))[:-1], "--", "--tp", "2", "--base-gpu-id", "1")
    wait_until(lambda: server.output().count("the stand-in starts") == 2, server.output)
    starts = [line for line in server.output().splitlines() if "the stand-in starts" in line]
    assert sorted("--base-gpu-id 3" in line for line in starts) == [False, True]
    for _ in range(2):
        answer = requests.post(server.url + "/v1/embeddings", json={"input": ["one", "two words", "one"]}, timeout=60).json()
        vectors = [row["embedding"] for row in answer["data"]]
        assert vectors[0] == vectors[2] != vectors[1]
    assert requests.post(server.url + "/v1/embeddings", json={"input": "word " * 3000}, timeout=60).status_code == 400


def test_replicas_publish_what_they_cache_at_addresses_of_their_own(start, tmp_path):
    """All of them published at the first one's address, which only one can have."""
    config = json.dumps({"publisher": "zmq", "endpoint": f"ipc://{tmp_path}/kv"})
    server = start(*flags("--kv-events-config", config, portico=("--sglang-replicas", "2", "--policy", "cost")))
    wait_until(lambda: (tmp_path / "kv").exists() and (tmp_path / "kv-1").exists(), server.output)
    for _ in range(4):
        assert generate(server, text="one two three", sampling_params={"max_new_tokens": 2}).status_code == 200


def test_what_changes_answers_reaches_sglang(start):
    """--enable-deterministic-inference and --return-original-logprob were accepted and did nothing."""
    server = start(*flags(portico=("--enable-deterministic-inference", "--return-original-logprob")))
    wait_until(lambda: "the stand-in starts --enable-deterministic-inference original logprob 1" in server.output(), server.output)


HTTP_STAND_IN = '''
import http.server, json, os, sys
port = int(sys.argv[sys.argv.index("--port") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        if "info" in self.path:
            return self.answer({"model_path": "m", "served_model_name": "demo", "api_key": "secret", "argv": sys.argv[1:],
                                "original_logprob": os.environ.get("SGLANG_RETURN_ORIGINAL_LOGPROB")})
        self.answer({"object": "list", "data": [{"id": "demo"}]})
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer({"text": "from sglang's own server"})
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
'''


@pytest.fixture
def python(tmp_path):
    """A Python whose `-m sglang.launch_server` is a small server, and that runs scripts like any other."""
    (tmp_path / "server.py").write_text(HTTP_STAND_IN)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nif [ "$1" = -m ]; then shift; exec {sys.executable} {tmp_path}/server.py "$@"; fi\n'
                    f'exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


def test_sglangs_own_server_answers_where_its_layout_is_unknown_and_that_is_wanted(python):
    server = Server("--engine", "sglang", "--sglang-python", python, "--sglang-launcher", STAND_IN, *MODEL, "--api-key", "k",
                    "--sglang-fallback", "http", "--limit-mm-data-per-request", '{"image": 2}', "--sampling-defaults", "openai",
                    "--accept-any-model", "--preferred-sampling-params", '{"temperature": 0.5}', "--allow-auto-truncate", "--log-requests",
                    "--return-original-logprob", "--", "--stand-in-new-field", "--tp", "2", wait=False)
    key = {"authorization": "Bearer k"}
    try:
        wait_until(lambda: server.process.poll() is not None or "ready: http" in server.output(), server.output)
        body = {"text": "x", "model": "any"}
        assert requests.post(server.url + "/generate", json=body, timeout=60).status_code == 401
        assert requests.post(server.url + "/generate", json=body, headers=key, timeout=60).json()["text"] == "from sglang's own server"
        info = requests.get(server.url + "/get_server_info", headers=key, timeout=60).json()
        assert info["portico"]["sglang_fallback"] == "http" and "invented_field" in info["portico"]["sglang_fallback_reason"]
        assert info["api_key"] == "***"
        words = " ".join(info["argv"])
        assert "--served-model-name demo" in words and f"--model-path {DEMO}" in words and " --tp 2 --host 127.0.0.1 --port " in words
        assert '--limit-mm-data-per-request {"image": 2}' in words and "--sampling-defaults openai" in words
        assert '--preferred-sampling-params {"temperature": 0.5} --allow-auto-truncate --log-requests' in words
        assert info["original_logprob"] == "1"
        assert "falling back: SGLang's own server answers" in server.output()
    finally:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    with pytest.raises(requests.ConnectionError):
        requests.get("http://127.0.0.1:" + info["argv"][info["argv"].index("--port") + 1], timeout=60)
    os.unlink(server.log.name)


@pytest.mark.parametrize("flag, value", [("--admin-api-key", "a"), ("--allowed-media-domain", "example.org"), ("--allowed-local-media-path", "/tmp"),
                                         ("--sglang-media-helpers", "0"), ("--reasoning-field", "reasoning"), ("--pipeline", ROOT / "pipelines/demo.yaml"),
                                         ("--incremental-streaming-output", ""), ("--forward-unknown-tools", ""),
                                         ("--max-client-batch-size", "16"), ("--max-inflight-body-bytes", "67108864"),
                                         ("--max-request-cost-bytes", "1MiB"), ("--grammar-timeout", "1"), ("--read-timeout", "9"),
                                         ("--max-head-bytes", "8KiB"), ("--grpc-max-concurrent-streams", "9"), ("--threads", "2")])
def test_a_fallback_refuses_what_the_gateway_cannot_honour(python, flag, value):
    said = refusal("--sglang-python", python, "--sglang-launcher", STAND_IN, "--sglang-fallback", "http", *[flag, value][:1 + (value != "")],
                   "--api-key", "k", "--", "--stand-in-new-field")
    assert f"--sglang-fallback http cannot honour {flag}" in said


def test_a_fallback_refuses_a_file_that_may_have_a_key(python, tmp_path):
    (tmp_path / "sglang.yaml").write_text("tp: 2\n")
    said = refusal("--sglang-python", python, "--sglang-launcher", STAND_IN, "--sglang-fallback", "http",
                   "--", "--stand-in-new-field", "--config", tmp_path / "sglang.yaml")
    assert "--sglang-fallback http cannot honour a --config file of SGLang's" in said


@pytest.fixture
def start_schedulers(monkeypatch):
    """The launcher's own, before an SGLang whose arguments are these; it goes as far as SGLang's log."""
    def start(front_end_has="", **arguments):
        modules = {
            "sglang.srt.entrypoints": {"engine": types.SimpleNamespace()},
            "sglang.srt.managers.scheduler": {"run_scheduler_process": None},
            "sglang.srt.server_args": {"PortArgs": None, "prepare_server_args": lambda flags: types.SimpleNamespace(**arguments)},
            "sglang.srt.utils": {"configure_logger": configure_logger},
        }
        for name in ("sglang", "sglang.srt", "sglang.srt.managers", *modules):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
            vars(sys.modules[name]).update(modules.get(name, {}))
        sglang_launch.start_schedulers(types.SimpleNamespace(server_flags=[], reasoning_parser="none", front_end_has=front_end_has), None)

    def configure_logger(server_args):
        raise AssertionError("it goes on")

    for name in ("SGLANG_USE_PICKLE_IPC", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "")
    monkeypatch.syspath_prepend(str(LAUNCHER.parent))
    import sglang_launch

    return start


@pytest.mark.parametrize("name", ["api_key", "admin_api_key", "ssl_keyfile", "ssl_certfile", "ssl_ca_certs", "ssl_keyfile_password",
                                  "chat_template", "tool_call_parser", "preferred_sampling_params", "limit_mm_data_per_request"])
def test_what_the_front_end_would_have_to_know_is_refused_in_sglangs_own_arguments(start_schedulers, name):
    # `-- --config FILE` with `api-key: k` in it started a server that is open to everyone, and the others had no effect.
    flag = "--" + name.replace("_", "-")
    for value in ("k", ""):
        with pytest.raises(RuntimeError, match=f"--config file have {flag}, but Portico is the front end: give {flag} to"):
            start_schedulers(**{name: value})
    with pytest.raises(AssertionError, match="it goes on"):
        start_schedulers(**{name: None})
    with pytest.raises(AssertionError, match="it goes on"):  # Portico has read it
        start_schedulers(front_end_has="host," + name.replace("_", "-"), **{name: "k"})


@pytest.mark.parametrize("name", ["completion_template", "default_chat_template_kwargs", "stream_response_default_include_usage"])
def test_what_changes_answers_and_portico_lacks_is_refused_in_sglangs_own_arguments(start_schedulers, name):
    with pytest.raises(RuntimeError, match=f"have --{name.replace('_', '-')}, which Portico, the front end, does not have"):
        start_schedulers(**{name: True})
    with pytest.raises(AssertionError, match="it goes on"):
        start_schedulers(**{name: ""})


def test_a_file_of_sglangs_names_the_model_and_its_key(start, tmp_path):
    """Its served-model-name and reasoning-parser had no effect, and a key in it kept the server from starting."""
    file = tmp_path / "sglang.yaml"
    file.write_text("served-model-name: of-the-file\napi-key: k\nreasoning-parser: qwen3\ntp: 2\n")
    server = start("--engine", "sglang", "--sglang-python", sys.executable, "--sglang-launcher", STAND_IN, "--model-path", DEMO,
                   "--", "--config", file, "--stand-in-reasoning-parser", "qwen3")
    assert requests.get(server.url + "/v1/models", timeout=60).status_code == 401
    listed = requests.get(server.url + "/v1/models", headers={"authorization": "Bearer k"}, timeout=60).json()
    assert [model["id"] for model in listed["data"]] == ["of-the-file"]
    assert "reasoning as qwen3" in server.output()


def test_models_that_join_engines_wait_for_all_of_them_at_once(tmp_path):
    """Each model waited for its engine after the one before had been joined, so that waits added up."""
    engines = [started(tmp_path / name) for name in "ab"]
    try:
        models = [word for (_, facts), name in zip(engines, "ab")
                  for word in ("--model-path", DEMO, "--served-model-name", name, "--attach", facts)]
        former = Server("--engine", "sglang", *models)
        latter = Server("--engine", "sglang", *models, "--drain-timeout", "60", wait=False)
        try:
            wait_until(lambda: latter.output().count("another front end") == 2, latter.output)
            former.stop()
            wait_until(lambda: "ready: http" in latter.output(), latter.output)
            for name in "ab":
                assert generate(latter, model=name, text="one", sampling_params={"max_new_tokens": 2}).status_code == 200
        finally:
            latter.process.kill()
            latter.process.wait()
            former.process.kill()
            os.unlink(latter.log.name)
    finally:
        for process, _ in engines:
            process.kill()
            process.wait()


def test_an_engine_with_another_tokenizer_is_not_joined_unawares(tmp_path):
    engine, facts = started(tmp_path / "other")
    try:
        text = json.loads(facts.read_text())
        text["facts"]["model"]["tokenizer_path"] = "/other/tokenizer"
        facts.write_text(json.dumps(text))
        assert "has the tokenizer /other/tokenizer: name it with --tokenizer-path" in refusal("--attach", facts)
    finally:
        engine.kill()
        engine.wait()


def test_prompts_are_not_cut_off_because_a_file_of_sglangs_says_so(start_schedulers):
    with pytest.raises(RuntimeError, match="--config file have --allow-auto-truncate"):
        start_schedulers(allow_auto_truncate=True)
    with pytest.raises(AssertionError, match="it goes on"):
        start_schedulers(allow_auto_truncate=False)
