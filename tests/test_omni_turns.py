"""`semantic_vad` of realtime sessions: where a turn ends is asked of what was said."""
import base64

from omni_stages import pipeline, python  # noqa: F401 (pipeline is a fixture)
from test_omni_recorded import PIPELINE
from test_omni_sockets import ask, connect, tell, until

COMPLETED = "conversation.item.input_audio_transcription.completed"
LOUD, QUIET = b"\x10" * 10 + b"\x90" * 10, b"\xff" * 20  # 2.5 ms at 8 kHz


def listen(ws, eagerness):
    """Makes it a transcription session with semantic_vad."""
    tell(ws)
    turns = {"type": "semantic_vad", "eagerness": eagerness, "create_response": True, "interrupt_response": True}
    ask(ws, type="session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": turns, "format": {"type": "audio/pcmu"}}}})
    assert tell(ws)["session"]["audio"]["input"]["turn_detection"] == turns


def append(ws, sound):
    ask(ws, type="input_audio_buffer.append", audio=base64.b64encode(sound).decode())


def test_who_seems_to_have_finished_is_not_waited_for(start, tmp_path):
    """Half a second of silence is behind `w4`; the longest pause is 8 s."""
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    with connect(start(command=("omni", "serve", str(path))), "/v1/realtime?intent=transcription") as ws:
        listen(ws, "low")
        append(ws, LOUD * 400 + QUIET * 200)
        events = until(ws, COMPLETED)
    stopped, = (event for event in events if event["type"] == "input_audio_buffer.speech_stopped")
    assert abs(stopped["audio_end_ms"] - 1000) <= 20 and events[-1]["transcript"].endswith("w4 ")


def test_who_leads_on_is_waited_for(pipeline):
    """`the` comes before another word: the turn goes on behind the pause, and ends with the longest."""
    server = pipeline("name: decode, factory_path: portico.decode, stream_to: [ears]", python("ears", "leads_on", "terminal: true"))
    with connect(server, "/v1/realtime?intent=transcription") as ws:
        listen(ws, "high")
        append(ws, LOUD * 400 + QUIET * 400)
        server.wait_for("portico_pipeline_requests_total", 1)
        server.wait_for("portico_pipeline_requests_running", 0)
        ask(ws, type="none")
        events = until(ws, "error")
        append(ws, LOUD * 400 + QUIET * 900)
        events += until(ws, COMPLETED)
    assert [event["type"] for event in events].count("input_audio_buffer.speech_started") == 1
    stopped, = (event for event in events if event["type"] == "input_audio_buffer.speech_stopped")
    assert abs(stopped["audio_end_ms"] - 3000) <= 20
    # The pause was judged, and the one that was over when it came was not.
    assert server.metric("portico_pipeline_requests_total") == 2


def test_a_pipeline_that_recognizes_no_speech_has_no_semantic_turns(start, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("stages:\n  - {name: think, factory_path: portico.http, factory: {url: 'http://127.0.0.1:9', role: think}, terminal: true}\n")
    with connect(start(command=("omni", "serve", str(path))), "/v1/realtime") as ws:
        before = tell(ws)["session"]
        ask(ws, type="session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}})
        error = until(ws, "error")[-1]["error"]
        assert error["param"] == "session.audio.input.turn_detection.type" and "recognizes no speech" in error["message"]
        ask(ws, type="session.update", session={"type": "realtime"})
        assert tell(ws)["session"] == before


def test_the_fields_of_one_kind_of_turns_are_not_those_of_the_other(start, tmp_path):
    """They begin with their defaults wherever the kind changes."""
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    with connect(start(command=("omni", "serve", str(path))), "/v1/realtime") as ws:
        first = tell(ws)["session"]["audio"]["input"]["turn_detection"]

        def update(**turns):
            ask(ws, type="session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": turns}}})
            return tell(ws)["session"]["audio"]["input"]["turn_detection"]
        changed = {"threshold": 0.25, "prefix_padding_ms": 0, "silence_duration_ms": 900, "idle_timeout_ms": 6000}
        assert update(type="server_vad", **changed) == {**first, **changed}
        semantic = {"type": "semantic_vad", "eagerness": "auto", "create_response": True, "interrupt_response": True}
        assert update(type="semantic_vad") == semantic
        assert update(type="semantic_vad", eagerness="low") == {**semantic, "eagerness": "low"}
        assert update(type="semantic_vad", create_response=False) == {**semantic, "eagerness": "low", "create_response": False}
        assert update(type="server_vad", create_response=True) == first
