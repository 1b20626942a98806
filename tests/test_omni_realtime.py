"""Realtime sessions: responses outside the conversation, the places of items, clients of the beta, and codes of errors."""
import base64
import json
import pathlib

import pytest
import requests

from conftest import SANITIZED
from test_omni import needs_speech, omni, say as omni_say  # noqa: F401 (omni is a fixture)
from test_omni_recorded import PIPELINE
from test_omni_sockets import ask, connect, tell, until

exceptions = pytest.importorskip("websockets.exceptions")

CAPITAL = "What is the capital of Japan?"


def say(ws, text, role="user", **fields):
    ask(ws, type="conversation.item.create", item={"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}, **fields)


def text_of(response):
    return "".join(part["text"] for item in response["output"] for part in item["content"])


@needs_speech
def test_a_response_can_stand_outside_the_conversation(omni):
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        say(ws, "Hello.")
        until(ws, "conversation.item.done")
        ask(ws, type="response.create", response={"conversation": "none", "output_modalities": ["text"], "metadata": {"topic": "x"}, "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": CAPITAL}]}]})
        events = until(ws, "response.done")
        assert not any(e["type"].startswith("conversation.") for e in events)
        response = events[-1]["response"]
        assert response["metadata"] == {"topic": "x"} and "Tokyo" in text_of(response)
        ask(ws, type="conversation.item.retrieve", item_id=response["output"][0]["id"])
        assert until(ws, "error")[-1]["error"]["code"] == "item_retrieve_invalid_item_id"


@needs_speech
def test_items_come_where_they_are_put(omni):
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        say(ws, "second")
        second = until(ws, "conversation.item.done")[-1]["item"]["id"]
        say(ws, "first", previous_item_id="root")
        first = until(ws, "conversation.item.done")[-1]
        assert first["previous_item_id"] is None
        say(ws, "between", previous_item_id=first["item"]["id"])
        assert until(ws, "conversation.item.done")[-1]["previous_item_id"] == first["item"]["id"]
        ask(ws, type="conversation.item.retrieve", item_id=second)
        assert until(ws, "conversation.item.retrieved")[-1]["item"]["content"][0]["text"] == "second"


@needs_speech
def test_clients_of_the_beta_get_its_events(omni):
    with connect(omni, "/v1/realtime?model=demo", additional_headers={"OpenAI-Beta": "realtime=v1"}) as ws:
        created = tell(ws)["session"]
        assert created["modalities"] == ["text", "audio"] and created["input_audio_format"] == "pcm16" and "audio" not in created
        ask(ws, type="session.update", session={"modalities": ["text"], "voice": "echo", "temperature": 0.75, "turn_detection": None,
                                                "input_audio_format": "g711_ulaw", "max_response_output_tokens": 50})
        updated = tell(ws)["session"]
        assert updated["modalities"] == ["text"] and updated["input_audio_format"] == "g711_ulaw" and updated["turn_detection"] is None
        assert (updated["voice"], updated["temperature"], updated["max_response_output_tokens"]) == ("echo", 0.75, 50)
        say(ws, CAPITAL)
        ask(ws, type="response.create", response={"temperature": 0})
        events = until(ws, "response.done")
        types = [e["type"] for e in events]
        assert types[0] == "conversation.item.created" and "conversation.item.done" not in types
        assert "Tokyo" in "".join(e["delta"] for e in events if e["type"] == "response.text.delta")
        response = events[-1]["response"]
        assert response["modalities"] == ["text"] and response["output"][0]["content"][0]["type"] == "text"
        ask(ws, type="response.create", response={"modalities": ["text", "audio"]})
        types = [e["type"] for e in until(ws, "response.done")]
        assert "response.audio.delta" in types and "response.audio_transcript.done" in types and "response.output_audio.delta" not in types


@needs_speech
def test_a_transcription_session_of_the_beta_has_its_names(omni):
    with connect(omni, "/v1/realtime?intent=transcription", additional_headers={"OpenAI-Beta": "realtime=v1"}) as ws:
        assert tell(ws)["type"] == "transcription_session.created"
        ask(ws, type="transcription_session.update", session={"input_audio_format": "g711_alaw"})
        updated = tell(ws)
        assert updated["type"] == "transcription_session.updated" and updated["session"]["input_audio_format"] == "g711_alaw"


@needs_speech
@pytest.mark.parametrize("message,param,code", [
    ({"type": "session.update", "session": {"temperature": 1}}, "session.temperature", "invalid_value"),
    ({"type": "response.create", "response": {"output_modalities": ["smell"]}}, "response.output_modalities", "invalid_value"),
    ({"type": "response.create", "response": {"conversation": "other"}}, "response.conversation", "invalid_value"),
    ({"type": "response.create", "response": {"input": [{"type": "item_reference", "id": "x"}]}}, "response.input", "invalid_value"),
    ({"type": "response.create", "response": {"metadata": {"a": 1}}}, "response.metadata", "invalid_value"),
    ({"type": "conversation.item.create", "item": {"type": "function_call_output", "output": "x"}}, "item.call_id", "invalid_value"),
    ({"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c", "output": "x"}}, "item.call_id",
     "invalid_value"),
    ({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text"}]}},
     "item.content", "invalid_value"),
    ({"type": "conversation.item.create",  # three bytes, and none
      "item": {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]}}, "item.content",
     "invalid_value"),
    ({"type": "conversation.item.create",
      "item": {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": ""}]}}, "item.content",
     "invalid_value"),
    ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "audio", "invalid_value"),
    ({"type": "conversation.item.create", "previous_item_id": "x",
      "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}},
     "previous_item_id", "item_create_invalid_previous_item_id"),
    ({"type": "conversation.item.delete", "item_id": "x"}, "item_id", "item_delete_invalid_item_id"),
    ({"type": "conversation.item.truncate", "item_id": "x", "audio_end_ms": 1}, "item_id", "item_truncate_invalid_item_id"),
    ({"type": "response.cancel"}, None, "response_cancel_not_active"),
    ({"type": "input_audio_buffer.commit"}, None, "input_audio_buffer_commit_empty"),
    ({"type": "nothing"}, "type", "invalid_event"), ({}, "type", "invalid_event"),
])
def test_wrong_events_have_codes(omni, message, param, code):
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        ask(ws, event_id="mine", **message)
        error = until(ws, "error")[-1]["error"]
        assert (error["param"], error["code"], error["event_id"]) == (param, code, "mine"), json.dumps(error)


@needs_speech
def test_a_response_to_nothing_is_the_clients_error(omni):
    """Its code was server_error."""
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        ask(ws, type="response.create")
        error = until(ws, "response.done")[-1]["response"]["status_details"]["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value"), error


@needs_speech
def test_what_a_transcription_is_told_is_kept_or_refused(omni):
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        for field, transcription in (("", 5), (".language", {"language": "de"}), (".prompt", {"prompt": "Names: Ann."}),
                                     (".tone", {"tone": "high"}), (".model", {"model": 1})):
            ask(ws, type="session.update", session={"type": "realtime", "audio": {"input": {"transcription": transcription}}})
            error = tell(ws)
            assert error["type"] == "error" and error["error"]["param"] == "session.audio.input.transcription" + field, error
        told = {"model": "whisper-1", "language": "en-GB"}
        ask(ws, type="session.update", session={"type": "realtime", "audio": {"input": {"transcription": told}}})
        updated = tell(ws)
        assert updated["type"] == "session.updated" and updated["session"]["audio"]["input"]["transcription"] == told


DELTA, COMPLETED, FAILED = (f"conversation.item.input_audio_transcription.{name}" for name in ("delta", "completed", "failed"))


def heard(ws, pcm):
    """The deltas of a turn that the client commits, and its transcript."""
    for at in range(0, len(pcm), 96_000):
        ask(ws, type="input_audio_buffer.append", audio=base64.b64encode(pcm[at:at + 96_000]).decode())
    ask(ws, type="input_audio_buffer.commit")
    events = []
    while not events or events[-1]["type"] not in (COMPLETED, FAILED):
        events.append(tell(ws))
    assert events[-1]["type"] == COMPLETED, events[-1]
    return [event["delta"] for event in events if event["type"] == DELTA], events[-1]["transcript"]


BY_HAND = {"type": "transcription", "audio": {"input": {"turn_detection": None}}}


@needs_speech
def test_a_transcript_comes_while_the_rest_of_the_turn_is_heard(omni):
    """All of it came at the end, of a turn of five minutes too."""
    sentences = ("What is the capital of Japan?", "Please close the door when you leave the room.")
    pcm = (b"\0" * 96_000).join(omni_say(omni, text, voice="kal16", response_format="pcm").content for text in sentences)
    with connect(omni, "/v1/realtime?intent=transcription") as ws:
        tell(ws)
        ask(ws, type="session.update", session=BY_HAND)
        assert tell(ws)["type"] == "session.updated"
        deltas, transcript = heard(ws, pcm)
    assert len(deltas) == 2 and "".join(deltas) == transcript
    assert "japan" in deltas[0] and deltas[1].startswith(" ")


def test_what_a_recognizer_without_times_hears_is_in_the_conversation(start, tmp_path):
    """Text was dropped, so that such a turn was empty."""
    path = tmp_path / "mock.yaml"
    path.write_text("stages:\n  - {name: hear, factory_path: portico.mock, factory: {chunks: 3, audio: false}, terminal: true}\n")
    server = start("--pipeline", str(path), "--engine", "mock")
    with connect(server, "/v1/realtime?intent=transcription") as ws:
        tell(ws)
        ask(ws, type="session.update", session=BY_HAND)
        assert tell(ws)["type"] == "session.updated"
        assert heard(ws, b"\1\0" * 24_000) == (["w0 ", "w1 ", "w2 "], "w0 w1 w2 ")


@needs_speech
def test_an_item_can_come_first_in_a_full_conversation(omni):
    # It went at once, as the oldest, and telling of it ended the server.
    with connect(omni, "/v1/realtime") as ws:
        tell(ws)
        for _ in range(512):
            say(ws, "x")
            until(ws, "conversation.item.done")
        say(ws, "first", previous_item_id="root")
        done = until(ws, "conversation.item.done")[-1]
        assert done["previous_item_id"] is None and done["item"]["content"][0]["text"] == "first"


@needs_speech
def test_a_client_that_mixes_both_forms_of_a_session_is_told_what_is_wrong(omni):
    # A member was set in what is no object, which ended the server.
    with connect(omni, "/v1/realtime", additional_headers={"OpenAI-Beta": "realtime=v1"}) as ws:
        tell(ws)
        for session, param in (({"audio": 5, "voice": "echo"}, "session.audio"),
                               ({"audio": {"input": "pcm"}, "turn_detection": None}, "session.audio.input")):
            ask(ws, type="session.update", session=session)
            assert until(ws, "error")[-1]["error"]["param"] == param


@needs_speech
def test_an_input_that_names_a_long_item_again_and_again_is_refused(omni):
    with connect(omni, "/v1/realtime", max_size=None) as ws:
        tell(ws)
        say(ws, "x" * 3_000_000)
        item = until(ws, "conversation.item.done")[-1]["item"]["id"]
        ask(ws, type="response.create", response={"input": [{"type": "item_reference", "id": item}] * 3})
        assert until(ws, "error")[-1]["error"]["param"] == "response.input"


@needs_speech
def test_an_input_of_more_items_than_a_conversation_holds_is_refused(omni):
    # It was told that its list must be a list.
    with connect(omni, "/v1/realtime", max_size=None) as ws:
        tell(ws)
        say(ws, "x")
        item = until(ws, "conversation.item.done")[-1]["item"]["id"]
        for again in ({"type": "item_reference", "id": item}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}):
            ask(ws, type="response.create", response={"input": [again] * 513})
            error = until(ws, "error")[-1]["error"]
            assert error["param"] == "response.input" and "513 items; at most 512" in error["message"], error


@needs_speech
@pytest.mark.skipif(SANITIZED, reason="sanitizers keep memory that was freed")
def test_a_client_that_asks_for_much_at_once_is_cut_off_before_it_is_made(start):
    # All messages of one read were answered before anybody looked at what waits for the client.
    server = start("--speech")

    def peak():
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) << 10
    with connect(server, "/v1/realtime", max_size=None) as ws:
        tell(ws)
        say(ws, "x" * 1_000_000)
        item = until(ws, "conversation.item.done")[-1]["item"]["id"]
        before = peak()
        message = json.dumps({"type": "conversation.item.retrieve", "item_id": item}).encode()
        assert len(message) < 126
        ws.socket.sendall((b"\x81" + bytes([0x80 | len(message)]) + bytes(4) + message) * 400)  # masked with zeros
        with pytest.raises(exceptions.ConnectionClosed):
            while True:
                ws.recv(60)
    assert peak() - before < 150 << 20
    assert requests.get(server.url + "/health", timeout=60).status_code == 200


@needs_speech
@pytest.mark.parametrize("field,session", [
    ("session.tools[0].type", {"tools": [{"type": "mcp", "server_label": "x", "server_url": "https://example.com"}]}),
    ("session.audio.input.noise_reduction", {"audio": {"input": {"noise_reduction": {"type": "near_field"}}}}),
    ("session.audio.input.turn_detection.type", {"audio": {"input": {"turn_detection": {"type": "vad"}}}}),
    ("session.audio.input.turn_detection.eagerness", {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "very"}}}}),
    ("session.audio.input.turn_detection.threshold", {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "threshold": 0.5}}}}),
    ("session.audio.input.turn_detection.eagerness", {"audio": {"input": {"turn_detection": {"type": "server_vad", "eagerness": "low"}}}}),
    ("session.audio.input.turn_detection.idle_timeout_ms",
     {"audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 4999}}}}),
    ("session.temperature", {"temperature": 0.8}),
    ("session.truncation", {"truncation": {"type": "retention_ratio", "retention_ratio": 0.8}}),
    ("session.prompt", {"prompt": {"id": "pmpt_1"}}),
])
def test_what_a_session_cannot_do_is_refused_by_its_field(omni, field, session):
    with connect(omni, "/v1/realtime") as ws:
        before = tell(ws)["session"]
        ask(ws, type="session.update", event_id="mine", session={"type": "realtime", "instructions": "changed", **session})
        error = until(ws, "error")[-1]["error"]
        assert (error["type"], error["code"], error["param"], error["event_id"]) == ("invalid_request_error", "invalid_value", field, "mine")
        ask(ws, type="session.update", session={"type": "realtime"})
        assert until(ws, "session.updated")[-1]["session"] == before  # nothing was taken


def test_a_silence_behind_an_answer_is_a_turn(start, tmp_path):
    """`idle_timeout_ms`: the model goes on where the user says nothing."""
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    with connect(start(command=("omni", "serve", str(path))), "/v1/realtime") as ws:
        tell(ws)
        ask(ws, type="session.update", session={"type": "realtime", "output_modalities": ["text"]})
        until(ws, "session.updated")
        say(ws, "hello")
        ask(ws, type="response.create")
        until(ws, "response.done")
        ask(ws, type="input_audio_buffer.append", audio=base64.b64encode(bytes(48_000)).decode())
        # Now: the silence must not have ended before its sound has come. The time runs from the answer's end.
        ask(ws, type="session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}}})
        assert until(ws, "session.updated")[-1]["session"]["audio"]["input"]["turn_detection"]["idle_timeout_ms"] == 5000
        types = {event["type"]: event for event in until(ws, "response.done")}
        silence = types["input_audio_buffer.timeout_triggered"]
        assert (silence["audio_start_ms"], silence["audio_end_ms"]) == (0, 1000)
        assert types["input_audio_buffer.committed"]["item_id"] == silence["item_id"]
        assert types["response.done"]["response"]["status"] == "completed"
