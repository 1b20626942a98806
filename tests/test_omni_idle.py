"""`idle_timeout_ms` of realtime sessions: what the model may go on from, and what not."""
import base64
import contextlib

from omni_stages import pipeline  # noqa: F401 (pipeline is a fixture)
from test_omni_realtime import say
from test_omni_sockets import ask, connect, tell, until

# Answers at once, fails for `fail-now`, and goes on for ever for `wait`.
MOCK = "name: all, factory_path: portico.mock, factory: {audio: false, fault: never, fault_on: wait}, terminal: true"
LOUD, QUIET = b"\0\x40" * 12 + b"\0\xc0" * 12, bytes(48)  # 1 ms


def update(ws, **turns):
    turns = {"type": "server_vad", **turns}
    ask(ws, type="session.update", session={"type": "realtime", "output_modalities": ["text"], "audio": {"input": {"turn_detection": turns}}})
    until(ws, "session.updated")


def append(ws, pcm):
    ask(ws, type="input_audio_buffer.append", audio=base64.b64encode(pcm).decode())


def answer(ws, text, **response):
    say(ws, text)
    ask(ws, type="response.create", response=response)
    return until(ws, "response.done")[-1]["response"]["status"]


def test_a_silence_is_a_turn_only_behind_an_answer_that_waits_for_the_user(pipeline):
    """Each of these was asked to go on: one that failed again and again, for ever. The last session's time ends last."""
    server = pipeline(MOCK)
    with contextlib.ExitStack() as open_sockets:
        def session():
            ws = open_sockets.enter_context(connect(server, "/v1/realtime"))
            tell(ws)
            update(ws, create_response=False)
            return ws
        failed = session()
        assert answer(failed, "fail-now") == "failed"
        outside = session()
        assert answer(outside, "hello", conversation="none") == "completed"
        written = session()
        assert answer(written, "hello") == "completed"
        say(written, "I think I need")
        until(written, "conversation.item.done")
        committed = session()
        assert answer(committed, "hello") == "completed"
        append(committed, QUIET * 200)
        ask(committed, type="input_audio_buffer.commit")
        until(committed, "input_audio_buffer.committed")
        interrupted = session()
        say(interrupted, "wait")
        ask(interrupted, type="response.create")
        until(interrupted, "response.created")
        append(interrupted, LOUD * 500 + QUIET * 1000)  # somebody begins to speak and stops
        events = {event["type"]: event for event in until(interrupted, "input_audio_buffer.speech_stopped")}
        assert events["response.done"]["response"]["status"] == "cancelled"
        silent = {"failed": failed, "outside": outside, "written": written, "committed": committed, "interrupted": interrupted}
        for ws in silent.values():
            update(ws, idle_timeout_ms=5000)

        last = session()
        assert answer(last, "hello") == "completed"
        ask(last, type="response.create", response={"conversation": "none"})  # it does not change whose turn it is
        assert until(last, "response.done")[-1]["response"]["status"] == "completed"
        append(last, QUIET * 500)
        update(last, idle_timeout_ms=5000, create_response=True)
        types = [event["type"] for event in until(last, "response.done")]
        assert types.count("input_audio_buffer.timeout_triggered") == 1
        for ws in silent.values():
            ask(ws, type="conversation.item.retrieve", item_id="none")
        asked = [name for name, ws in silent.items() if "input_audio_buffer.timeout_triggered" in [event["type"] for event in until(ws, "error")]]
        assert not asked
        # The silence was committed with all sound in the buffer, with which the words of somebody may begin.
        ask(last, type="input_audio_buffer.commit")
        until(last, "input_audio_buffer.committed")
