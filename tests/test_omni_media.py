"""AAC, M4A and WebM by portico-media, a program of its own."""
import shutil
import subprocess

import pytest
import requests

from conftest import BINARY
from test_omni import needs_speech, omni, say  # noqa: F401 (omni is a fixture)

HELPER = BINARY.with_name("portico-media")
needs_media = pytest.mark.skipif(not HELPER.exists(), reason="portico-media is not built (scripts/packages.sh media)")
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

PIPELINE = """stages:
  - {name: decode, factory_path: portico.decode, stream_to: [talk]}
  - {name: talk, factory_path: portico.mock, factory: {chunks: 100, text: false}, stream_to: [encode]}
  - {name: encode, factory_path: portico.encode, terminal: true}
"""


@pytest.fixture
def mock_voice(start, tmp_path):
    """A server whose speech is two seconds long."""
    path = tmp_path / "mock.yaml"
    path.write_text(PIPELINE)
    return lambda: start("--pipeline", str(path), "--engine", "mock")


def helper(*words, data=b""):
    return subprocess.run([str(HELPER), *words], input=data, stdout=subprocess.PIPE, timeout=60)


def hear(server, data):
    return requests.post(server.url + "/v1/audio/transcriptions", files={"file": ("a", data)}, data={"response_format": "verbose_json"}, timeout=60)


def test_what_is_no_sound_is_told_every_format(mock_voice):
    """M4A, WebM and AAC were left out."""
    answer = hear(mock_voice(), b"This is a text.")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "file", answer.text
    assert "use WAV, MP3, FLAC, Ogg, M4A, WebM or AAC" in answer.json()["error"]["message"]


@needs_media
def test_speech_is_answered_in_aac(mock_voice):
    server = mock_voice()
    answer = say(server, "hello", response_format="aac")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/aac" and answer.content[:2] == b"\xff\xf1"
    pcm = helper("decode", "24000", "60", data=answer.content).stdout
    assert 2.0 <= len(pcm) / 2 / 24000 < 2.2  # two seconds, and what the coder puts before and behind
    refused = say(server, "hello", response_format="aac", sample_rate=9000)
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "sample_rate"
    broken = hear(server, b"\0\0\0\x18ftypM4A " + bytes(100))
    assert broken.status_code == 400 and broken.json()["error"]["param"] == "file"


@needs_media
@needs_ffmpeg
@needs_speech
@pytest.mark.parametrize("name,flags", [("m4a", ["-c:a", "aac"]), ("webm", ["-c:a", "libopus"]), ("mp4", ["-c:a", "alac"]), ("mka", ["-c:a", "libvorbis"])])
def test_sound_of_phones_and_browsers_is_heard(omni, tmp_path, name, flags):
    path = tmp_path / f"a.{name}"
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=duration=3", "-ac", "2", *flags, "-strict", "-2", str(path)], check=True)
    data = path.read_bytes()
    answer = hear(omni, data)
    assert answer.status_code == 200, answer.text
    assert answer.json()["duration"] == pytest.approx(3, abs=0.1)
    assert hear(omni, data[:len(data) // 3]).status_code in (200, 400)
    broken = hear(omni, data[:200] + b"\xff" * 2000)
    assert broken.status_code == 400 and broken.json()["error"]["param"] == "file"


@needs_media
@needs_speech
def test_what_is_said_in_aac_is_heard_again(omni):
    spoken = say(omni, "The train to London leaves at seven in the morning.", voice="rms", response_format="aac")
    assert "london" in hear(omni, spoken.content).json()["text"]


@needs_media
def test_the_helper_is_confined_and_says_what_is_wrong():
    assert helper("decode", "16000", "10", data=b"RIFF" + bytes(100)).returncode == 10
    assert helper("decode", "16000", "10", data=b"\0\0\0\x18ftypM4A " + bytes(100)).returncode == 12
    assert helper("encode", "9000").returncode == 15
    assert helper("encode", "9").returncode == 2
    long = helper("encode", "8000", data=bytes(16000 * 12)).stdout
    assert helper("decode", "8000", "10", data=long).returncode == 13


def test_without_the_helper_the_503_names_it(mock_voice, monkeypatch):
    monkeypatch.setenv("PORTICO_MEDIA", "/nowhere/portico-media")
    server = mock_voice()
    answer = say(server, "hello", response_format="aac")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "encoder_missing")
    assert "portico-media" in answer.json()["error"]["message"]
    answer = hear(server, b"\0\0\0\x18ftypM4A " + bytes(100))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "decoder_missing")
