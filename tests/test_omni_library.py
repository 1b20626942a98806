"""portico_omni, pipelines as a C++ library, by its example program: a server of its own that has the routes of a pipeline."""
import contextlib
import json
import subprocess

import pytest
import requests

from conftest import BINARY, START_SECONDS, free_port, wait_until
from omni_stages import ENCODE, python, write
from test_omni_recorded import PIPELINE, WAV
from test_omni_sockets import ask, tell, websockets

PROGRAM = BINARY.parent / "portico_omni_embed"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the example program is not built")


class Embedded:
    """The program while it serves; its standard input takes lines and its end ends it."""

    def __init__(self, config, *flags):
        self.process = subprocess.Popen([str(PROGRAM), str(config), "--port", "0", *map(str, flags)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
        self.said = []
        for line in self.process.stdout:
            self.said.append(line.strip())
            if line.startswith("http://"):
                break
        else:
            raise AssertionError(self.process.stderr.read())
        self.url = self.said[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.process.stdout.readline().strip()

    def metric(self, name):
        lines = requests.get(self.url + "/metrics", timeout=60).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(START_SECONDS)


@contextlib.contextmanager
def embedded(config, *flags):
    program = Embedded(config, *flags)
    try:
        yield program
        assert program.stop() == 0, program.process.stderr.read()
    finally:
        program.process.kill()
        program.process.wait()


@pytest.fixture
def mock_file(tmp_path):
    path = tmp_path / "mock.yaml"
    path.write_text(PIPELINE)
    return path


def test_a_server_of_ones_own_has_its_routes_and_those_of_the_pipeline(mock_file, tmp_path):
    said = tmp_path / "said.pcm"
    speech = {"input": "hello", "response_format": "pcm"}
    with embedded(mock_file, "--say", json.dumps(speech), said) as program:
        assert program.said[0] == f"{said}: 4800 bytes of audio/pcm"  # by the client in the process
        assert requests.get(program.url + "/about", timeout=60).text == "this program speaks with mock\n"
        assert requests.get(program.url + "/v1/models", timeout=60).json()["data"][0]["id"] == "mock"
        answer = requests.post(program.url + "/v1/audio/speech", json=speech, timeout=60)
        assert answer.status_code == 200 and answer.content == said.read_bytes()
        chat = {"messages": [{"role": "user", "content": "hello"}], "modalities": ["text", "audio"], "stream": True,
                "audio": {"format": "pcm", "voice": "x"}}
        events = requests.post(program.url + "/v1/chat/completions", json=chat, timeout=60).text
        assert '"audio"' in events and events.endswith("data: [DONE]\n\n")
        heard = requests.post(program.url + "/v1/audio/transcriptions", files={"file": ("a.wav", WAV)}, timeout=60)
        assert heard.status_code == 200 and heard.json()["usage"]
        with websockets.connect(f"ws://127.0.0.1:{program.port}/v1/audio/speech/stream", open_timeout=60) as ws:
            ask(ws, type="session.config", response_format="pcm")
            assert tell(ws)["type"] == "session.configured"
            ask(ws, type="input.text", text="Hello there. And more.")
            assert tell(ws)["type"] == "audio.start" and isinstance(tell(ws), bytes)
        with websockets.connect(f"ws://127.0.0.1:{program.port}/v1/realtime", open_timeout=60) as ws:
            assert tell(ws)["type"] == "session.created"
        for path in ("/abort_request", "/start_profile", "/pause_generation", "/nowhere"):
            assert requests.post(program.url + path, json={}, timeout=60).status_code == 404, path
        assert requests.post(program.url + "/about", timeout=60).status_code == 405
        refused = requests.post(program.url + "/v1/audio/speech", json={"input": ""}, timeout=60)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "input"
        assert program.ask("health") == "ok"


def test_requests_end_by_abort_by_leaving_and_with_the_program(tmp_path):
    path = write(tmp_path / "p.yaml", python("talk", "Hold"), ENCODE)  # in a process, which this program starts
    endless = {"input": "endless", "response_format": "pcm", "request_id": "long"}
    with embedded(path) as program:
        def begin(**fields):
            answer = requests.post(program.url + "/v1/audio/speech", json={**endless, **fields}, stream=True, timeout=60)
            assert answer.status_code == 200 and answer.raw.read(1)
            return answer
        begin().close()
        wait_until(lambda: program.metric("portico_pipeline_requests_running") == 0, "a request goes on whose client has left")
        # Those of the app are its clients'; abort() is of requests that the program has made.
        left = begin()
        assert program.ask("health") == "ok"
        program.tell("abort long")
        assert program.ask("health") == "ok" and program.metric("portico_pipeline_requests_running") == 1
        left.close()
        wait_until(lambda: program.metric("portico_pipeline_requests_running") == 0, "a request goes on whose client has left")


def test_what_cannot_start_is_told(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(PIPELINE.replace("name: mock", "nmae: mock"))
    done = subprocess.run([str(PROGRAM), str(bad)], capture_output=True, text=True, timeout=START_SECONDS, check=False)
    assert done.returncode == 1 and "bad.yaml:1: unknown key" in done.stderr
    done = subprocess.run([str(PROGRAM), "--say", "{}", "/dev/null", str(tmp_path / "none.yaml")], capture_output=True,
                          text=True, timeout=START_SECONDS, check=False)
    assert done.returncode == 1 and "none.yaml" in done.stderr


def test_a_speech_that_is_refused_names_its_field(mock_file):
    done = subprocess.run([str(PROGRAM), str(mock_file), "--say", '{"input": "x", "voice": "nobody"}', "/dev/null"],
                          capture_output=True, text=True, timeout=START_SECONDS, check=False)
    assert done.returncode == 1 and "nobody" in done.stderr


def test_launching_is_what_omni_serve_does(mock_file):
    port = free_port()
    launched = subprocess.Popen([str(PROGRAM), "--launch", str(mock_file), "--port", str(port)], stderr=subprocess.PIPE, text=True)
    try:
        for line in launched.stderr:
            if " ready: " in line:
                break
        assert requests.get(f"http://127.0.0.1:{port}/get_server_info", timeout=60).status_code == 200
        launched.terminate()
        assert launched.wait(60) == 0
    finally:
        launched.kill()
