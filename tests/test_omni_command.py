"""portico.command: programs that speak."""
import pathlib
import struct
import time

import pytest
import requests

from conftest import wait_until
from omni_stages import ENCODE, pipeline, say, write  # noqa: F401 (pipeline is a fixture)
from test_omni import omni_command


# A program that speaks: a sample for each byte that it reads, as espeak-ng writes WAV (sizes unknown).
SPEAKER = """import struct, sys, time
voice, text = sys.argv[1], sys.stdin.buffer.read().strip()
if b"fail" in text:
    sys.exit(3)
rate = 16000 if b"slow" in text else 22050
sys.stdout.buffer.write(b"RIFF\\xff\\xff\\xff\\x7fWAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16) + b"data\\xff\\xff\\xff\\x7f")
while b"endless" in text:
    sys.stdout.buffer.write(bytes(4096))
sys.stdout.buffer.write(b"".join(struct.pack("<h", len(voice) * 100 + byte) for byte in text))
"""


def speaking(server):
    """Whether a program runs for the server."""
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            words = (status.parent / "cmdline").read_bytes()
            if f"PPid:\t{server.process.pid}\n" in status.read_text() and b"speak.py" in words:
                return True
        except OSError:
            pass  # it has just ended
    return False


@pytest.fixture(scope="module")
def speaker_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speaker")
    (folder / "speak.py").write_text(SPEAKER)
    return write(folder / "p.yaml", "name: sentences, factory_path: portico.sentences, factory: {language: any}, stream_to: [say]",
                 f"name: say, factory_path: portico.command, factory: {{command: [python3, '{folder}/speak.py', '{{voice}}'], voices: [a, bb]}}, stream_to: [encode]", ENCODE, head="name: speaker\n")


@pytest.fixture(scope="module")
def speaker(serve, speaker_file):
    return serve("--pipeline", str(speaker_file))


def test_a_program_speaks_any_language(speaker):
    text = "\u4f60\u597d"
    answer = say(speaker, text, sample_rate=22050, voice="bb")
    assert answer.status_code == 200, answer.text
    samples = struct.unpack(f"<{len(answer.content) // 2}h", answer.content)
    assert list(samples) == [200 + byte for byte in text.encode()]
    assert requests.get(speaker.url + "/v1/audio/voices", timeout=60).json()["voices"] == ["a", "bb"]


def test_a_program_that_fails_or_never_ends_harms_only_its_request(speaker):
    failed = say(speaker, "fail")
    assert failed.status_code == 500 and "status 3" in failed.json()["error"]["message"]
    assert say(speaker, "x", voice="c").json()["error"]["param"] == "voice"
    assert say(speaker, "x", speed=2).json()["error"]["param"] == "speed"
    with requests.post(speaker.url + "/v1/audio/speech", json={"input": "endless"}, stream=True, timeout=60) as answer:
        assert next(answer.iter_content(10000))
    speaker.wait_for("portico_pipeline_requests_running", 0)
    assert say(speaker, "hello").status_code == 200
    wait_until(lambda: not speaking(speaker), "a program is left")


@pytest.mark.parametrize("flags", [(), ("--engine", "mock")])
def test_a_pipeline_that_only_speaks_rejects_what_it_does_not_do(start, speaker_file, flags):
    """Chats were answered with the content "", transcriptions with the text ""."""
    server = start("--pipeline", str(speaker_file), *flags)
    hello = [{"role": "user", "content": "hello"}]
    sound = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]}]
    aloud = {"modalities": ["text", "audio"]}
    chats = [{"messages": hello, **aloud}, {"messages": hello, "stream": True, **aloud}, {"messages": sound}]
    if not flags:  # no model either
        chats += [{"messages": hello}, {"messages": hello, "model": "speaker"}]
    for body in chats:
        answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "messages", (body, answer.text)
        assert "no stage of this pipeline answers chats" in answer.json()["error"]["message"], answer.text
    for form in ({}, {"stream": "true"}):
        answer = requests.post(server.url + "/v1/audio/transcriptions", files={"file": ("a.wav", b"RIFF")}, data=form, timeout=60)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "file", answer.text
        assert "no stage of this pipeline recognizes speech" in answer.json()["error"]["message"], answer.text
    for intent in ("", "?intent=transcription"):
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}
        answer = requests.get(server.url + "/v1/realtime" + intent, headers=upgrade, timeout=60)
        assert answer.status_code == 400 and "no stage of this pipeline" in answer.text, answer.text
    assert say(server, "hello").status_code == 200
    if flags:
        assert server.chat("hello").status_code == 200


def test_a_pipeline_that_is_a_model_tells_when_it_was_started(start, speaker_file):
    """`created` was 0."""
    before = int(time.time())
    server = start("--pipeline", str(speaker_file))
    model, = requests.get(server.url + "/v1/models", timeout=60).json()["data"]
    assert model["id"] == "speaker" and before <= model["created"] <= int(time.time())


def test_a_pipeline_that_only_passes_parts_on_rejects_speech(pipeline):
    """It was a 500: the pipeline made no sound."""
    server = pipeline("name: sentences, factory_path: portico.sentences, stream_to: [encode]", ENCODE)
    answer = say(server, "hello")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "input", answer.text
    batch = requests.post(server.url + "/v1/audio/speech/batch", json={"items": [{"input": "hello"}]}, timeout=60)
    assert batch.status_code == 400, batch.text


def test_a_program_that_is_not_installed_is_named(tmp_path):
    stage = "name: say, factory_path: portico.command, factory: {command: [no-such-voice]}, terminal: true"
    refused = omni_command("check", str(write(tmp_path / "p.yaml", stage)))
    assert refused.returncode == 1 and "the program `no-such-voice` is not installed" in refused.stderr
