"""The example clients of examples/grpc, as a user would build and run them."""
import json
import pathlib
import subprocess
import sys

from conftest import ROOT
from go_tools import go_with_stubs

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


def test_go_streams_an_answer(demo, tmp_path):
    program = go_with_stubs(EXAMPLES / "go/main.go", tmp_path)
    check(lambda *arguments: run([program, *arguments]), demo)


def test_cpp_streams_an_answer(demo):
    build = ROOT / "build/grpc-example"
    run(["cmake", "-S", EXAMPLES / "cpp", "-B", build, "-G", "Ninja", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"])
    run(["cmake", "--build", build])
    check(lambda *arguments: run([build / "generate", *arguments]), demo)
