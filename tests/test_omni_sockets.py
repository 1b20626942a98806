"""WebSockets of `portico omni serve`: speech as text is written, and OpenAI's realtime conversation."""
import asyncio
import base64
import json
import os
import socket
import struct

import pytest
import requests

from test_omni import errors, hear, needs_speech, omni, say, words  # noqa: F401 (omni is a fixture)

websockets = pytest.importorskip("websockets.sync.client")


def connect(server, path, **options):
    return websockets.connect(f"ws://127.0.0.1:{server.port}{path}", open_timeout=60, **options)


def ask(socket, **message):
    socket.send(json.dumps(message))


def tell(socket, timeout=60):
    """The next message: an object, or bytes."""
    data = socket.recv(timeout)
    return data if isinstance(data, bytes) else json.loads(data)


def until(socket, last, timeout=60, refused=False):
    """All events up to one of this type; `refused`: errors may be among them."""
    events = []
    while not events or events[-1]["type"] != last:
        event = tell(socket, timeout)
        if isinstance(event, dict):
            events.append(event)
            assert event["type"] != "error" or last == "error" or refused, event
    return events


@needs_speech
def test_text_is_spoken_sentence_by_sentence_as_it_is_written(omni):
    with connect(omni, "/v1/audio/speech/stream") as ws:
        ask(ws, type="session.config", voice="kal16", response_format="wav")
        configured = tell(ws)
        assert configured["type"] == "session.configured" and configured["session_id"].startswith("speech_ws_")
        ask(ws, type="input.text", text="The weather is fine today. We will walk ")
        start = tell(ws)
        assert start["type"] == "audio.start" and start["sentence_text"] == "The weather is fine today."
        assert tell(ws)[:4] == b"RIFF"
        assert tell(ws)["type"] == "audio.done"
        ask(ws, type="input.text", text="to the river.")
        ask(ws, type="input.done")
        second = tell(ws)
        assert second["sentence_index"] == 1 and second["sentence_text"] == "We will walk to the river."
        audio = tell(ws)
        done = tell(ws)
        assert done["total_bytes"] == len(audio) and done["error"] is False
        assert tell(ws) == {"type": "session.done", "session_id": configured["session_id"], "total_sentences": 2}


@needs_speech
def test_thoughts_and_code_are_not_spoken_though_sentences_end_in_them(omni):
    """Text was cut into sentences before anything was taken out, so that each sentence of a thought was spoken."""
    with connect(omni, "/v1/audio/speech/stream") as ws:
        ask(ws, type="session.config", voice="kal16")
        assert tell(ws)["type"] == "session.configured"
        for text in ["<think>The user is angry. I should", " hide it. </thi", "nk>Good morning. Run this:\n```sh\nls. Or cd.\n",
                     "```\nSee [the page. It is good](http://x.y/z) now."]:
            ask(ws, type="input.text", text=text)
        ask(ws, type="input.done")
        events = until(ws, "session.done")
        assert [event["sentence_text"] for event in events if event["type"] == "audio.start"] == [
            "Good morning.", "Run this:", "See [the page. It is good](http://x.y/z) now."]


@needs_speech
def test_a_sentence_can_be_cancelled(omni):
    with connect(omni, "/v1/audio/speech/stream") as ws:
        ask(ws, type="session.config", stream_audio=True)
        tell(ws)
        ask(ws, type="input.text", text="This is a rather long sentence about nothing in particular that goes on. " * 40)
        assert tell(ws)["type"] == "audio.start"
        ask(ws, type="input.cancel")
        while True:
            event = tell(ws)
            if isinstance(event, dict) and event["type"] == "audio.cancelled":
                break
        ask(ws, type="input.text", text="Good. ")
        ask(ws, type="input.done")
        events = until(ws, "session.done")
        assert "Good." in [e.get("sentence_text") for e in events]


@needs_speech
def test_who_interrupts_after_the_whole_text_is_heard_and_every_cancel_is_answered(omni):
    with connect(omni, "/v1/audio/speech/stream") as ws:
        ask(ws, type="session.config", stream_audio=True, voice="kal16", split_granularity=None, language=None)
        assert tell(ws)["split_granularity"] == "sentence"
        ask(ws, type="input.text", text="nothing is spoken of this")
        ask(ws, type="input.cancel")
        assert tell(ws) == {"type": "audio.cancelled", "sentence_index": None, "reason": "client_cancelled"}
        ask(ws, type="input.text", text="This is a rather long sentence about nothing in particular that goes on. " * 200)
        ask(ws, type="input.done")
        assert tell(ws)["type"] == "audio.start"
        ask(ws, type="input.cancel")
        events = until(ws, "session.done")
        assert "audio.cancelled" in [event["type"] for event in events]
        assert events[-1]["total_sentences"] < 200


@needs_speech
@pytest.mark.parametrize("param,fields", [("language", {"language": "German"}), ("stream_audio", {"stream_audio": "yes"}),
                                          ("split_granularity", {"split_granularity": 1}), ("instructions", {"instructions": "Shout."}),
                                          ("stage_params", {"stage_params": {"say": {"x": 1}}})])
def test_fields_of_a_session_that_nobody_honours_are_refused_at_its_start(omni, param, fields):
    with connect(omni, "/v1/audio/speech/stream") as ws:
        ask(ws, type="session.config", **fields)
        error = tell(ws)
        assert (error["type"], error["param"]) == ("error", param), error


@needs_speech
@pytest.mark.parametrize("first", ['{"type":"input.text"}', "not json", "[1]", '{"type":"session.config","voice":"nobody"}',
                                   '{"type":"session.config","response_format":"ogg"}', b"\x00\x01"])
def test_a_wrong_first_message_is_told_and_closes(omni, first):
    with connect(omni, "/v1/audio/speech/stream") as ws:
        ws.send(first)
        assert tell(ws)["type"] == "error"
        with pytest.raises(Exception):
            tell(ws)


def raw_socket(server, path, *headers):
    client = socket.create_connection(("127.0.0.1", server.port))
    lines = [f"GET {path} HTTP/1.1", "host: localhost", "upgrade: websocket", "connection: Upgrade", "sec-websocket-version: 13",
             "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", *headers]
    client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    client.settimeout(60)
    return client, client.recv(4096)


@needs_speech
@pytest.mark.parametrize("frame,code", [(b"\x81\x02hi", 1002), (b"\xc1\x81\0\0\0\0x", 1002), (b"\x80\x81\0\0\0\0x", 1002),
                                        (b"\x81\xff\x7f" + b"\xff" * 7 + b"\0" * 4, 1009), (b"\x81\x81\0\0\0\0\xff", 1007)])
def test_frames_that_break_a_rule_close_the_connection(omni, frame, code):
    client, head = raw_socket(omni, "/v1/audio/speech/stream")
    assert head.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    client.sendall(frame)
    data = client.recv(100)
    assert data[0] == 0x88 and struct.unpack(">H", data[2:4])[0] == code


@needs_speech
def test_who_may_not_connect_is_refused_before_the_upgrade(omni):
    assert requests.get(omni.url + "/v1/realtime", timeout=60).status_code == 426
    for page in ("origin: http://evil.example", "sec-fetch-site: cross-site"):
        _, head = raw_socket(omni, "/v1/realtime", page)
        assert head.startswith(b"HTTP/1.1 403 ")
    _, head = raw_socket(omni, "/v1/realtime", "origin: http://localhost")
    assert head.startswith(b"HTTP/1.1 101 ")
    _, head = raw_socket(omni, "/v1/realtime?model=nothing")
    assert head.startswith(b"HTTP/1.1 404 ")
    _, head = raw_socket(omni, "/v1/realtime?intent=dictation")
    assert head.startswith(b"HTTP/1.1 400 ")


def spoken(server, text):
    """24 kHz samples, with silence behind them."""
    return say(server, text, voice="kal16", response_format="pcm").content + b"\0" * 48000 * 2


@needs_speech
def test_a_spoken_question_is_answered_aloud_and_can_be_interrupted(omni):
    with connect(omni, "/v1/realtime?model=demo") as ws:
        created = tell(ws)
        assert created["type"] == "session.created" and created["session"]["audio"]["input"]["format"]["rate"] == 24000
        ask(ws, type="session.update", session={"type": "realtime", "audio": {
            "input": {"transcription": {"model": "x"}}, "output": {"voice": "echo"}}})
        assert tell(ws)["session"]["audio"]["output"]["voice"] == "echo"
        question = spoken(omni, "What is the capital of Japan?")
        for at in range(0, len(question), 9600):
            ask(ws, type="input_audio_buffer.append", audio=base64.b64encode(question[at:at + 9600]).decode())
        events = until(ws, "response.done")
        types = [e["type"] for e in events]
        for wanted in ("input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.committed",
                       "conversation.item.added", "conversation.item.input_audio_transcription.completed", "response.created",
                       "response.output_item.added", "response.content_part.added", "response.output_audio.delta",
                       "response.output_audio_transcript.done", "response.output_item.done"):
            assert wanted in types, (wanted, types)
        done = events[-1]["response"]
        assert done["status"] == "completed" and "Tokyo" in done["output"][0]["content"][0]["transcript"]
        audio = b"".join(base64.b64decode(e["delta"]) for e in events if e["type"] == "response.output_audio.delta")
        import io
        import wave
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(24000)
            file.writeframes(audio)
        assert "tokyo" in hear(omni, out.getvalue()).json()["text"]
        item = done["output"][0]["id"]
        ask(ws, type="conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=300)
        assert until(ws, "conversation.item.truncated")[-1]["audio_end_ms"] == 300
        ask(ws, type="conversation.item.retrieve", item_id=item)
        assert "Tokyo" not in json.dumps(until(ws, "conversation.item.retrieved")[-1])


@needs_speech
def test_a_typed_conversation_answers_in_text_and_can_be_cancelled(omni):
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        ask(ws, type="session.update", session={"type": "realtime", "output_modalities": ["text"], "audio": {"input": {"turn_detection": None}}})
        tell(ws)
        ask(ws, type="conversation.item.create", item={"type": "message", "role": "user",
                                                       "content": [{"type": "input_text", "text": "What is the capital of Japan?"}]})
        until(ws, "conversation.item.done")
        ask(ws, type="response.create")
        events = until(ws, "response.done")
        assert "Tokyo" in "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        ask(ws, type="response.create", response={"output_modalities": ["audio"]})
        ask(ws, type="response.cancel")
        done = until(ws, "response.done")[-1]["response"]
        assert done["status"] in ("cancelled", "completed")


@needs_speech
@pytest.mark.parametrize("message,param", [
    ({"type": "nothing"}, "type"),
    ({"type": "session.update", "session": {"voice": "x"}}, "session.voice"),
    ({"type": "session.update", "session": {"audio": {"output": {"voice": "nobody"}}}}, "session.audio.output.voice"),
    ({"type": "session.update", "session": {"output_modalities": ["text", "audio"]}}, "session.output_modalities"),
    ({"type": "input_audio_buffer.append", "audio": "%"}, "audio"),
    ({"type": "input_audio_buffer.commit"}, None),
    ({"type": "conversation.item.create", "item": {"type": "image"}}, "item.type"),
    ({"type": "conversation.item.delete", "item_id": "x"}, "item_id"),
    ({"type": "response.cancel"}, None),
])
def test_wrong_events_are_told_and_the_session_goes_on(omni, message, param):
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        ask(ws, event_id="mine", **message)
        error = tell(ws)
        assert error["type"] == "error" and error["error"]["param"] == param and error["error"]["event_id"] == "mine"
        ask(ws, type="input_audio_buffer.clear")
        assert tell(ws)["type"] == "input_audio_buffer.cleared"


@needs_speech
def test_a_full_buffer_is_an_error_of_the_client_until_it_is_cleared(omni):
    """It was told as a rate limit."""
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        ask(ws, type="session.update", session={"type": "realtime", "audio": {
            "input": {"turn_detection": None, "format": {"type": "audio/pcmu"}}}})
        assert tell(ws)["type"] == "session.updated"
        second = base64.b64encode(b"\xff" * 8000).decode()
        ask(ws, type="input_audio_buffer.append", audio=base64.b64encode(b"\xff" * 8000 * 300).decode())
        ask(ws, type="input_audio_buffer.append", audio=second)
        error = tell(ws)["error"]
        assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", "input_audio_buffer_full", "audio")
        ask(ws, type="input_audio_buffer.clear")
        assert tell(ws)["type"] == "input_audio_buffer.cleared"
        ask(ws, type="input_audio_buffer.append", audio=second)
        ask(ws, type="input_audio_buffer.clear")
        assert tell(ws)["type"] == "input_audio_buffer.cleared"


@needs_speech
def test_the_openai_client_holds_a_conversation(omni):
    openai = pytest.importorskip("openai")

    async def talk():
        client = openai.AsyncOpenAI(base_url=omni.url + "/v1", api_key="none", websocket_base_url=f"ws://127.0.0.1:{omni.port}/v1")
        said = ""
        async with client.realtime.connect(model="demo") as connection:
            await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            await connection.conversation.item.create(item={"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is the capital of Japan?"}]})
            await connection.response.create()
            async for event in connection:
                assert event.type != "error", event
                if event.type == "response.output_text.delta":
                    said += event.delta
                if event.type == "response.done":
                    return said

    assert "Tokyo" in asyncio.run(asyncio.wait_for(talk(), 60))


@needs_speech
def test_sockets_that_break_off_leave_nothing_behind(omni):
    for i in range(40):
        client, head = raw_socket(omni, "/v1/realtime" if i % 2 else "/v1/audio/speech/stream")
        assert b"101" in head[:20]
        if i % 3 == 0:
            client.sendall(os.urandom(20))
        client.close()
    omni.wait_for("portico_pipeline_requests_running", 0)
    assert say(omni, "Still here.", voice="kal16").status_code == 200


def test_thousands_of_sentences_that_are_refused_are_told_as_the_client_reads(start, tmp_path):
    # All of them were refused in one turn of the shard, after which the client was behind and cut off.
    path = tmp_path / "p.yaml"
    path.write_text("stages:\n  - {name: sentences, factory_path: portico.sentences, stream_to: talk}\n"
                    "  - {name: talk, factory_path: portico.mock, factory: {text: false}, stream_to: encode}\n"
                    "  - {name: encode, factory_path: portico.encode, terminal: true}\n")
    server = start("--pipeline", str(path), "--engine", "mock", "--max-unsent-bytes", "1MiB")
    with connect(server, "/v1/audio/speech/stream") as ws:
        ask(ws, type="session.config")
        assert tell(ws)["type"] == "session.configured"
        for _ in range(2):
            ask(ws, type="input.text", text="я\n" * 16_000)
        ask(ws, type="input.done")
        done = until(ws, "session.done", refused=True)[-1]
        assert done["total_sentences"] == 32_000
        assert requests.get(server.url + "/health", timeout=60).status_code == 200
