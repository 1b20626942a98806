"""Speech, transcriptions and chat by voice: `portico omni serve` as clients see it."""
import base64
import ctypes.util
import io
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import wave

import pytest
import requests

from conftest import BINARY, EXTENDED, Server
from omni_stages import write

MISSING = [name for name in ("flite", "pocketsphinx", "mp3lame", "opusenc", "FLAC", "sndfile")
           if ctypes.util.find_library(name) is None]
needs_speech = pytest.mark.skipif(bool(MISSING) or not os.path.exists("/usr/share/pocketsphinx/model/en-us"),
                                  reason=f"the speech packages are not installed: {MISSING} (scripts/packages.sh speech)")

SENTENCES = [
    "The train to London leaves at seven in the morning.",
    "He asked the doctor about the pain in his back.",
    "The children played in the garden until it was dark.",
    "Please close the door when you leave the room.",
    "The company will open a new office next month.",
    "It was the best meal that I have had in years.",
    "You should talk to your mother about it.",
    "The price of oil went up again this week.",
]


@pytest.fixture(scope="module")
def omni():
    server = Server("--speech")
    yield server
    server.stop()


def say(server, text, **fields):
    return requests.post(server.url + "/v1/audio/speech", json={"input": text, **fields}, timeout=60)


def hear(server, audio, **fields):
    answer = requests.post(server.url + "/v1/audio/transcriptions", files={"file": ("a", audio)}, data=fields, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def errors(wanted, heard):
    """Word errors: substitutions, deletions and insertions."""
    row = list(range(len(heard) + 1))
    for i, a in enumerate(wanted, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(heard, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@needs_speech
def test_what_is_said_is_heard_again_in_every_format(omni):
    """At most 12 words in a hundred are wrong (flite, PocketSphinx)."""
    wrong = total = 0
    for i, sentence in enumerate(SENTENCES if EXTENDED else SENTENCES[:4]):
        fmt = ["wav", "mp3", "opus", "flac"][i % 4]
        spoken = say(omni, sentence, voice=["rms", "slt"][i % 2], response_format=fmt)
        assert spoken.status_code == 200, spoken.text
        heard = hear(omni, spoken.content).json()["text"]
        wrong += errors(words(sentence), words(heard))
        total += len(words(sentence))
    assert wrong / total <= 0.15, f"{wrong} of {total} words"


@needs_speech
def test_wav_has_one_header_and_pcm_has_24_khz(omni):
    answer = say(omni, "The weather is fine.", voice="kal16")
    assert answer.headers["content-type"] == "audio/wav"
    assert answer.content[:4] == b"RIFF" and answer.content.count(b"RIFF") == 1
    assert answer.content[4:8] == b"\xff" * 4 and answer.content[40:44] == b"\xff" * 4
    seconds = (len(answer.content) - 44) / 2 / 16000
    pcm = say(omni, "The weather is fine.", voice="kal16", response_format="pcm")
    assert pcm.headers["x-sample-rate"] == "24000"
    assert abs(len(pcm.content) / 2 / 24000 - seconds) < 0.05


@needs_speech
def test_speed_changes_the_length_and_keeps_the_pitch(omni):
    def length_and_pitch(**fields):
        data = say(omni, "Mama may marry many men.", voice="kal16", response_format="pcm", sample_rate=16000, **fields).content
        samples = struct.unpack(f"<{len(data) // 2}h", data)
        crossings = sum(1 for a, b in zip(samples, samples[1:]) if a < 0 <= b)
        return len(samples), crossings / len(samples)
    length, pitch = length_and_pitch()
    fast, fast_pitch = length_and_pitch(speed=2.0)
    assert 0.4 < fast / length < 0.65
    assert 0.75 < fast_pitch / pitch < 1.3


def long_speech():
    """The bytes of a request for more sound than the buffers of a connection hold."""
    body = json.dumps({"input": " ".join(SENTENCES * 40)}).encode()
    return b"POST /v1/audio/speech HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


@needs_speech
def test_sound_comes_before_the_text_has_been_said(omni):
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(("127.0.0.1", omni.port))
        client.sendall(long_speech())
        said = b""
        while b"RIFF" not in said:
            piece = client.recv(1024)
            assert piece, said
            said += piece
        omni.wait_for("portico_pipeline_requests_running", 1)  # what is still to be said waits for the client
    omni.wait_for("portico_pipeline_requests_running", 0)
    whole = say(omni, " ".join(SENTENCES * 6))
    assert whole.status_code == 200 and len(whole.content) > 1000000


@needs_speech
def test_speech_events_are_openais(omni):
    answer = say(omni, "Good morning.", response_format="pcm", stream_format="sse")
    events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: {")]
    assert [e["type"] for e in events[:-1]] == ["speech.audio.delta"] * (len(events) - 1)
    assert events[-1]["type"] == "speech.audio.done"
    assert sum(len(base64.b64decode(e["audio"])) for e in events[:-1]) > 10000
    chunks = say(omni, "Good morning.", stream=True)
    assert chunks.headers["content-type"].startswith("text/event-stream")
    assert chunks.text.endswith("data: [DONE]\n\n")
    assert '"object":"audio.speech.chunk"' in chunks.text
    raw = requests.post(omni.url + "/v1/audio/speech", json={"input": "Good morning.", "stream": True},
                        headers={"accept": "audio/wav"}, timeout=60)
    assert raw.content[:4] == b"RIFF"


WRONG_SPEECH = [
    ("input", {}), ("input", {"input": ""}), ("input", {"input": " \n"}), ("input", {"input": 7}),
    ("input", {"input": "x" * 70000}), ("input", {"input": "...."}), ("input", {"input": "\U0001F600"}),
    ("input", {"input": "\u4f60\u597d"}),
    ("voice", {"input": "x", "voice": "nobody"}), ("response_format", {"input": "x", "response_format": "ogg"}),
    ("speed", {"input": "x", "speed": 9}), ("speed", {"input": "x", "speed": "fast"}),
    ("sample_rate", {"input": "x", "sample_rate": 7}), ("stream_format", {"input": "x", "stream_format": "xml"}),
    ("sample_rate", {"input": "x", "response_format": "mp3", "sample_rate": 9000}),
    ("ref_audio", {"input": "x", "ref_audio": "file:///etc/passwd"}),
    ("language", {"input": "x", "language": "Chinese"}),
    ("stage_params", {"input": "x", "stage_params": []}),
    ("stage_params", {"input": "x", "stage_params": {"hear": {"grammar": "#JSGF V1.0;"}}}),
    ("temperature", {"input": "x", "temperature": 0.5}), ("seed", {"input": "x", "seed": 7}),
    ("max_new_tokens", {"input": "x", "max_new_tokens": 100}),
    ("stage_sampling", {"input": "x", "stage_sampling": {"think": {"temperature": 1}}}),
]


@needs_speech
@pytest.mark.parametrize("param,body", WRONG_SPEECH)
def test_wrong_speech_is_refused_and_the_field_named(omni, param, body):
    answer = requests.post(omni.url + "/v1/audio/speech", json=body, timeout=60)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


@needs_speech
def test_other_models_are_told(omni):
    answer = say(omni, "x", model="tts-9")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
    assert "leave `model` out, or start the server with --accept-any-model" in answer.json()["error"]["message"]


@needs_speech
def test_the_log_says_what_the_pipeline_does(omni):
    """It said nothing of speech."""
    assert "info pipeline `demo-omni`: speech (slt, " in omni.output()


NOISE = base64.b64encode(b"this is no sound").decode()


def silence(seconds, rate=16000):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"\0\0" * int(seconds * rate))
    return out.getvalue()


@needs_speech
@pytest.mark.parametrize("param,files,data", [
    ("file", {}, {"model": "x"}),
    ("file", {"file": ("a.wav", b"")}, {}),
    ("file", {"file": ("a.wav", b"not audio at all")}, {}),
    ("file", {"file": ("a.wav", silence(1)[:30])}, {}),
    ("file", {"file": ("a.wav", silence(1)[:16000])}, {}),
    ("file", {"file": ("a.wav", silence(1).replace(b"data\x00\x7d\x00\x00", b"data\x00\x00\x00\x10"))}, {}),
    ("file", {"file": ("a.wav", silence(1).replace(b"\x01\x00\x80\x3e", b"\x63\x00\x80\x3e"))}, {}),
    ("file", {"file": ("a.flac", b"fLaC" + b"\xff" * 200)}, {}),
    ("response_format", {"file": ("a.wav", silence(1))}, {"response_format": "xml"}),
    ("language", {"file": ("a.wav", silence(1))}, {"language": "ja"}),
    ("stream", {"file": ("a.wav", silence(1))}, {"response_format": "srt", "stream": "true"}),
    ("prompt", {"file": ("a.wav", silence(1))}, {"prompt": "Names: Ann."}),
    ("temperature", {"file": ("a.wav", silence(1))}, {"temperature": "0.4"}),  # it was ignored
    ("temperature", {"file": ("a.wav", silence(1))}, {"temperature": "1.5"}),
    ("temperature", {"file": ("a.wav", silence(1))}, {"temperature": "warm"}),
    ("temperature", {"file": ("a.wav", silence(1))}, {"temperature": ""}),
    ("max_new_tokens", {"file": ("a.wav", silence(1))}, {"max_new_tokens": "9"}),
    ("response_format", {"file": ("a.wav", silence(1))}, {"response_format": "diarized_json"}),
    ("known_speaker_names[]", {"file": ("a.wav", silence(1))}, {"known_speaker_names[]": "Ann"}),
    ("chunking_strategy", {"file": ("a.wav", silence(1))}, {"chunking_strategy": '{"type": "server_vad"}'}),
    ("include", {"file": ("a.wav", silence(1))}, {"include[]": "logprobs"}),
    ("timestamp_granularities", {"file": ("a.wav", silence(1))}, {"timestamp_granularities[]": "word"}),
    ("timestamp_granularities", {"file": ("a.wav", silence(1))}, {"timestamp_granularities[]": "line"}),
    ("stage_params", {"file": ("a.wav", silence(1))}, {"stage_params": '{"hear":{"grammar":"nonsense"}}'}),
])
def test_wrong_transcriptions_are_refused_and_the_field_named(omni, param, files, data):
    files = files or {"nothing": ("x", b"x")}
    answer = requests.post(omni.url + "/v1/audio/transcriptions", files=files, data=data, timeout=60)
    if param == "stage_params":  # silence needs no recognizer
        assert answer.status_code in (200, 400)
        return
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


@needs_speech
def test_flac_of_a_stream_that_is_cut_within_a_frame_is_refused(omni):
    """Its head tells no length: half of it was heard, with status 200."""
    audio = say(omni, SENTENCES[0], response_format="flac").content
    for data, status in ((audio, 200), (audio[:-1], 400), (audio[:len(audio) // 2], 400), (audio[:len(audio) // 2 + 1], 400)):
        answer = requests.post(omni.url + "/v1/audio/transcriptions", files={"file": ("a.flac", data)}, timeout=120)
        assert answer.status_code == status, answer.text
    assert answer.json()["error"]["param"] == "file" and "cut off" in answer.json()["error"]["message"]


@needs_speech
def test_forms_that_are_cut_or_damaged_are_refused(omni):
    head = {"content-type": "multipart/form-data; boundary=b"}
    for body in (b"", b"--b", b"--b\r\n\r\nx", b'--b\r\ncontent-disposition: form-data; name="file"\r\n\r\nx', b"--b\r\nx\r\n\r\ny\r\n--b--"):
        answer = requests.post(omni.url + "/v1/audio/transcriptions", data=body, headers=head, timeout=60)
        assert answer.status_code == 400, body


@needs_speech
def test_a_recognizer_that_does_not_sample_hears_at_a_temperature_of_0(omni):
    """What clients send by default."""
    assert hear(omni, silence(1), temperature="0", language="en", chunking_strategy="auto").json()["text"] == ""


@needs_speech
def test_transcripts_have_times_in_every_form(omni):
    audio = say(omni, SENTENCES[0] + " " + SENTENCES[1], voice="rms").content
    first, second = (" ".join(words(sentence)) for sentence in SENTENCES[:2])
    grammar = f"#JSGF V1.0; grammar g; public <s> = {first} [{second}] | {second};"  # heard sooner than by the language model

    def hear_form(**fields):
        return hear(omni, audio, stage_params=json.dumps({"hear": {"grammar": grammar}}), **fields)

    verbose = hear_form(response_format="verbose_json", **{"timestamp_granularities[]": ["word", "segment"]}).json()
    assert verbose["task"] == "transcribe" and verbose["language"] == "english"
    assert 4 < verbose["duration"] < 9
    times = [(w["start"], w["end"]) for w in verbose["words"]]
    assert all(a < b for a, b in times) and times == sorted(times)
    assert verbose["segments"][0]["start"] < 1
    assert hear_form(response_format="text").text.strip() == verbose["text"]
    assert re.match(r"1\n00:00:0\d,\d{3} --> 00:00:\d\d,\d{3}\n", hear_form(response_format="srt").text)
    assert hear_form(response_format="vtt").text.startswith("WEBVTT\n\n00:00:0")
    streamed = hear_form(stream="true").text
    assert "transcript.text.delta" in streamed and streamed.endswith("data: [DONE]\n\n")
    assert hear(omni, silence(2)).json()["text"] == ""


@needs_speech
def test_a_grammar_makes_sums_exact(omni):
    numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    grammar = f"#JSGF V1.0;\ngrammar sums;\n<n> = {' | '.join(numbers)};\npublic <sum> = <n> plus <n>;"
    exact = 0
    for a, b in ((1, 2), (3, 4), (5, 6), (7, 8), (9, 1)):
        spoken = say(omni, f"{a} + {b}", voice="rms").content
        heard = hear(omni, spoken, stage_params=json.dumps({"hear": {"grammar": grammar}})).json()["text"]
        exact += heard == f"{numbers[a - 1]} plus {numbers[b - 1]}"
    assert exact >= 4


@needs_speech
def test_optional_parts_of_a_grammar_leave_no_trace_in_the_transcript(omni):
    """What PocketSphinx calls (NULL) was in it, as a word."""
    grammar = "#JSGF V1.0; grammar g; public <s> = [please] what is the capital of [sunny] (japan | france) [now];"
    spoken = say(omni, "What is the capital of Japan?", voice="kal16").content
    heard = hear(omni, spoken, stage_params=json.dumps({"hear": {"grammar": grammar}})).json()["text"]
    assert heard == "what is the capital of japan"


@needs_speech
def test_a_grammar_that_grows_without_bound_is_refused_before_it_is_heard(omni):
    """Twenty of these lines took all memory of the server; hundreds of optional words, minutes of its time."""
    twice = " ".join(f"<r{i}> = <r{i - 1}> <r{i - 1}>;" for i in range(1, 30))
    for rules in (f"<r0> = a; {twice} public <s> = <r29>;", f"public <s> = {'[a | b] ' * 2000};", "public <s> = <t>;",
                  "public <s> = <s> a;", "import <secret.file>; public <s> = a;"):
        grammar = f"#JSGF V1.0; grammar g; {rules}"
        answer = requests.post(omni.url + "/v1/audio/transcriptions", files={"file": ("a.wav", silence(1))},
                               data={"stage_params": json.dumps({"hear": {"grammar": grammar}})}, timeout=120)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "stage_params", (rules[:40], answer.text)


def chat(server, content, **fields):
    body = {"model": "demo", "temperature": 0, "modalities": ["text", "audio"], "audio": {"voice": "rms", "format": "wav"},
            "messages": [{"role": "user", "content": content}], **fields}
    return requests.post(server.url + "/v1/chat/completions", json=body, timeout=120)


@needs_speech
def test_a_question_by_voice_is_answered_aloud(omni):
    question = say(omni, "What is the capital of Japan?", voice="kal16").content
    clip = {"type": "input_audio", "input_audio": {"data": base64.b64encode(question).decode(), "format": "wav"}}
    answer = chat(omni, [clip])
    assert answer.status_code == 200, answer.text
    message = answer.json()["choices"][0]["message"]
    assert "Tokyo" in message["content"] and message["audio"]["transcript"] == message["content"]
    assert answer.json()["usage"]["completion_tokens"] > 0
    audio = base64.b64decode(message["audio"]["data"])
    with wave.open(io.BytesIO(audio)) as file:  # a whole file has its true sizes
        assert abs(file.getnframes() / file.getframerate() - (len(audio) - 44) / 32000) < 0.01
    assert "tokyo" in hear(omni, audio).json()["text"]


@needs_speech
def test_chat_streams_text_and_sound_apart(omni):
    answer = chat(omni, "What is the capital of Japan?", stream=True)
    assert answer.text.endswith("data: [DONE]\n\n")
    events = [json.loads(part[6:]) for part in answer.text.split("\n\n") if part.startswith("data: {")]
    deltas = [e["choices"][0]["delta"] for e in events]
    assert deltas[0]["role"] == "assistant" and not any("role" in d for d in deltas[1:])
    assert "Tokyo" in "".join(d.get("content", "") for d in deltas)
    sounds = [d["audio"] for d in deltas if "audio" in d]
    assert all(set(s) == {"id", "data", "sample_rate"} for s in sounds)
    whole = b"".join(base64.b64decode(s["data"]) for s in sounds)
    assert whole.count(b"RIFF") == 1
    assert not any("content" in d and "audio" in d for d in deltas)
    assert events[-1]["choices"][0]["finish_reason"] == "stop" and events[-1]["usage"]["total_tokens"] > 0


@needs_speech
@pytest.mark.parametrize("param,fields", [
    ("modalities", {"modalities": ["smell"]}), ("modalities", {"modalities": []}), ("modalities", {"modalities": "audio"}),
    ("audio", {"audio": {"voice": "nobody"}}), ("audio", {"audio": {"format": "ogg"}}), ("audio", {"audio": 7}),
    ("n", {"n": 2}),
    ("messages", {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "%%"}}]}]}),
    ("messages", {"messages": [{"role": "user", "content": [{"type": "smell"}]}]}),
    ("messages", {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": NOISE, "format": "wav"}}]}]}),
    ("audios", {"audios": ["data:audio/wav;base64," + NOISE]}),
    ("audio", {"modalities": ["text"]}), ("audio", {"modalities": None}),
    ("stage_params", {"stage_params": {"hear": {"grammar": 7}}}),
])
def test_wrong_chats_with_audio_are_refused_and_the_field_named(omni, param, fields):
    answer = chat(omni, "hello", **fields)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


@needs_speech
def test_a_chat_that_describes_its_sound_is_told_to_ask_for_it(omni):
    body = {"messages": [{"role": "user", "content": "hello"}], "audio": {"voice": "rms", "format": "wav"}}
    error = requests.post(omni.url + "/v1/chat/completions", json=body, timeout=60).json()["error"]
    assert error["param"] == "audio" and "modalities" in error["message"]
    assert requests.post(omni.url + "/v1/chat/completions", json={**body, "audio": None}, timeout=60).status_code == 200


@needs_speech
def test_clients_that_leave_or_do_not_read_leave_nothing_behind(omni):
    readers = []
    for _ in range(8):
        client = socket.create_connection(("127.0.0.1", omni.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(long_speech())
        readers.append(client)
    omni.wait_for("portico_pipeline_requests_running", 8)
    assert say(omni, "Still here.", voice="kal16").status_code == 200
    omni.wait_for("portico_pipeline_requests_running", 8)  # those that do not read were not waited for
    for client in readers:
        client.close()
    omni.wait_for("portico_pipeline_requests_running", 0)


@needs_speech
def test_formats_are_what_they_say(omni, tmp_path):
    if shutil.which("ffprobe") is None:
        pytest.skip("ffprobe is not installed")
    for fmt, codec in (("wav", "pcm_s16le"), ("mp3", "mp3"), ("opus", "opus"), ("flac", "flac")):
        path = tmp_path / f"a.{fmt}"
        path.write_bytes(say(omni, SENTENCES[0], voice="kal16", response_format=fmt).content)
        out = subprocess.run(["ffprobe", "-v", "error", "-show_streams", "-of", "json", str(path)], capture_output=True, text=True)
        stream = json.loads(out.stdout)["streams"][0]
        assert stream["codec_name"] == codec and stream["channels"] == 1


@needs_speech
def test_the_openai_client_speaks_and_listens(omni):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=omni.url + "/v1", api_key="none")
    with client.audio.speech.with_streaming_response.create(model="demo", voice="alloy", input=SENTENCES[4], response_format="wav") as answer:
        audio = answer.read()
    heard = client.audio.transcriptions.create(model="demo", file=("a.wav", audio))
    assert errors(words(SENTENCES[4]), words(heard.text)) <= 3


def omni_command(*arguments):
    return subprocess.run([str(BINARY), "omni", *arguments], capture_output=True, text=True, timeout=120)


def test_pipelines_are_checked_before_anything_starts(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("stages:\n  - name: a\n    factory_path: portico.mock\n    nxt: b\n")
    refused = omni_command("check", str(path))
    assert refused.returncode == 1 and f"{path}:4: unknown key `nxt`" in refused.stderr
    path.write_text("stages:\n  - name: a\n    factory_path: portico.mock\n    terminal: true\n")
    assert "ready" in omni_command("check", str(path)).stdout
    # Of two stages without their programs the first was named, and the second after a second try.
    write(path, *(f"name: {name}, factory_path: portico.command, factory: {{command: [no-{name}], voices: [v]}}, {then}"
                  for name, then in (("a", "stream_to: [b]"), ("b", "terminal: true"))))
    refused = omni_command("check", str(path))
    assert refused.returncode == 1 and all(f"stage `{name}`: the program `no-{name}` is not installed" in refused.stderr for name in ("a", "b")), refused
    path.write_text("stages:\n  - name: a\n    factory_path: portico.mock\n    terminal: true\n")
    resolved = omni_command("resolve", str(path), "--a.factory.chunks", "7")
    assert '"chunks":7' in resolved.stdout and "from the command line" in resolved.stdout
    # They printed the mistyped key, as if it did something.
    for verb in (["resolve"], ["explain", "a.factory.chunk"], ["check"]):
        for flag, why in (("--a.factory.chunk", "factory has no `chunk`; it takes chunks, "), ("--a.factory.chunks", "factory.chunks must be a number"),
                          ("--a.factory_path", "there is no factory_path `many`")):
            refused = omni_command(*verb, str(path), flag, "many")
            assert refused.returncode == 1 and (refused.stdout == "" or verb == ["check"]), (verb, flag, refused)
            assert f"{path}:2: stage `a`: {why}" in refused.stderr and f"(with {flag})" in refused.stderr, (verb, flag, refused)
    explained = omni_command("explain", "a.terminal", str(path))
    assert explained.stdout == f"a.terminal: true\nfrom {path}:4\n"
    slower = omni_command("explain", "timeout_s", str(path), "--timeout_s", "600")
    assert slower.stdout == "timeout_s: 600\nfrom the command line\n"


@needs_speech
def test_stages_are_checked_before_their_model_is_loaded():
    """A wrong voice was told when the model had been loaded."""
    done = omni_command("serve", "--say.factory.voice", "nobody", "--port", "0")
    assert done.returncode == 1 and "there is no voice `nobody`" in done.stderr and "--say.factory.voice" in done.stderr
    assert "loading" not in done.stderr, done.stderr


def test_a_server_without_speech_says_how_to_get_it(mock):
    answer = say(mock, "x")
    assert answer.status_code == 501 and "omni serve" in answer.json()["error"]["message"]


def test_a_mock_pipeline_answers_after_its_rule(start, tmp_path):
    path = tmp_path / "mock.yaml"
    path.write_text("stages:\n  - {name: talk, factory_path: portico.mock, factory: {chunks: 5, delay_ms: 20}, stream_to: [reply, encode], route_fn: portico.by_task}\n"
                    "  - {name: reply, factory_path: portico.pass, terminal: true}\n  - {name: encode, factory_path: portico.encode, terminal: true}\n")
    server = start("--pipeline", str(path), "--engine", "mock")
    pcm = say(server, "hello", response_format="pcm")
    samples = struct.unpack("<2400h", pcm.content)
    assert [samples[i * 480] for i in range(5)] == [0, 327, 655, 983, 1310]
    assert say(server, "fail-now", response_format="pcm").status_code == 500
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        say(server, "fail-late", response_format="pcm")
    late = say(server, "fail-late", response_format="pcm", stream_format="sse")
    assert json.loads(late.text.rstrip().split("data: ")[-1])["type"] == "error"
