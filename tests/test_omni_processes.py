"""Stages in processes of their own: what clients see while these work, die, stop and talk nonsense."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import time

import pytest
import requests

from conftest import SANITIZED, WAIT_SECONDS, freeze, wait_until
from omni_stages import (ENCODE, MOCK, children, health, open_files, pipeline, python, say, steps,  # noqa: F401 (pipeline is a fixture)
                         write)
from test_omni import omni_command


def test_native_stages_in_processes_answer_as_in_one(pipeline):
    server = pipeline("name: talk, process: p1, " + MOCK % 1,
                      ENCODE.replace("name: encode,", "name: encode, process: p2,"))
    assert len(children(server)) == 2
    assert steps(say(server, "hello")) == [0, 327, 655, 983, 1310]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: steps(say(server, "hello")), range(64)))
    assert answers == [[0, 327, 655, 983, 1310]] * 64
    assert say(server, "fail-now").status_code == 500
    assert health(server).text == "ok\n"
    translated = requests.post(server.url + "/v1/audio/translations", files={"file": ("a", b"x")}, timeout=60)
    assert translated.status_code == 400 and "translates" in translated.json()["error"]["message"]


def test_sentences_in_a_process_of_their_own_are_spoken(pipeline):
    """The process checked a request without its inputs, and refused every text as one without anything to say."""
    server = pipeline("name: sentences, factory_path: portico.sentences, process: text, stream_to: [talk]",
                      "name: talk, " + MOCK % 1, ENCODE)
    assert steps(say(server, "hello")) == [0, 327, 655, 983, 1310]
    silent = say(server, "\U0001F600")
    assert silent.status_code == 400 and "nothing that can be spoken" in silent.json()["error"]["message"]


def test_nothing_is_left_when_the_server_ends_however_it_ends(pipeline, start, tmp_path):
    server = pipeline("name: talk, process: p1, " + MOCK % 1, ENCODE)
    pids = children(server)
    server.stop()
    server.stop = lambda: None
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    killed = start("--pipeline", str(tmp_path / "p.yaml"), "--engine", "mock")
    pids = children(killed)
    os.kill(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    killed.stop = lambda: None
    killed.log.close()
    os.unlink(killed.log.name)

    def gone():
        return all(not os.path.exists(f"/proc/{pid}") or "State:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text() for pid in pids)
    wait_until(gone, "stage processes outlive the server")


def test_a_killed_stage_comes_back_and_its_silent_requests_begin_anew(pipeline, tmp_path):
    """Requests that have shown nothing are answered; those that have end, and the stage is named."""
    marker = tmp_path / "go"
    server = pipeline(python("voice", "Hold", f"factory: {{marker: '{marker}'}}, stream_to: [encode]"), ENCODE)
    before = len(open_files(server.process.pid))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        # Not the answers themselves, which would keep their connections.
        silent = [pool.submit(lambda: say(server, "hold").status_code) for _ in range(4)]
        begun = [pool.submit(lambda: say(server, "first hold", stream_format="sse").text) for _ in range(3)]
        server.wait_for("portico_stage_parts_total", 7 + 3)  # 7 texts, and the first sound of 3
        server.wait_for("portico_hop_seconds_count", 3, target="(client)")  # who has it
        marker.touch()
        os.kill(children(server)[0], signal.SIGKILL)
        for answer in begun:
            text = answer.result(WAIT_SECONDS)
            assert "stage `voice` has ended" in text and '"type":"error"' in text
        assert [answer.result(WAIT_SECONDS) for answer in silent] == [200] * 4
    assert server.metric("portico_stage_replays_total") == 4
    assert server.metric("portico_stage_process_restarts_total") == 1
    server.wait_for("portico_pipeline_requests_running", 0)
    wait_until(lambda: health(server).text == "ok\n", "the stage is not back")
    assert say(server, "hello").status_code == 200
    wait_until(lambda: len(open_files(server.process.pid)) <= before, "descriptors are left")
    assert not any("memfd" in name for name in open_files(server.process.pid))


def test_a_voice_that_fails_behind_its_first_sound_is_answered(pipeline):
    """The head was still in the connection's buffer when the answer was cut off: the reply was empty."""
    server = pipeline(python("voice", "falters"), ENCODE)
    body = json.dumps({"input": "hello", "response_format": "pcm"}).encode()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
                           b"content-length: %d\r\n\r\n%s" % (len(body), body))
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := client.recv(65536):
                    answer += piece
        head, _, rest = answer.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200 "):
            assert rest and not rest.endswith(b"0\r\n\r\n")
        else:
            assert head.startswith(b"HTTP/1.1 500 ") and json.loads(rest)["error"], answer


def test_a_stage_that_may_not_replay_ends_its_requests_with_503(pipeline):
    server = pipeline(python("voice", "Hold", "replay: false, restart: false, stream_to: [encode]"), ENCODE)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(say, server, "hold")
        server.wait_for("portico_stage_parts_total", 1)
        os.kill(children(server)[0], signal.SIGKILL)
        answer = held.result(WAIT_SECONDS)
    assert answer.status_code == 503 and "stage `voice`" in answer.json()["error"]["message"]
    wait_until(lambda: health(server).text.startswith("degraded: stage voice: 1 of 1 processes have ended"), "health says nothing")
    assert health(server).status_code == 200
    assert say(server, "hello").status_code == 503


def test_a_stage_that_works_through_many_parts_before_it_answers_has_not_stalled(pipeline):
    server = pipeline(python("spell", "spell", "stream_to: [count]"),
                      python("count", "count", "factory: {delay: 0.25}, stall_timeout_s: 3, stream_to: [encode]"), ENCODE)
    answer = say(server, "word " * 16)
    assert answer.status_code == 200, answer.text
    assert steps(answer) == [16]


def test_parts_that_wait_in_a_process_are_measured_when_it_takes_them(pipeline, tmp_path):
    """They had been taken when they were sent to the process; and again by the next process, if that died."""
    marker = tmp_path / "go"
    server = pipeline(python("voice", "spell", "stream_to: [hold]"),
                      python("hold", "hold", f"factory: {{marker: '{marker}'}}, stream_to: [encode]"), ENCODE)

    def taken():
        return server.metric("portico_hop_seconds_count", source="voice", target="hold")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(say, server, "one two three")
        server.wait_for("portico_stage_parts_total", 4, stage="hold")
        wait_until(lambda: taken() == 2, lambda: f"{taken()} are taken")  # the first is passed over, the second held
        os.kill(children(server)[0], signal.SIGKILL)
        server.wait_for("portico_stage_process_restarts_total", 1, process="hold")
        wait_until(lambda: health(server).text == "ok\n", "the stage is not back")
        assert taken() == 2
        marker.touch()
        assert steps(answer.result(60)) == [2, 3]
    server.wait_for("portico_hop_seconds_count", 4, source="voice", target="hold")


def test_a_part_that_waits_in_a_process_for_the_one_before_it_has_a_time_limit(pipeline):
    server = pipeline(python("voice", "spell", "stream_to: [hold]"), python("hold", "hold", "hop_timeout_s: 1, stream_to: [encode]"), ENCODE)
    answer = say(server, "one two three")
    assert answer.status_code == 504, answer.text
    assert "what stage `voice` has sent waits for stage `hold` longer than 1 s" in answer.json()["error"]["message"]
    server.wait_for("portico_pipeline_requests_running", 0)


def test_a_stopped_stage_is_ended_within_its_stall_timeout(pipeline):
    """SIGSTOP: no error, no end of file, just silence (vllm-omni#4463)."""
    server = pipeline(python("voice", "Hold", "stall_timeout_s: 8, replay: false, stream_to: [encode]"), ENCODE)
    freeze(children(server)[0])
    start = time.monotonic()
    answer = say(server, "hello")
    assert answer.status_code == 503 and "stage `voice`" in answer.json()["error"]["message"]
    assert SANITIZED or time.monotonic() - start < 28  # without a stall_timeout_s it would be half a minute
    wait_until(lambda: say(server, "hello").status_code == 200, "the stage is not back")


def test_health_says_which_stage_does_not_answer(pipeline):
    """It was ok for all of a stage's silence, half a minute without a stall_timeout_s."""
    server = pipeline(python("voice", "Hold", "stream_to: [encode]"), ENCODE)
    assert health(server).text == "ok\n"
    stage = children(server)[0]
    os.kill(stage, signal.SIGSTOP)
    try:
        wait_until(lambda: "stage voice: 1 of 1 processes have answered nothing for" in health(server).text, "health says nothing")
        assert health(server).text.startswith("degraded: ") and health(server).status_code == 200
    finally:
        os.kill(stage, signal.SIGCONT)
    wait_until(lambda: health(server).text == "ok\n", "it is still degraded")


@pytest.mark.parametrize("kind", ["noise", "empty", "stranger", "twice", "numbers", "nobody", "choice", "long"])
def test_a_stage_that_sends_garbage_is_ended_and_counted(garbled, kind):
    ended = garbled.metric("portico_stage_garbage_total")
    answer = say(garbled, kind)
    if kind != "twice":  # its first end is a good one, without any sound
        assert answer.status_code == 503 and "stage `voice`" in answer.json()["error"]["message"]
    garbled.wait_for("portico_stage_garbage_total", ended + 1)
    wait_until(lambda: say(garbled, "fine").status_code == 200, "the stage is not back")
    assert "Traceback" not in answer.text and "/" not in answer.json()["error"]["message"]


@pytest.fixture(scope="module")
def garbled(serve, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("garbage") / "p.yaml", python("voice", "Garbage", "replay: false, stream_to: [encode]"), ENCODE)
    return serve("--pipeline", str(path))


def test_replicas_take_over(pipeline, tmp_path):
    server = pipeline(python("voice", "spell", "factory: {delay: 0.02}, replay: true, stream_to: [encode]"), ENCODE,
                      head="processes: {voice: {num_replicas: 2}}\n")
    assert len(children(server)) == 2
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(say, server, "one two three", stream_format="sse") for _ in range(40)]
        os.kill(children(server)[0], signal.SIGKILL)
        texts = [answer.result(WAIT_SECONDS).text for answer in answers]
    done = sum("speech.audio.done" in text for text in texts)
    told = sum("stage `voice` has ended" in text for text in texts)
    assert done + told == 40 and done >= 20
    wait_until(lambda: health(server).text == "ok\n", "the replica is not back")


def test_tensors_pass_through_shared_memory(pipeline):
    server = pipeline(python("make", "to_tensor", "stream_to: [pass]"), "name: pass, factory_path: portico.pass, process: p, stream_to: [use]",
                      python("use", "from_tensor"), ENCODE)
    assert steps(say(server, "hello")) == [1000]
    wait_until(lambda: not any("memfd" in name for pid in [server.process.pid, *children(server)] for name in open_files(pid)),
               "shared memory is left")


def test_a_client_that_does_not_read_stops_the_stage_and_one_that_leaves_ends_it(pipeline):
    server = pipeline(python("voice", "Hold"), ENCODE)
    with requests.post(server.url + "/v1/audio/speech", json={"input": "endless", "response_format": "pcm"}, stream=True, timeout=60) as answer:
        parts = answer.iter_content(1000)  # an iterator that is dropped closes the connection
        next(parts)
        taken = [-1.0]

        def stopped():
            time.sleep(0.5)
            taken.append(server.metric("portico_stage_parts_total", stage="encode"))
            return taken[-1] == taken[-2]
        wait_until(stopped, "the stage goes on")
        assert taken[-1] < 1000
        assert say(server, "hello").status_code == 200
    server.wait_for("portico_pipeline_requests_running", 0)
    wait_until(lambda: steps(say(server, "hello")) is not None, "the stage hangs")


def test_wrong_processes_are_refused_before_anything_starts(tmp_path):
    for stages, why in (
            ([python("a", "no_such_function", "terminal: true")], "has no attribute"),
            ([python("a", "shout", "factory: {loud: 1}, terminal: true")], "unexpected keyword argument 'loud'"),
            (["name: a, factory_path: no_such_module.f, terminal: true"], "No module named"),
            (["name: a, factory_path: portico.engine, process: p, terminal: true"], "works in the server's own process"),
            (["name: a, factory_path: portico.mock, env: {A: b}, terminal: true"], "takes neither `python` nor `env`"),
            ([python("a", "same", "process: p, stream_to: [b]"), "name: b, factory_path: portico.pass, process: p, terminal: true"], "cannot share"),
            (["name: a, factory_path: m.f, python: /no/such/python, terminal: true"], "has ended")):
        refused = omni_command("check", str(write(tmp_path / "p.yaml", *stages)))
        assert refused.returncode == 1 and why in refused.stderr, refused.stderr
    refused = omni_command("check", str(write(tmp_path / "p.yaml", "name: a, factory_path: portico.mock, terminal: true",
                                              head="processes: {q: {num_replicas: 2}}\n")))
    assert "no stage runs in the process `q`" in refused.stderr
