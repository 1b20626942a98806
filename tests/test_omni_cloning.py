"""Voices that imitate others: references, the fields that only some stages take, and voices that clients upload."""
import base64
import json
import pathlib
import struct
import subprocess

import pytest
import requests

from conftest import BINARY, Server
from omni_stages import ENCODE, python, write

RATE = 48000


def wav(seconds=1.0, rate=RATE, value=1000):
    data = struct.pack("<h", value) * int(seconds * rate)
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16) +
            b"data" + struct.pack("<I", len(data)) + data)


def data_url(sound, kind="audio/wav"):
    return f"data:{kind};base64," + base64.b64encode(sound).decode()


class Cloning:
    def __init__(self, folder):
        self.folder, self.log = folder, folder / "log"
        (folder / "media").mkdir()
        path = write(folder / "p.yaml", python("voice", "Clone", f"factory: {{log: '{self.log}'}}, stream_to: [encode]"), ENCODE,
                     head=f"voices: {{alias: own}}\nallowed_local_media_path: {folder / 'media'}\n")
        self.server = Server("--pipeline", str(path), "--engine", "mock")
        self.url = self.server.url

    def speak(self, text="hello", **fields):
        body = {"input": text, "response_format": "pcm", **fields}
        return requests.post(self.url + "/v1/audio/speech", json=body, timeout=60)

    def known(self, answer):
        """What the stage knew of the speech that was answered."""
        assert answer.status_code == 200, answer.text
        assert len(answer.content) == 960
        return json.loads(self.log.read_text().splitlines()[-1])

    def upload(self, sound, name="anna", consent="yes", **fields):
        return requests.post(self.url + "/v1/audio/voices", files={"audio_sample": ("a.wav", sound, "audio/wav")},
                             data={"name": name, "consent": consent, **fields}, timeout=60)

    def remove(self, name):
        return requests.delete(self.url + "/v1/audio/voices/" + name, timeout=60)

    def voices(self):
        return requests.get(self.url + "/v1/audio/voices", timeout=60).json()


@pytest.fixture(scope="module")
def cloning(tmp_path_factory):
    cloning = Cloning(tmp_path_factory.mktemp("cloning"))
    yield cloning
    cloning.server.stop()


def refused(answer, field, text="", status=400):
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["param"] == field and text in error["message"], error


def test_a_reference_reaches_the_stage_as_sound(cloning):
    nothing = cloning.known(cloning.speak())
    assert nothing == {"voice": "", "references": [], "fields": {}}
    one = cloning.known(cloning.speak(ref_audio=data_url(wav()), ref_text="good morning", task_type="base", x_vector_only_mode=False))
    assert one == {"voice": "", "references": [[RATE, RATE, "e803", "good morning"]],
                   "fields": {"task_type": "Base", "x_vector_only_mode": False}}
    (cloning.folder / "media" / "b.wav").write_bytes(wav(0.5, 8000, 7000))
    several = cloning.known(cloning.speak(voice="alias", references=[
        {"audio_path": str(cloning.folder / "media" / "b.wav")}, {"data": base64.b64encode(wav(2, 96000)).decode(), "media_type": "audio/wav", "text": "two"},
        {"ref_audio": data_url(wav(0.5, 16000, -200)), "text": "three"}]))
    assert several["voice"] == "own"
    first, second, third = several["references"]
    assert first == [8000, 4000, "581b", ""]
    assert second[0] == RATE and abs(second[1] - 2 * RATE) < 100 and second[3] == "two"  # no more samples a second than that
    assert third == [16000, 8000, "38ff", "three"]
    events = cloning.speak(ref_audio=data_url(wav()), stream_format="sse")
    assert "speech.audio.done" in events.text
    cloning.server.wait_for("portico_reference_bytes", 0)


WRONG = [
    ("ref_audio", {"ref_audio": 7}), ("ref_audio", {"ref_audio": ""}), ("ref_audio", {"ref_audio": "data:audio/wav;base64,!"}),
    ("ref_audio", {"ref_audio": "data:text/plain;base64,aGVsbG8="}), ("ref_audio", {"ref_audio": "https://example.org/a.wav"}),
    ("ref_audio", {"ref_audio": "/etc/passwd"}), ("ref_audio", {"ref_audio": "ftp://example.org/a"}),
    ("ref_audio", {"ref_audio": data_url(b"no sound")}), ("ref_audio", {"ref_audio": data_url(wav()[:5000])}),
    ("ref_audio", {"ref_audio": data_url(wav(0.1))}), ("ref_audio", {"ref_audio": data_url(wav(61, 8000))}),
    ("ref_audio", {"ref_audio": data_url(wav(1, 8000, 3))}), ("ref_text", {"ref_text": "alone"}),
    ("ref_text", {"ref_audio": data_url(wav()), "ref_text": ["a"]}), ("ref_audio", {"ref_audio": data_url(wav()), "ref_text": "x" * 5000}),
    ("references", {"references": []}), ("references", {"references": {}}), ("references", {"references": ["a"]}),
    ("references", {"references": [{"text": "a"}]}), ("references", {"references": [{"audio": data_url(wav()), "vq_codes": [1]}]}),
    ("references", {"references": [{"audio": data_url(wav()), "data": "AAAA"}]}), ("references", {"references": [{"sound": "a"}]}),
    ("references", {"references": [{"audio": data_url(wav(0.5, 8000))}] * 5}), ("references", {"references": [{"audio": 7}]}),
    ("references", {"references": [{"data": "AAAA", "media_type": "text/plain"}]}),
    ("references", {"references": [{"audio": data_url(wav(0.5, 8000))}] * 4, "ref_audio": data_url(wav(0.5, 8000))}),
    ("task_type", {"task_type": "Singing"}), ("task_type", {"task_type": 1}), ("x_vector_only_mode", {"x_vector_only_mode": 1}),
    ("token_count", {"token_count": 5}), ("duration_tokens", {"duration_tokens": 5}),  # which the stage does not take
    ("initial_codec_chunk_frames", {"initial_codec_chunk_frames": 1}),
]


@pytest.mark.parametrize("field,fields", WRONG)
def test_wrong_references_are_refused_and_the_field_named(cloning, field, fields):
    refused(cloning.speak(**fields), field)


def test_what_is_wrong_with_one_of_several_is_told_by_its_place(cloning):
    refused(cloning.speak(references=[{"audio": data_url(wav())}, {"audio": data_url(b"no sound")}]), "references", "references[1].audio: ")
    refused(cloning.speak(references=[{"audio": data_url(wav())}, {"audio_path": "http://example.org/"}]), "references", "references[1].audio_path")


def test_stages_take_only_what_they_say(start, tmp_path):
    server = start("--pipeline", str(write(tmp_path / "p.yaml", python("voice", "imitate"), ENCODE)), "--engine", "mock")

    def speak(**fields):
        return requests.post(server.url + "/v1/audio/speech", json={"input": "x", "response_format": "pcm", **fields}, timeout=60)
    assert len(speak(ref_audio=data_url(wav())).content) == 960
    refused(speak(ref_audio=data_url(wav()), ref_text="a"), "ref_text", "supports it")
    refused(speak(references=[{"audio": data_url(wav())}]), "references", "supports it")
    refused(speak(task_type="Base"), "task_type", "supports it")
    uploaded = {"files": {"audio_sample": ("a", wav())}, "timeout": 60}
    refused(requests.post(server.url + "/v1/audio/voices", data={"name": "a", "consent": "yes", "ref_text": "b"}, **uploaded), "ref_text")
    assert requests.post(server.url + "/v1/audio/voices", data={"name": "a", "consent": "yes"}, **uploaded).status_code == 200
    assert len(speak(voice="a").content) == 960


def test_a_pipeline_that_imitates_nobody_looks_at_no_address(start, tmp_path):
    server = start("--pipeline", str(write(tmp_path / "p.yaml", python("voice", "spell"), ENCODE)), "--engine", "mock")
    for field, value in {"ref_audio": "http://127.0.0.1:1/a", "ref_text": "a", "references": [], "task_type": "Base", "x_vector_only_mode": True,
                         "token_count": 1, "duration_tokens": 1, "initial_codec_chunk_frames": 0}.items():
        answer = requests.post(server.url + "/v1/audio/speech", json={"input": "x", field: value}, timeout=60)
        refused(answer, field, "no stage of this pipeline supports it")


def test_a_field_that_does_not_exist_ends_the_start(tmp_path):
    path = write(tmp_path / "p.yaml", python("voice", "misspelt"), ENCODE)
    done = subprocess.run([str(BINARY), "serve", "--port", "0", "--engine", "mock", "--pipeline", str(path)], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode != 0 and "ref_sound" in done.stdout + done.stderr


def test_a_batch_loads_its_reference_once_for_all_items(cloning):
    answer = requests.post(cloning.url + "/v1/audio/speech/batch", timeout=60, json={
        "response_format": "pcm", "ref_audio": data_url(wav()), "ref_text": "shared", "items": [
            {"input": "a"}, {"input": "b", "references": [{"audio": data_url(wav(0.5, 8000)), "text": "own"}]},
            {"input": "c", "ref_audio": data_url(b"no sound")}, {"input": "d", "ref_audio": None}]}).json()
    assert (answer["succeeded"], answer["failed"]) == (3, 1), answer
    assert answer["results"][2]["error"]["param"] == "items.2.ref_audio"
    known = [json.loads(line)["references"] for line in cloning.log.read_text().splitlines()[-3:]]
    assert sorted(known) == sorted([[[RATE, RATE, "e803", "shared"]], [[8000, 4000, "e803", "own"]], []])
    bad = requests.post(cloning.url + "/v1/audio/speech/batch", timeout=60, json={
        "ref_audio": data_url(b"no sound"), "items": [{"input": "a"}, {"input": "b", "ref_audio": None}]}).json()
    assert bad["results"][0]["error"]["param"] == "items.0.ref_audio" and bad["results"][1]["status"] == "success"
    many = {"items": [{"input": "a", "ref_audio": data_url(wav(0.5, 8000))}] * 9}
    refused(requests.post(cloning.url + "/v1/audio/speech/batch", timeout=60, json=many), "items", "references")


def test_a_session_of_speech_has_one_reference(cloning):
    client = pytest.importorskip("websockets.sync.client")
    with client.connect(f"ws://127.0.0.1:{cloning.server.port}/v1/audio/speech/stream", open_timeout=30) as ws:
        ws.send(json.dumps({"type": "session.config", "ref_audio": data_url(wav(0.5, 16000)), "ref_text": "hi"}))
        ws.send(json.dumps({"type": "input.text", "text": "This is the first sentence. And this is the second one."}))  # without waiting
        ws.send(json.dumps({"type": "input.done"}))
        events = []
        while not events or events[-1]["type"] != "session.done":
            data = ws.recv(60)
            if isinstance(data, str):
                events.append(json.loads(data))
    assert [event["type"] for event in events] == ["session.configured", "audio.start", "audio.done", "audio.start", "audio.done", "session.done"]
    known = [json.loads(line)["references"] for line in cloning.log.read_text().splitlines()[-2:]]
    assert known == [[[16000, 8000, "e803", "hi"]]] * 2
    with client.connect(f"ws://127.0.0.1:{cloning.server.port}/v1/audio/speech/stream", open_timeout=30) as ws:
        ws.send(json.dumps({"type": "session.config", "ref_audio": data_url(b"no sound")}))
        event = json.loads(ws.recv(60))
        assert event["type"] == "error" and event["param"] == "ref_audio"


def test_a_stage_that_dies_gets_the_reference_again(cloning):
    known = cloning.known(cloning.speak("die once", ref_audio=data_url(wav()), ref_text="again"))
    assert known["references"] == [[RATE, RATE, "e803", "again"]]
    assert (pathlib.Path(str(cloning.log) + ".died")).exists()


def test_an_uploaded_voice_is_imitated_until_it_is_deleted(cloning):
    answer = cloning.upload(wav(), ref_text="good morning", speaker_description="calm")
    assert answer.status_code == 200, answer.text
    voice = answer.json()["voice"]
    assert answer.json()["success"] is True and voice["created_at"] > 0
    assert {key: voice[key] for key in ("name", "consent", "file_size", "mime_type", "ref_text", "speaker_description")} == {
        "name": "anna", "consent": "yes", "file_size": len(wav()), "mime_type": "audio/wav", "ref_text": "good morning", "speaker_description": "calm"}
    told = cloning.voices()
    assert told["uploaded_voices"] == [voice] and told["voices"] == ["own", "alias", "anna"]
    assert requests.get(cloning.url + "/v1/audio/voices?names_only=true", timeout=60).json() == {"uploaded_voice_names": ["anna"]}
    assert cloning.server.metric("portico_uploaded_voices") == 1
    assert cloning.server.metric("portico_uploaded_voice_bytes") == 2 * RATE
    cloning.server.wait_for("portico_reference_bytes", 2 * RATE)

    wanted = {"voice": "anna", "references": [[RATE, RATE, "e803", "good morning"]], "fields": {"task_type": "Base"}}
    assert cloning.known(cloning.speak(voice="anna")) == wanted
    assert cloning.known(cloning.speak(voice="anna", task_type="base")) == wanted
    refused(cloning.speak(voice="anna", ref_audio=data_url(wav())), "ref_audio", "uploaded")
    refused(cloning.speak(voice="anna", task_type="VoiceDesign"), "task_type", "uploaded")
    batch = requests.post(cloning.url + "/v1/audio/speech/batch", timeout=60, json={
        "ref_audio": data_url(wav()), "items": [{"input": "a", "voice": "anna"}, {"input": "b"}]}).json()
    assert batch["results"][0]["error"]["param"] == "items.0.ref_audio" and batch["results"][1]["status"] == "success"

    again = cloning.upload(wav())
    refused(again, "name", "anna")
    assert cloning.remove("anna").json() == {"success": True, "name": "anna"}
    refused(cloning.remove("anna"), "name", status=404)
    refused(cloning.remove("own"), "name", status=404)
    refused(cloning.speak(voice="anna"), "voice")
    assert cloning.voices() == {"voices": ["own", "alias"], "uploaded_voices": []}
    assert cloning.server.metric("portico_uploaded_voice_bytes") == 0


@pytest.mark.parametrize("field,sound,form", [
    ("name", wav(), {"name": "own"}), ("name", wav(), {"name": "alias"}), ("name", wav(), {"name": "default"}), ("name", wav(), {"name": ""}),
    ("name", wav(), {"name": "../a"}), ("name", wav(), {"name": "a b"}), ("name", wav(), {"name": "x" * 65}),
    ("consent", wav(), {"consent": ""}), ("consent", wav(), {"consent": "No"}), ("consent", wav(), {"consent": "false"}),
    ("audio_sample", b"no sound", {}), ("audio_sample", wav()[:9000], {}), ("audio_sample", wav(0.2), {}), ("audio_sample", wav(61, 8000), {}),
    ("audio_sample", wav(1, 8000, 0), {}), ("audio_sample", b"", {}), ("audio_sample", bytes((10 << 20) + 1), {}),
    ("ref_text", wav(), {"ref_text": "x" * 5000}), ("mood", wav(), {"mood": "good"}),
])
def test_what_is_no_voice_is_not_kept(cloning, field, sound, form):
    refused(cloning.upload(sound, **form), field)
    assert cloning.voices()["uploaded_voices"] == []


def test_a_voice_needs_a_sound(cloning):
    form = {"name": (None, "anna"), "consent": (None, "yes")}
    refused(requests.post(cloning.url + "/v1/audio/voices", files=form, timeout=60), "audio_sample")


def test_uploaded_voices_are_bounded(cloning):
    sound = wav(0.5, 8000)
    answers = [cloning.upload(sound, name=f"v{i}") for i in range(65)]
    assert [answer.status_code for answer in answers] == [200] * 64 + [429]
    assert "delete" in answers[-1].json()["error"]["message"]
    for i in range(64):
        assert cloning.remove(f"v{i}").status_code == 200


@pytest.mark.parametrize("field", ["audio_sample", "name", "consent", "ref_text"])
def test_a_field_of_a_voice_that_is_given_twice_is_refused(cloning, field):
    form = [("audio_sample", ("a.wav", wav(), "audio/wav")), ("name", (None, "anna")), ("consent", (None, "yes")), ("ref_text", (None, "one"))]
    again = [part for part in form if part[0] == field]
    refused(requests.post(cloning.url + "/v1/audio/voices", files=form + again, timeout=60), field, "twice")
    assert cloning.voices()["uploaded_voices"] == []


def test_voices_are_uploaded_and_deleted_with_the_admin_key_where_there_is_one(start, tmp_path):
    # All clients share them: one with the common key could delete another's voice, or fill the place for all.
    path = write(tmp_path / "p.yaml", python("voice", "imitate"), ENCODE)
    server = start("--pipeline", str(path), "--engine", "mock", "--api-key", "common", "--admin-api-key", "own")
    url = server.url + "/v1/audio/voices"

    def headers(key):
        return {"Authorization": f"Bearer {key}"}

    def upload(key):
        return requests.post(url, files={"audio_sample": ("a.wav", wav(), "audio/wav")}, data={"name": "anna", "consent": "yes"},
                             headers=headers(key), timeout=60).status_code
    assert [upload("common"), upload("own")] == [401, 200]
    assert "anna" in requests.get(url, headers=headers("common"), timeout=60).json()["voices"]
    said = requests.post(server.url + "/v1/audio/speech", json={"input": "x", "voice": "anna", "response_format": "pcm"},
                         headers=headers("common"), timeout=60)
    assert len(said.content) == 960
    assert [requests.delete(url + "/anna", headers=headers(key), timeout=60).status_code for key in ("common", "own")] == [401, 200]
