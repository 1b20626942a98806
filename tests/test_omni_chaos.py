"""Stages that are killed, stopped, slowed and talk nonsense under many clients: requests that do not need them succeed, the others
are answered or told, the stage comes back, and nothing is left."""
import base64
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import threading
import time

import pytest
import requests

from conftest import EXTENDED, SANITIZED, WAIT_SECONDS, free_port, wait_until
from omni_stages import STAGES, children, health, open_files, pipeline, python, write  # noqa: F401 (pipeline is a fixture)
from test_omni import hear, needs_speech
from test_omni_remote import host  # noqa: F401 (a fixture)

CLIENTS = 32 if EXTENDED else 8
# Between two requests of a client: it is to have one under way when a stage dies, not to fill the processors, and least of all while a
# timeout passes.
PAUSE_S = 0 if EXTENDED else 0.1
STALL_PAUSE_S = 0 if EXTENDED else 1
SPEECH_PAUSE_S = 0 if EXTENDED else 0.4  # where each sound is really made, and heard
STALL_S = 16 if SANITIZED else 4
WORDS = "w0 w1 w2 w3 w4 "
LONG = "a long word " * 3300  # goes through shared memory


def speech(server, number, text=None, sound=5 * 960, **fields):
    """What became of it: "whole", "cut", or what the client was told. Every other one is events."""
    events = number % 2 == 1
    body = {"input": text or (LONG if number % 3 == 2 else "hello"), "response_format": "pcm", **fields}
    if events:
        body["stream_format"] = "sse"
    try:
        answer = requests.post(server.url + "/v1/audio/speech", json=body, timeout=WAIT_SECONDS)
    except requests.exceptions.ChunkedEncodingError:
        return "cut"
    if answer.status_code != 200:
        return answer.text
    got = answer.content
    if events:
        told = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        if told[-1]["type"] != "speech.audio.done":
            return json.dumps(told[-1])
        got = b"".join(base64.b64decode(event["audio"]) for event in told[:-1])
    return "whole" if len(got) == sound or (sound is None and got) else f"{len(got)} bytes of sound"


def loud_speech(server, number, text=None):
    return speech(server, number, text, 5 * 48000)


def chat(server, number, text="hello"):
    """The same of a chat; every other one is streamed."""
    body = {"model": "talk", "messages": [{"role": "user", "content": text}], "stream": number % 2 == 1}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=WAIT_SECONDS)
    if answer.status_code != 200:
        return answer.text
    if not body["stream"]:
        said = answer.json()["choices"][0]["message"]["content"]
    else:
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        events = [json.loads(line) for line in lines if line != "[DONE]"]
        if "error" in events[-1] or lines[-1] != "[DONE]":
            return json.dumps(events[-1])
        said = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
    return "whole" if said == WORDS else f"a chat of {said!r}"


class Load:
    """Clients that ask all the time, each for one of these in turn, and what became of their requests."""

    def __init__(self, server, *asks, pause_s=PAUSE_S):
        self.server, self.over, self.pause_s = server, threading.Event(), pause_s
        self.outcomes = {ask: [] for ask in asks}
        self.threads = [threading.Thread(target=self._client, args=(asks[i % len(asks)], i)) for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _client(self, ask, number):
        while not self.over.is_set():
            try:
                outcome = ask(self.server, number)
            except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
                outcome = repr(error)
            self.outcomes[ask].append(outcome)
            number += 1
            self.over.wait(self.pause_s)

    @contextlib.contextmanager
    def seldom(self):
        """They ask less often within."""
        usual, self.pause_s = self.pause_s, STALL_PAUSE_S
        yield
        self.pause_s = usual

    def progress(self, more=CLIENTS // 2):
        """A function that tells whether each kind has got so many more whole answers since now."""
        before = {ask: outcomes.count("whole") for ask, outcomes in self.outcomes.items()}
        return lambda: all(outcomes.count("whole") >= before[ask] + more for ask, outcomes in self.outcomes.items())

    def wait_progress(self, more=CLIENTS // 2):
        wait_until(self.progress(more), lambda: f"nothing goes on: {[set(outcomes[-20:]) for outcomes in self.outcomes.values()]}")

    def check(self, stage, touched):
        """`touched`: the kinds of requests that need the stage."""
        for ask, outcomes in self.outcomes.items():
            wrong = [one for one in outcomes if one != "whole" and not (ask in touched and (one == "cut" or f"stage `{stage}`" in one))]
            assert not wrong, (ask.__name__, wrong[:3], len(wrong))
            assert outcomes.count("whole") > 0


def processes_of(pid):
    """Those that it has started and has not yet buried."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"PPid:\t{pid}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


def shared_memory(pid):
    """What it has open or mapped."""
    maps = []
    with contextlib.suppress(OSError):
        maps = [line for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "/memfd:" in line]
    return maps + [name for name in open_files(pid) if "memfd" in name]


class Before:
    """What the programs hold before anything is asked."""

    def __init__(self, server, *hosts):
        self.server = server
        self.programs = [one.process.pid for one in (server, *hosts)]
        self.files = {pid: len(open_files(pid)) for pid in self.programs}
        self.processes = {pid: len(processes_of(pid)) for pid in self.programs}

    def left(self):
        """What they hold beyond that."""
        names = ("portico_pipeline_requests_running", "portico_requests_running", "portico_stage_requests")
        left = [f"{name} is {value}" for name in names if (value := self.server.metric(name))]
        for pid, count in self.files.items():
            if len(files := open_files(pid)) > count:
                left.append(f"{len(files)} files after {count}: {sorted(files)}")
        for pid, count in self.processes.items():
            if len(processes := processes_of(pid)) > count:  # one that only started the others may have been there before
                left.append(f"{len(processes)} processes after {count}")
            for one in (pid, *processes):
                left += shared_memory(one)
        return left

    def wait(self):
        wait_until(lambda: not self.left(), self.left)


def by_name(owner, names):
    """Pids of its stage processes, which start one after the other, by their names."""
    return dict(zip(sorted(names), children(owner), strict=True))


class Victim:
    """One of a server's stage processes. `pids`: of all of them, by name."""

    def __init__(self, server, owner, name, pids):
        self.server, self.owner, self.name, self.pids = server, owner, name, pids

    def pid(self):
        def lives():
            now = set(children(self.owner))
            if self.pids[self.name] not in now and len(new := now - set(self.pids.values())) == 1:
                self.pids[self.name] = new.pop()
            return self.pids[self.name] in now
        wait_until(lives, f"{self.name} has no process")
        return self.pids[self.name]

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):  # it was too slow, and has just been ended
            os.kill(self.pid(), number)

    @contextlib.contextmanager
    def ends(self):
        """What is done within ends it, and it comes back."""
        before = self.server.metric("portico_stage_process_restarts_total", process=self.name)
        yield
        wait_until(lambda: self.server.metric("portico_stage_process_restarts_total", process=self.name) > before, f"{self.name} has not ended")
        self.wait_back()

    def wait_back(self):
        wait_until(lambda: health(self.server).text == "ok\n", lambda: f"{self.name} is not back: {health(self.server).text}")
        self.pid()

    def slow(self, progress):
        """It has half of its time, in which the clients go on."""
        deadline = time.time() + WAIT_SECONDS
        while not progress():
            assert time.time() < deadline, f"nothing goes on while {self.name} is slow"
            pid = self.pid()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.05)
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
        self.wait_back()


def storm(server, victim, load, odd):
    """Kills, stops and slows it; `odd` asks for what makes it send garbage, where it can."""
    load.wait_progress()
    with victim.ends():
        victim.signal(signal.SIGKILL)
    load.wait_progress()
    victim.slow(load.progress())
    if odd:
        with victim.ends():
            told = odd(server, 0, "odd")
            assert f"stage `{victim.name}`" in told or told == "cut", told
        load.wait_progress()
    with load.seldom(), victim.ends():
        victim.signal(signal.SIGSTOP)  # nobody wakes it
    load.wait_progress()


def all_answered(server, *asks):
    """No place in a stage is lost: each of many requests at once is answered."""
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        outcomes = [pool.submit(ask, server, number) for number in range(2 * CLIENTS) for ask in asks]
        assert {outcome.result() for outcome in outcomes} == {"whole"}


HEAD = "name: talk\n"
FIRST = "name: first, factory_path: portico.pass, route_fn: portico.first_by_task, stream_to: [think, say]"
REPLY = "name: reply, factory_path: portico.pass, terminal: true"
ENCODE = "name: encode, {more} factory_path: portico.encode, terminal: true"


def mock(name, target, factory, more):
    return f"name: {name}, {more} factory_path: portico.mock, factory: {{chunks: 5, {factory}}}, stream_to: [{target}]"


NATIVE = ["encode", "say", "think"]


def native(victim):
    """Stages in processes of their names, of which one has a stall timeout."""
    more = {name: f"process: {name}," + (f" stall_timeout_s: {STALL_S}," if name == victim else "") for name in NATIVE}
    odd = "delay_ms: 2, fault: garbage, fault_on: odd"
    return [FIRST, mock("think", "reply", f"audio: false, {odd}", more["think"]), REPLY,
            mock("say", "encode", f"text: false, {odd}", more["say"]), ENCODE.format(more=more["encode"])]


def check_storm(server, victim, before, odd, speak):
    """The stages of speech touch no chat, and the reverse."""
    touched = chat if victim.name == "think" else speak
    with Load(server, speak, chat) as load:
        storm(server, victim, load, odd)
    load.check(victim.name, [touched])
    all_answered(server, speak, chat)
    before.wait()


@pytest.mark.parametrize("name", ["say", "encode", "think"])
def test_a_process_in_a_storm_harms_no_request_that_does_not_need_it(pipeline, name):
    server = pipeline(*native(name), head=HEAD)
    before = Before(server)
    victim = Victim(server, server, name, by_name(server, NATIVE))
    check_storm(server, victim, before, {"say": speech, "think": chat}.get(name), speech)


@pytest.mark.parametrize("name", ["say", "same", "think"])
def test_a_python_stage_in_a_storm_harms_no_request_that_does_not_need_it(pipeline, name):
    """A class whose sound is in shared memory, a function, and a scheduler as sglang-omni has them."""
    def stall(of):
        return f", stall_timeout_s: {STALL_S}" if of == name else ""
    scheduler = f"factory_path: schedulers_for_test.talk, env: {{PYTHONPATH: '{STAGES}'}}, factory: {{chunks: 5}}, stream_to: [reply]"
    server = pipeline(FIRST, f"name: think, {scheduler}" + stall("think"), REPLY, python("say", "Loud", "stream_to: [same]" + stall("say")),
                      python("same", "same", "stream_to: [encode]" + stall("same")), ENCODE.format(more=""), head=HEAD)
    before = Before(server)
    victim = Victim(server, server, name, by_name(server, ["say", "same", "think"]))
    check_storm(server, victim, before, loud_speech if name == "say" else None, loud_speech)


@pytest.mark.parametrize("name", ["say", "encode", "think"])
def test_a_process_on_another_host_in_a_storm_harms_no_request_that_does_not_need_it(start, host, tmp_path, name):  # noqa: F811
    port = free_port()
    hosts = ", ".join(f"{one}: {{host: '127.0.0.1:{port}'}}" for one in NATIVE)
    file = write(tmp_path / "p.yaml", *native(name), head=f"{HEAD}processes: {{{hosts}}}\n")
    there = host(file, port=port)
    server = start("--pipeline", str(file), "--engine", "mock")
    before = Before(server, there)
    victim = Victim(server, there, name, by_name(there, NATIVE))
    check_storm(server, victim, before, {"say": speech, "think": chat}.get(name), speech)


@pytest.mark.parametrize("fault", ["fail", "never", "slow"])
def test_a_stage_in_the_servers_process_that_misbehaves_harms_only_the_requests_that_it_does_it_to(pipeline, fault):
    factory = "text: false, " + ("delay_ms: 50" if fault == "slow" else f"delay_ms: 2, fault: {fault}, fault_on: odd")
    server = pipeline(FIRST, mock("think", "reply", "audio: false, delay_ms: 2", ""), REPLY,
                      mock("say", "encode", factory, f"stall_timeout_s: {STALL_S},"), ENCODE.format(more=""), head=HEAD)
    before = Before(server)
    with Load(server, speech, chat) as load:
        load.wait_progress()
        if fault != "slow":
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                told = list(pool.map(lambda number: speech(server, number, "odd"), range(CLIENTS)))
            assert all('"error"' in one for one in told), told
            assert fault == "fail" or all("stage `say`" in one for one in told), told
        load.wait_progress()
    load.check("", [])
    all_answered(server, speech, chat)
    before.wait()


@needs_speech
def test_each_stage_of_speech_may_die_and_only_its_requests_notice(pipeline):
    kinds = {"decode": "route_fn: portico.first_by_task, stream_to: [hear, sentences]", "hear": "factory: {recognizers: 1}, stream_to: [transcript]",
             "sentences": "stream_to: [say]", "say": "factory: {voice: kal16}, stall_timeout_s: 8, stream_to: [encode]", "encode": "terminal: true"}
    stages = [f"name: {name}, process: {name}, factory_path: portico.{name}, {more}" for name, more in kinds.items()]
    server = pipeline(*stages, "name: transcript, factory_path: portico.pass, terminal: true")
    before = Before(server)
    text = "Good morning."
    clip = requests.post(server.url + "/v1/audio/speech", json={"input": text}, timeout=WAIT_SECONDS).content
    sound = len(requests.post(server.url + "/v1/audio/speech", json={"input": text, "response_format": "pcm"}, timeout=WAIT_SECONDS).content)
    assert hear(server, clip).json()["text"]

    def speak(server, number):
        return speech(server, number, text, sound)

    # The whole language takes PocketSphinx ten times as long.
    grammar = {} if EXTENDED else {"stage_params": json.dumps({"hear": {"grammar": "#JSGF V1.0;\ngrammar greets;\npublic <greets> = good morning;"}})}

    def transcribe(server, _):
        answer = requests.post(server.url + "/v1/audio/transcriptions", files={"file": ("a.wav", clip)}, data=grammar, timeout=WAIT_SECONDS)
        return "whole" if answer.status_code == 200 and answer.json()["text"] else answer.text

    pids = by_name(server, kinds)
    needed = {"decode": [speak, transcribe], "hear": [transcribe]}
    for name in kinds:
        victim = Victim(server, server, name, pids)
        with Load(server, speak, speak, speak, transcribe, pause_s=SPEECH_PAUSE_S) as load:  # who listens is slow
            load.wait_progress(2)
            with victim.ends():
                victim.signal(signal.SIGKILL)
            load.wait_progress(2)
            if name == "say":
                with load.seldom(), victim.ends():
                    victim.signal(signal.SIGSTOP)
                load.wait_progress(2)
        load.check(name, needed.get(name, [speak]))
    all_answered(server, speak)
    assert [transcribe(server, number) for number in range(3)] == ["whole"] * 3
    before.wait()
