"""The example clients of examples/grpc, as a user would build and run them."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples/grpc"
PROMPT = "<|im_start|>user\nWhat is 7 plus 5?<|im_end|>\n<|im_start|>assistant\n"


def run(command, **keywords):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=400, **keywords)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def check(run_client, server):
    """`run_client(*arguments)` prints what the same request over HTTP gives, and why it ended."""
    import requests

    request = {"text": PROMPT, "sampling_params": {"temperature": 0, "max_new_tokens": 32}}
    answer = requests.post(server.url + "/generate", json=request, timeout=60).json()
    text, last = run_client(f"127.0.0.1:{server.port}", PROMPT).rstrip("\n").rsplit("\n", 1)
    assert text == answer["text"] and text
    assert json.loads(last.removeprefix("finish_reason: ")) == answer["meta_info"]["finish_reason"]


@pytest.fixture(scope="session")
def go():
    program = shutil.which("go")
    if program is None:
        pytest.skip("Go is not installed")
    version = subprocess.run([program, "env", "GOVERSION"], capture_output=True, text=True).stdout.strip()
    if tuple(int(part) for part in version.removeprefix("go").split(".")[:2]) < (1, 25):
        pytest.skip(f"the gRPC package for Go needs Go 1.25 or newer, this is {version}")
    return program


def test_python_streams_an_answer(demo):
    check(lambda *arguments: run([sys.executable, EXAMPLES / "python/generate.py", *arguments]), demo)


def test_python_says_what_was_wrong(demo):
    result = subprocess.run([sys.executable, EXAMPLES / "python/generate.py", f"127.0.0.1:{demo.port}", ""],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert result.stderr.startswith("INVALID_ARGUMENT: ") and "text" in result.stderr


def test_javascript_streams_an_answer(demo, node):
    modules = pathlib.Path(sys.prefix) / "js"
    check(lambda *arguments: run([node, EXAMPLES / "javascript/generate.mjs", *arguments], cwd=modules), demo)


def test_go_streams_an_answer(demo, go, tmp_path):
    folder = tmp_path / "examples/grpc/go"  # stubs and tools are made beside the sources
    shutil.copytree(EXAMPLES / "go", folder, ignore=shutil.ignore_patterns("bin", "sglang"))
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    environment = {**os.environ, "GOBIN": str(ROOT / "build/go/bin")}
    run([folder / "generate_stubs.sh"], env=environment)
    run([go, "build", "-o", "generate", "."], cwd=folder)
    check(lambda *arguments: run([folder / "generate", *arguments]), demo)


def test_cpp_streams_an_answer(demo):
    build = ROOT / "build/grpc-example"
    run(["cmake", "-S", EXAMPLES / "cpp", "-B", build, "-G", "Ninja", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"])
    run(["cmake", "--build", build])
    check(lambda *arguments: run([build / "generate", *arguments]), demo)
