"""The official openai package for JavaScript, under Node."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import Server, wait_until
from test_grpc_transport import Authority
from test_omni import needs_speech


@pytest.mark.parametrize("kind", ["mock", "demo"])
def test_it_completes_streams_and_reads_errors(kind, node, request):
    server = request.getfixturevalue(kind)
    script = pathlib.Path(__file__).parent / "js/client.mjs"
    result = subprocess.run([node, str(script), str(pathlib.Path(sys.prefix) / "js"), server.url],
                            capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    got = json.loads(result.stdout)
    assert got["whole"] and got["streamed"] == got["whole"]
    assert got["finish"] in ("stop", "length")
    assert got["usage"]["completion_tokens"] > 0
    assert got["completion"]
    assert got["refused"] == {"status": 400, "param": "top_p"}


@pytest.fixture
def secure(tmp_path):
    """A server that speaks, over TLS: the package opens no other WebSocket; and the file of its authority."""
    authority = Authority(tmp_path)
    authority.issue("server")
    server = Server("--speech", "--ssl-certfile", tmp_path / "server.crt", "--ssl-keyfile", tmp_path / "server.key", wait=False)
    wait_until(lambda: "ready: https" in server.output() or server.process.poll() is not None, server.output)
    yield server, tmp_path / "ca.crt"
    server.stop()


@needs_speech
def test_it_speaks_listens_and_holds_a_conversation(node, secure):
    server, authority = secure
    script = pathlib.Path(__file__).parent / "js/speech.mjs"
    result = subprocess.run([node, str(script), str(pathlib.Path(sys.prefix) / "js"), f"https://127.0.0.1:{server.port}"],
                            capture_output=True, text=True, timeout=240, env={**os.environ, "NODE_EXTRA_CA_CERTS": str(authority)})
    assert result.returncode == 0, result.stderr
    got = json.loads(result.stdout)
    assert got["wav"] == "RIFF" and got["pcm"] > 24000 and got["streamed"] and got["events"] == "speech.audio.done"
    assert "japan" in got["heard"].lower() and "japan" in got["deltas"].lower() and "japan" in got["timed"]["text"].lower()
    assert got["timed"]["words"] == got["timed"]["text"]
    assert got["last"] == {"type": "transcript.text.done", "text": got["deltas"].strip()}
    assert "Tokyo" in got["aloud"] and "tokyo" in got["again"].lower()
    assert "Tokyo" in got["chat"]["text"] and got["chat"]["files"] == 1
    assert got["refused"] == {"status": 400, "param": "voice"}
    session = got["session"]
    assert session["status"] == "completed" and "japan" in session["asked"].lower()
    assert "Tokyo" in session["answered"] and session["sound"] > 0
