"""portico_client, the gateway's way as a C++ library, by its example program."""
import json
import subprocess

import pytest
import requests
from conftest import BINARY, wait_until
from gateway_fleet import Process

PROGRAM = BINARY.parent / "portico_client_chat"
COMPLETION = {"prompt": "Hello there", "max_tokens": 12}
CHAT = {"messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 12}

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the example program is not built")


@pytest.fixture(scope="module")
def workers():
    made = [Process("serve", "--engine", "mock", "--mock-itl-ms", "2") for _ in range(2)]
    for worker in made:
        worker.wait_ready()
    yield made
    for worker in made:
        worker.kill()


def run(workers, schemes, request, *flags):
    urls = ",".join(f"{scheme}127.0.0.1:{worker.port}" for scheme, worker in zip(schemes, workers, strict=False))
    text = request if isinstance(request, str) else json.dumps(request)
    return subprocess.run([str(PROGRAM), urls, text, *flags], capture_output=True, text=True, timeout=120,
                          check=False)


@pytest.mark.parametrize("schemes", [["http://"], ["grpc://"], ["http://", "grpc://"]])
def test_a_whole_answer(workers, schemes):
    done = run(workers, schemes, CHAT)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["usage"]["completion_tokens"] == 12 and answer["choices"][0]["message"]["content"]


@pytest.mark.parametrize("scheme", ["http://", "grpc://"])
def test_chunks_come_one_by_one(workers, scheme):
    done = run(workers, [scheme], CHAT, "--stream")
    assert done.returncode == 0, done.stderr
    chunks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(chunks) > 6 and {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])
    assert text == json.loads(run(workers, [scheme], CHAT).stdout)["choices"][0]["message"]["content"]


@pytest.mark.parametrize("scheme", ["http://", "grpc://"])
def test_a_completion_is_whole_or_comes_in_chunks(workers, scheme):
    whole = run(workers, [scheme], COMPLETION, "--completion")
    assert whole.returncode == 0, whole.stderr
    answer = json.loads(whole.stdout)
    assert answer["object"] == "text_completion" and answer["usage"]["completion_tokens"] == 12
    done = run(workers, [scheme], COMPLETION, "--completion", "--stream")
    assert done.returncode == 0, done.stderr
    chunks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(chunks) > 6 and {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks if chunk["choices"]) == answer["choices"][0]["text"]
    several = run(workers, [scheme], {**COMPLETION, "prompt": ["a", "b"]}, "--completion")
    assert [choice["index"] for choice in json.loads(several.stdout)["choices"]] == [0, 1]


@pytest.mark.parametrize("scheme", ["http://", "grpc://"])
def test_vectors_come_as_the_worker_gives_them(scheme):
    worker = Process("serve", "--engine", "mock", "--is-embedding")
    worker.wait_ready()
    try:
        done = run([worker], [scheme], {"input": ["one", "two"]}, "--embeddings")
        assert done.returncode == 0, done.stderr
        direct = requests.post(worker.url + "/v1/embeddings", json={"input": ["one", "two"]}, timeout=60).json()
        vectors = [one["embedding"] for one in json.loads(done.stdout)["data"]]
        assert len(vectors) == 2
        for vector, other in zip(vectors, direct["data"], strict=True):
            assert vector == pytest.approx(other["embedding"], abs=1e-6)  # over gRPC they are normalized once more
    finally:
        worker.kill()


@pytest.mark.parametrize("scheme", ["http://", "grpc://"])
def test_a_stream_that_is_dropped_is_cancelled(workers, scheme):
    done = run(workers, [scheme], {**CHAT, "max_tokens": 20000}, "--cancel-after", "3")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3, done.stderr
    wait_until(lambda: workers[0].metric("portico_requests_running") == 0, "the worker goes on")


@pytest.mark.parametrize("scheme", ["http://", "grpc://"])
def test_what_is_wrong_with_a_request_is_said(workers, scheme):
    for flags in ([], ["--stream"]):
        done = run(workers, [scheme], {**CHAT, "temperature": "hot"}, *flags)
        assert done.returncode == 1 and "temperature" in done.stderr
        done = run(workers, [scheme], {**COMPLETION, "max_tokens": "many"}, "--completion", *flags)
        assert done.returncode == 1 and "max_tokens" in done.stderr
    # Its events came as one text.
    for name in ("stream", "stre\\u0061m"):
        done = run(workers, [scheme], json.dumps(CHAT)[:-1] + f', "{name}": true}}')
        assert done.returncode == 1 and "stream must be false" in done.stderr
    assert run(workers, [scheme], [1], "--stream").returncode == 1
    assert run(workers, ["ftp://"], CHAT).returncode == 1
