"""Stages in processes of their own: what clients see while these work, die, stop and talk nonsense."""
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import struct
import time

import pytest
import requests

from conftest import SANITIZED, wait_until

STAGES = pathlib.Path(__file__).resolve().parent
PATIENCE = 30 if SANITIZED else 10


def write(path, *stages, head=""):
    path.write_text(head + "stages:\n" + "".join(f"  - {{{stage}}}\n" for stage in stages))
    return path


def python(name, function, more="stream_to: [encode]"):
    return f"name: {name}, factory_path: stages_for_test.{function}, env: {{PYTHONPATH: '{STAGES}'}}, {more}"


ENCODE = "name: encode, factory_path: portico.encode, terminal: true"


@pytest.fixture
def pipeline(start, tmp_path):
    """pipeline(*stages, head=…) -> a server that runs them."""
    def make(*stages, head=""):
        return start("--pipeline", str(write(tmp_path / "p.yaml", *stages, head=head)), "--engine", "mock")
    return make


def say(server, text, **fields):
    return requests.post(server.url + "/v1/audio/speech", json={"input": text, "response_format": "pcm", **fields}, timeout=60)


def health(server):
    return requests.get(server.url + "/health", timeout=60)


def children(server):
    """Pids of the server's stage processes, oldest first."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        stage = b"omni-stage" in words or any(word.endswith(b"stage.py") for word in words)
        if f"PPid:\t{server.process.pid}\n" in status and stage and "State:\tZ" not in status:
            found.append(int(entry.name))
    return sorted(found)


def open_files(pid):
    """What the process has open; what is closed, or the process that ends, while this looks is left out."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def steps(answer):
    assert answer.status_code == 200, answer.text
    samples = struct.unpack(f"<{len(answer.content) // 2}h", answer.content)
    return list(samples[::480])


MOCK = "factory_path: portico.mock, factory: {chunks: 5, delay_ms: %s, text: false}, stream_to: [encode]"


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


def test_a_speech_tells_stages_of_python_how_to_sample(pipeline):
    server = pipeline(python("voice", "sampled"), ENCODE)
    assert steps(say(server, "x", seed=7, top_k=3, max_new_tokens=9, temperature=0.5)) == [7, 3, 9]
    assert steps(say(server, "x", seed=None)) == [0, 0, 0]
    for name, value in (("seed", "one"), ("top_k", 0), ("max_new_tokens", 0), ("temperature", -1), ("top_p", 2)):
        refused = say(server, "x", **{name: value})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == name, refused.text


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
        marker.touch()
        os.kill(children(server)[0], signal.SIGKILL)
        told = time.monotonic()
        for answer in begun:
            text = answer.result(PATIENCE)
            assert "stage `voice` has ended" in text and '"type":"error"' in text
        assert time.monotonic() - told < PATIENCE
        assert [answer.result(PATIENCE) for answer in silent] == [200] * 4
    assert server.metric("portico_stage_replays_total") == 4
    assert server.metric("portico_stage_process_restarts_total") == 1
    server.wait_for("portico_pipeline_requests_running", 0)
    wait_until(lambda: health(server).text == "ok\n", "the stage is not back")
    assert say(server, "hello").status_code == 200
    wait_until(lambda: len(open_files(server.process.pid)) <= before, "descriptors are left")
    assert not any("memfd" in name for name in open_files(server.process.pid))


def test_a_stage_that_may_not_replay_ends_its_requests_with_503(pipeline):
    server = pipeline(python("voice", "Hold", "replay: false, restart: false, stream_to: [encode]"), ENCODE)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(say, server, "hold")
        server.wait_for("portico_stage_parts_total", 1)
        os.kill(children(server)[0], signal.SIGKILL)
        answer = held.result(PATIENCE)
    assert answer.status_code == 503 and "stage `voice`" in answer.json()["error"]["message"]
    wait_until(lambda: health(server).text.startswith("degraded: stage voice: 1 of 1 processes have ended"), "health says nothing")
    assert health(server).status_code == 200
    assert say(server, "hello").status_code == 503


def test_a_stopped_stage_is_ended_within_its_stall_timeout(pipeline):
    """SIGSTOP: no error, no end of file, just silence (vllm-omni#4463)."""
    server = pipeline(python("voice", "Hold", "stall_timeout_s: 8, replay: false, stream_to: [encode]"), ENCODE)
    os.kill(children(server)[0], signal.SIGSTOP)
    start = time.monotonic()
    answer = say(server, "hello")
    assert answer.status_code == 503 and "stage `voice`" in answer.json()["error"]["message"]
    assert 1 < time.monotonic() - start < 8 + PATIENCE
    wait_until(lambda: say(server, "hello").status_code == 200, "the stage is not back")


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
        texts = [answer.result(PATIENCE).text for answer in answers]
    done = sum("speech.audio.done" in text for text in texts)
    told = sum("stage `voice` has ended" in text for text in texts)
    assert done + told == 40 and done >= 20
    wait_until(lambda: health(server).text == "ok\n", "the replica is not back")


def test_python_stages_are_functions_generators_and_classes(pipeline):
    server = pipeline(python("shout", "shout", "factory: {mark: ' now'}, stream_to: [same]"), python("same", "same", "stream_to: [voice]"),
                      python("voice", "spell"), ENCODE)
    assert len(children(server)) == 3
    assert steps(say(server, "one two three")) == [1, 2, 3, 4]


def test_python_stages_tell_clients_only_what_they_want_to(pipeline):
    server = pipeline(python("voice", "Hold"), ENCODE)
    refused = say(server, "refuse")
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "input"
    assert "does not say that" in refused.json()["error"]["message"]
    crashed = say(server, "crash")
    assert crashed.status_code == 500 and "secret" not in crashed.text
    wait_until(lambda: "RuntimeError: a secret" in server.output(), "its traceback is not in the log")
    voice = f"pid{children(server)[0]}"
    assert voice in requests.get(server.url + "/v1/audio/voices", timeout=60).json()["voices"]


def test_tensors_pass_through_shared_memory(pipeline):
    server = pipeline(python("make", "to_tensor", "stream_to: [pass]"), "name: pass, factory_path: portico.pass, process: p, stream_to: [use]",
                      python("use", "from_tensor"), ENCODE)
    assert steps(say(server, "hello")) == [1000]
    wait_until(lambda: not any("memfd" in name for pid in [server.process.pid, *children(server)] for name in open_files(pid)),
               "shared memory is left")


def test_a_client_that_does_not_read_stops_the_stage_and_one_that_leaves_ends_it(pipeline):
    server = pipeline(python("voice", "Hold"), ENCODE)
    with requests.post(server.url + "/v1/audio/speech", json={"input": "endless", "response_format": "pcm"}, stream=True, timeout=60) as answer:
        next(answer.iter_content(1000))
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
    from test_omni import omni_command
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
def speaker(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("speaker")
    (folder / "speak.py").write_text(SPEAKER)
    path = write(folder / "p.yaml", "name: sentences, factory_path: portico.sentences, factory: {language: any}, stream_to: [say]",
                 f"name: say, factory_path: portico.command, factory: {{command: [python3, '{folder}/speak.py', '{{voice}}'], voices: [a, bb]}}, stream_to: [encode]", ENCODE)
    return serve("--pipeline", str(path))


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


def test_a_program_that_is_not_installed_is_named(tmp_path):
    from test_omni import omni_command
    stage = "name: say, factory_path: portico.command, factory: {command: [no-such-voice]}, terminal: true"
    refused = omni_command("check", str(write(tmp_path / "p.yaml", stage)))
    assert refused.returncode == 1 and "the program `no-such-voice` is not installed" in refused.stderr


def test_functions_of_python_choose_project_and_merge(pipeline):
    functions = "route_fn: stages_for_test.side, project_payload: {left: stages_for_test.loud}"
    server = pipeline(python("think", "ask", f"next: [left, right], {functions}"),
                      python("left", "mark", "factory: {mark: L}, next: join"), python("right", "mark", "factory: {mark: R}, stream_to: join"),
                      python("join", "same", "wait_for: [left, right], merge_fn: stages_for_test.joined, terminal: true"), head="name: talk\n")

    def said(content):
        body = {"model": "talk", "messages": [{"role": "user", "content": content}]}
        return requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    for content, answer in {"left a": "left: L(LEFT A)", "right b": "right: R(right b)", "both c": "left: L(BOTH C) | right: R(both c)",
                            "none d": ""}.items():
        told = said(content)
        assert told.status_code == 200, told.text
        assert told.json()["choices"][0]["message"]["content"] == answer
    wrong = said("wrong e")
    assert wrong.status_code == 500 and "nobody" not in wrong.text
    assert health(server).text == "ok\n"


def talk(server, content):
    body = {"model": "talk", "messages": [{"role": "user", "content": content}]}
    return requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)


def said(server, content):
    answer = talk(server, content)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


def test_a_function_of_python_tells_which_stages_a_request_waits_for(pipeline):
    server = pipeline(python("ask", "ask", "next: [left, right, gone], route_fn: stages_for_test.gone"), python("left", "mark", "factory: {mark: L}, next: join"),
                      python("right", "stuck_unless_both", "factory: {mark: R}, next: join"), python("gone", "same", "next: join"),
                      python("join", "same", "wait_for: [left, right, gone], wait_for_fn: stages_for_test.wanted, "
                             "merge_fn: stages_for_test.joined, terminal: true"), head="name: talk\n")
    assert said(server, "a") == "left: L(a)"  # the other one never ends
    assert said(server, "both b") == "left: L(both b) | right: R(both b)"
    for content in ("both unsure", "both wrong", "both empty", "both absent"):
        answer = talk(server, content)
        assert answer.status_code == 500 and "join" in answer.text and "nobody" not in answer.text, content
    assert health(server).text == "ok\n"


def test_a_stage_that_is_not_told_of_the_end_of_a_stream_does_not_run(pipeline):
    functions = ("stream_done_to_fn: stages_for_test.by_first_word, "
                 "project_payload: {left: stages_for_test.for_left, right: stages_for_test.for_right}")
    server = pipeline(python("think", "ask", f"stream_to: [left, right], {functions}"),
                      python("left", "marked_to_the_end", "factory: {mark: L}, terminal: true"),
                      python("right", "marked_to_the_end", "factory: {mark: R}, terminal: true"), head="name: talk\n")
    assert said(server, "left a") == "L(left a)L."
    assert said(server, "right b") == "R(right b)R."
    assert sorted(said(server, "left and right")) == sorted("L(left and right)L.R(left and right)R.")


@pytest.mark.parametrize("early", [False, True])
def test_a_stream_waits_for_the_payload_unless_it_is_accepted_before(pipeline, tmp_path, early):
    marker = tmp_path / "streamed" if early else ""
    last = f"factory: {{marker: '{marker}'}}, terminal: true" + (", can_accept_stream_before_payload: true" if early else "")
    server = pipeline(python("ask", "ask", "stream_to: [payload, bits]"), python("payload", "after", f"factory: {{marker: '{marker}'}}, next: last"),
                      python("bits", "same", "stream_to: last"), python("last", "by_source", last), head="name: talk\n")
    assert said(server, "a") == ("bits:a payload:whole " if early else "payload:whole bits:a ")


def test_a_stage_streams_back_to_one_before_it(pipeline):
    functions = "project_payload: {guess: stages_for_test.for_guess, reply: stages_for_test.for_reply}"
    server = pipeline(python("talk", "talk_with_a_guesser", f"next: reply, stream_to: guess, {functions}"),
                      python("guess", "guess", "stream_to: talk"), python("reply", "same", "terminal: true"), head="name: talk\n")
    for _ in range(3):
        assert said(server, "one two three") == "['one!', 'one!!', 'one!!!'] ['']"
    # One that dies ends the request, and is there for the next.
    answer = talk(server, "die")
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "stage_died" and "guess" in answer.text
    wait_until(lambda: talk(server, "one").status_code == 200, "the stage has not come back")


def test_a_function_that_never_ends_by_itself_is_not_streamed_back_to(tmp_path):
    from test_omni import omni_command
    stages = [python("talk", "same", "next: reply, stream_to: guess"), python("guess", "guess", "stream_to: talk"), python("reply", "same", "terminal: true")]
    refused = omni_command("check", str(write(tmp_path / "p.yaml", *stages)))
    assert refused.returncode == 1 and "`guess` streams back to `talk`" in refused.stderr


def test_a_part_may_be_kept_from_a_stage(pipeline):
    server = pipeline(python("say", "spell", "stream_to: [encode, rest], project_payload: {rest: stages_for_test.nothing}"), ENCODE,
                      python("rest", "same", "terminal: true"))
    assert steps(say(server, "a b")) == [1, 2]


def test_a_request_ends_however_its_stage_does(pipeline):
    # sys.exit() ended the request's thread alone: the client waited until its deadline. So did what is said of a
    # StageError and cannot be sent; and one with code 0 was a speech without sound.
    server = pipeline(python("voice", "leave"), ENCODE)
    for text, message in {"leave": "stage `voice` failed", "odd": "an odd ?", "good": "it is good"}.items():
        answer = say(server, text)
        assert answer.status_code == 500 and answer.json()["error"]["message"] == message, answer.text
    assert len(say(server, "fine").content) == 960
    assert server.metric("portico_stage_process_restarts_total") == 0


def test_a_function_of_an_edge_that_leaves_fails_its_request(pipeline):
    server = pipeline(python("think", "ask", "next: [left, right]"), python("left", "same", "next: join"), python("right", "same", "next: join"),
                      python("join", "same", "wait_for: [left, right], merge_fn: stages_for_test.leave_between, terminal: true"), head="name: talk\n")
    body = {"model": "talk", "messages": [{"role": "user", "content": "a"}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 500 and "join" in answer.json()["error"]["message"], answer.text


def test_a_single_voice_needs_no_list(pipeline):
    server = pipeline(python("voice", "leave"), ENCODE)
    assert requests.get(server.url + "/v1/audio/voices", timeout=60).json()["voices"] == ["anna"]


def test_a_part_that_a_stage_has_made_wrongly_fails_its_request_alone(pipeline):
    # The pipeline ended the process, with all its requests and models, and the log did not name what was wrong.
    server = pipeline(python("voice", "mismade"), ENCODE)
    for text in "rate rates negative bytes floats clip reason tokens index shape dtype time seconds".split():
        answer = say(server, text)
        assert answer.status_code == 500 and answer.json()["error"]["message"] == "stage `voice` failed", (text, answer.text)
    assert "sample_rate must be an integer from 1 to 1000000, got 24000.5" in server.output()
    assert steps(say(server, "fine")) == [7]
    assert server.metric("portico_stage_process_restarts_total") == 0


def test_what_a_stage_hears_of_a_sound_that_is_not_there_fails_its_request_alone(pipeline):
    # The server looked it up in the chat's sounds without a check, and ended.
    server = pipeline(python("hear", "mishear", "next: think"), "name: think, factory_path: portico.engine, terminal: true")
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    body = {"messages": [{"role": "user", "content": [sound]}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 500 and "sound 8 of a chat with 1" in answer.json()["error"]["message"], answer.text
    assert health(server).status_code == 200


def test_what_a_pipeline_does_not_do_is_the_fault_of_the_request(pipeline):
    # It was a 500.
    server = pipeline("name: think, factory_path: portico.engine, terminal: true")
    answer = say(server, "hello")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "input", answer.text
    answer = requests.post(server.url + "/v1/audio/transcriptions", files={"file": ("a.wav", b"RIFF")}, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "file", answer.text


def test_what_a_stage_says_of_the_text_of_a_chat_names_the_messages(pipeline):
    # It named `audio`, which such a chat does not have.
    server = pipeline(python("think", "complain", "terminal: true"), head="name: talk\n")
    body = {"model": "talk", "messages": [{"role": "user", "content": "a"}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "messages", answer.text
    answer = requests.post(server.url + "/v1/chat/completions", json={**body, "modalities": ["text", "audio"]}, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "audio", answer.text


def test_a_pipeline_without_a_model_is_served_alone_by_serve_too(start, tmp_path):
    # The demo model was loaded beside it.
    server = start("--pipeline", str(write(tmp_path / "p.yaml", python("think", "ask", "terminal: true"), head="name: talk\n")))
    models = requests.get(server.url + "/v1/models", timeout=60).json()["data"]
    assert [model["id"] for model in models] == ["talk"]
    body = {"messages": [{"role": "user", "content": "hello"}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.json()["choices"][0]["message"]["content"] == "hello", answer.text


def test_a_voice_whose_rate_is_far_too_low_fails_its_request(pipeline):
    # Kilohertz instead of hertz: a second of sound became 17 minutes, in memory.
    server = pipeline(python("voice", "kilohertz"), ENCODE)
    answer = say(server, "hello")
    assert answer.status_code == 500 and "24 samples a second" in answer.json()["error"]["message"], answer.text
