"""grpcurl, as people use it by hand: it knows nothing but what reflection tells it."""
import json
import subprocess

import pytest

from go_tools import go_program

SERVICE = "sglang.runtime.v1.SglangService"


@pytest.fixture(scope="module")
def grpcurl():
    program = go_program("github.com/fullstorydev/grpcurl/cmd/grpcurl", "v1.9.4")

    def run(server, *words):
        before, after = list(words), []
        if "--" in before:
            before, after = before[:before.index("--")], before[before.index("--") + 1:]
        command = [program, "-plaintext", "-max-time", "60", *before, f"127.0.0.1:{server.port}", *after]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=90)

    return run


def documents(text):
    """The JSON values that stand one after the other in `text`."""
    found, rest = [], text.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found


def test_it_lists_services_and_methods(mock, grpcurl):
    listed = grpcurl(mock, "--", "list").stdout.split()
    assert {SERVICE, "sglang.grpc.scheduler.SglangScheduler", "grpc.health.v1.Health"} <= set(listed)
    assert len(grpcurl(mock, "--", "list", SERVICE).stdout.split()) == 26


def test_it_describes_messages(mock, grpcurl):
    described = grpcurl(mock, "--", "describe", ".sglang.runtime.v1.TextGenerateRequest").stdout
    assert "string text = 1;" in described


def test_it_streams_an_answer(demo, grpcurl):
    prompt = "<|im_start|>user\nWhat is 7 plus 5?<|im_end|>\n<|im_start|>assistant\n"
    request = {"text": prompt, "stream": True, "sampling_params": {"temperature": 0}}
    run = grpcurl(demo, "-d", json.dumps(request), "--", f"{SERVICE}/TextGenerate")
    assert run.returncode == 0, run.stderr
    messages = documents(run.stdout)
    assert "".join(message.get("text", "") for message in messages) == "7 plus 5 is 12."
    assert [message.get("finished", False) for message in messages].count(True) == 1 and messages[-1]["finished"]


def test_it_shows_which_field_is_wrong(mock, grpcurl):
    run = grpcurl(mock, "-d", '{"text": ""}', "--", f"{SERVICE}/TextGenerate")
    assert run.returncode != 0
    assert "InvalidArgument" in run.stderr and "BadRequest" in run.stderr and '"text"' in run.stderr


def test_it_sends_the_api_key(start, grpcurl):
    server = start("--engine", "mock", "--api-key", "secret")
    refused = grpcurl(server, "--", f"{SERVICE}/ListModels")
    assert "Unauthenticated" in refused.stderr
    served = grpcurl(server, "-H", "authorization: Bearer secret", "--", f"{SERVICE}/ListModels")
    assert json.loads(served.stdout)["models"][0]["id"]
    assert "SERVING" in grpcurl(server, "-H", "authorization: Bearer secret", "--", "grpc.health.v1.Health/Check").stdout
