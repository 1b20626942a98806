"""A gateway before HTTP workers and workers that take tokens over gRPC, in one registry."""
import contextlib
import json
import socket
import subprocess
import threading

import pytest
import requests
from conftest import BINARY, ROOT, free_port, wait_until
from gateway_fleet import Process, mock_worker

TOKENIZER = ROOT / "models/demo"


class Mix:
    """Mock workers by the schemes that the gateway is told, and the gateway."""

    def __init__(self, *schemes, flags=("--policy", "round_robin"), workers=()):
        self.workers = [mock_worker(*workers) for _ in schemes]
        for worker in self.workers:
            worker.wait_ready()
        urls = [f"{scheme}127.0.0.1:{worker.port}" for scheme, worker in zip(schemes, self.workers, strict=True)]
        self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--show-workers",
                               "--worker-urls", *urls, *flags)
        self.url = self.gateway.url

    def listed(self):
        try:
            return requests.get(self.url + "/workers", timeout=60).json()["workers"]
        except requests.RequestException:
            return []

    def healthy(self):
        return sum(worker["is_healthy"] for worker in self.listed())

    def wait_healthy(self, count):
        wait_until(lambda: self.healthy() == count, lambda: f"{self.listed()}: {self.gateway.output()}")

    def post(self, path, timeout=60, **body):
        return requests.post(self.url + path, json=body, timeout=timeout, stream=bool(body.get("stream")))

    def chat(self, content="Say something.", **fields):
        return self.post("/v1/chat/completions", messages=[{"role": "user", "content": content}],
                         **{"max_tokens": 12, **fields})

    def at_rest(self):
        return all(worker["load"] == 0 and worker["prefill_tokens"] == 0 for worker in self.listed())

    def stop(self):
        status = self.gateway.end()
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
        assert status == 0, self.gateway.output()[-3000:]


@pytest.fixture(scope="module")
def mix():
    made = Mix("http://", "grpc://")
    made.wait_healthy(2)
    yield made
    made.stop()


@pytest.fixture
def mixes():
    made = []

    def make(*arguments, **keywords):
        made.append(Mix(*arguments, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def events(reply):
    return [line[6:] for line in reply.iter_lines(decode_unicode=True) if line.startswith("data: ")]


def by_worker(send, times=6):
    """What each worker has answered."""
    answers = {}
    for _ in range(times):
        reply = send()
        assert reply.status_code == 200, reply.text
        answers.setdefault(reply.headers["x-portico-worker"], []).append(reply)
    assert len(answers) == 2, "one worker has got nothing"
    return answers


def test_both_are_listed_with_what_they_speak(mix):
    assert [worker["connection_mode"] for worker in mix.listed()] == ["http", "grpc"]
    assert {tuple(worker["models"]) for worker in mix.listed()} == {("demo",)}
    assert [model["id"] for model in requests.get(mix.url + "/v1/models", timeout=60).json()["data"]] == ["demo"]


@pytest.mark.parametrize("path, body, text", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12},
     lambda reply: reply["choices"][0]["message"]["content"]),
    ("/v1/completions", {"prompt": "Once", "max_tokens": 12}, lambda reply: reply["choices"][0]["text"]),
    ("/generate", {"text": "Once", "sampling_params": {"max_new_tokens": 12}}, lambda reply: reply["text"]),
])
def test_answers_are_the_same_over_both_ways(mix, path, body, text):
    answers = by_worker(lambda: mix.post(path, **body))
    texts = {text(reply.json()) for replies in answers.values() for reply in replies}
    assert len(texts) == 1 and texts.pop()


def test_streams_come_in_pieces_over_both_ways(mix):
    answers = by_worker(lambda: mix.chat(stream=True, stream_options={"include_usage": True}), times=4)
    for replies in answers.values():
        for reply in replies:
            said = events(reply)
            assert said[-1] == "[DONE]" and len(said) > 6
            assert json.loads(said[-2])["usage"]["completion_tokens"] == 12


def test_what_is_wrong_with_a_request_is_said_over_both_ways(mix):
    for _ in range(4):
        reply = mix.chat(temperature="hot")
        assert reply.status_code == 400 and "temperature" in reply.json()["error"]["message"]
        assert mix.chat(model="other").status_code == 404
        assert requests.post(mix.url + "/v1/chat/completions", data="{", timeout=60).status_code == 400
    wait_until(mix.at_rest, "requests are still counted")


def test_a_parser_that_does_not_exist_refuses_the_start():
    done = subprocess.run([str(BINARY), "route", "--worker-urls", "http://a:1", "--tool-call-parser", "nonsense"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "--tool-call-parser" in done.stderr and "nonsense" in done.stderr


def test_controls_go_to_both(mix):
    reply = requests.post(mix.url + "/flush_cache", timeout=60)
    assert reply.status_code == 200, reply.text
    assert [answer["status"] for answer in reply.json()["workers"]] == [200, 200]


def test_a_client_that_leaves_stops_the_worker_that_takes_tokens(mixes):
    mix = mixes("grpc://", workers=("--mock-itl-ms", "50"))
    mix.wait_healthy(1)
    reply = mix.chat(stream=True, max_tokens=20000)
    lines = reply.iter_lines()  # kept: requests closes the connection of an iterator that is dropped
    next(lines)
    running = lambda: mix.workers[0].metric("portico_requests_running")  # noqa: E731
    wait_until(lambda: running() == 1, "the worker has nothing to do")
    reply.close()
    wait_until(lambda: running() == 0, "the worker goes on")
    wait_until(mix.at_rest, "requests are still counted")


def test_no_answer_is_lost_with_a_worker_that_takes_tokens_and_it_is_used_again(mixes):
    mix = mixes("http://", "grpc://", "grpc://", workers=("--mock-ttft-ms", "20"))
    mix.wait_healthy(3)
    statuses, stop = [], threading.Event()

    def load():
        while not stop.is_set():
            statuses.append(mix.chat(max_tokens=1).status_code)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        victim = mix.workers[1]
        victim.kill()
        wait_until(lambda: mix.healthy() == 2, "the dead worker counts as healthy")
        victim.start()
        victim.wait_ready()
        wait_until(lambda: victim.metric("portico_generation_tokens_total") > 0, "the worker that is back gets nothing")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}
    wait_until(mix.at_rest, "requests are still counted")


def test_a_stream_whose_token_worker_dies_ends_with_an_error_and_done(mixes):
    mix = mixes("grpc://", workers=("--mock-itl-ms", "30"))
    mix.wait_healthy(1)
    reply = mix.chat(stream=True, max_tokens=20000)
    lines = reply.iter_lines(decode_unicode=True)
    next(lines)
    mix.workers[0].kill()
    said = [line[6:] for line in lines if line.startswith("data: ")]
    assert said[-1] == "[DONE]" and "error" in json.loads(said[-2])
    wait_until(lambda: mix.chat().status_code == 503, "a dead worker still answers")
    assert str(mix.workers[0].port) not in mix.chat().text
    wait_until(mix.at_rest, "requests are still counted")


def test_workers_that_take_tokens_come_and_go(mixes):
    mix = mixes("http://", workers=("--mock-ttft-ms", "20"))
    mix.wait_healthy(1)
    worker = mock_worker()
    try:
        worker.wait_ready()
        url = f"grpc://127.0.0.1:{worker.port}"
        for _ in range(3):
            assert requests.post(mix.url + "/workers", json={"url": url}, timeout=60).status_code in (200, 201, 202)
            mix.wait_healthy(2)
            number = next(one["id"] for one in mix.listed() if one["url"] == url)
            wait_until(lambda number=number: mix.chat().headers.get("x-portico-worker") == number, "it gets nothing")
            assert requests.delete(f"{mix.url}/workers/{number}", timeout=60).status_code < 300
            assert mix.chat().status_code == 200
    finally:
        worker.kill()


def test_models_have_templates_of_their_own(tmp_path):
    """--chat-template was one for all models behind a gateway."""
    workers = [mock_worker("--served-model-name", name) for name in ("one", "two")]
    template = tmp_path / "two.jinja"
    template.write_text("the template of its own: {% for message in messages %}{{ message['content'] }}{% endfor %}")
    file = tmp_path / "fleet.yaml"
    file.write_text(json.dumps({"workers": [f"grpc://127.0.0.1:{worker.port}" for worker in workers], "enable-igw": True,
                                "models": {"two": {"chat-template": str(template)}}}))
    gateway = None
    try:
        for worker in workers:
            worker.wait_ready()
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--config", file)

        def models():
            with contextlib.suppress(requests.RequestException):
                return [one["id"] for one in requests.get(gateway.url + "/v1/models", timeout=60).json()["data"]]

        wait_until(lambda: models() == ["one", "two"], gateway.output)
        for model, has in (("one", False), ("two", True)):
            body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 200}
            reply = requests.post(gateway.url + "/v1/chat/completions", json=body, timeout=60).json()
            assert ("the template of its own" in reply["choices"][0]["message"]["content"]) == has, reply
        assert gateway.end() == 0
    finally:
        for process in (*workers, gateway):
            if process is not None:
                process.kill()


class Http2Only:
    """A relay that hangs up on all that is not HTTP/2, as servers of gRPC alone do."""

    def __init__(self, port):
        self.to = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        first = client.recv(65536)
        if not first.startswith(b"PRI * HTTP/2.0"):
            return client.close()
        server = socket.create_connection(("127.0.0.1", self.to))
        server.sendall(first)
        threading.Thread(target=self._copy, args=(server, client), daemon=True).start()
        return self._copy(client, server)

    @staticmethod
    def _copy(source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_a_worker_without_a_scheme_is_asked_what_it_speaks():
    worker = mock_worker()
    worker.wait_ready()
    relay = Http2Only(worker.port)
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls",
                      f"127.0.0.1:{worker.port}", f"127.0.0.1:{relay.port}", "--policy", "round_robin")

    def modes():
        with contextlib.suppress(requests.RequestException):
            workers = requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
            return [one["connection_mode"] for one in workers if one["is_healthy"]]
        return []

    try:
        wait_until(lambda: modes() == ["http", "grpc"], lambda: f"{modes()}: {gateway.output()}")
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
        for _ in range(4):
            assert requests.post(gateway.url + "/v1/chat/completions", json=body, timeout=60).status_code == 200
        assert gateway.end() == 0
    finally:
        gateway.process.kill()
        worker.kill()
        relay.listener.close()


def test_the_tokenizer_comes_from_the_worker_where_its_path_is_not_here(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (folder / name).write_bytes((TOKENIZER / name).read_bytes())
    port = free_port()
    with open(tmp_path / "log", "w") as log:
        # A relative path, which is nothing where the gateway runs.
        worker = subprocess.Popen([str(BINARY), "serve", "--engine", "mock", "--tokenizer-path", "elsewhere", "--port",
                                   str(port)], cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls",
                      f"grpc://127.0.0.1:{port}")
    try:
        gateway.wait_ready("/readiness")
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
        reply = requests.post(gateway.url + "/v1/chat/completions", json=body, timeout=60)
        assert reply.status_code == 200 and reply.json()["choices"][0]["message"]["content"], reply.text
        assert "tokenizer of its own" in gateway.output()
        assert gateway.end() == 0
    finally:
        gateway.process.kill()
        worker.kill()
        worker.wait()
