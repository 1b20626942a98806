"""Stages on other hosts: what clients see while these work, die, stop, are away and are asked by strangers. The other host is
another program on this one."""
import concurrent.futures
import hmac
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

import pytest
import requests

from conftest import BINARY, ROOT, SANITIZED, WAIT_SECONDS, free_port, freeze, wait_until
from omni_stages import ENCODE, MOCK, children, health, open_files, python, say, steps, write

TOKEN = "a token of these tests"
GREETING = b"portico stage 2\n"


class StageHost:
    """A running `portico omni stage`. stop() checks that it ends well."""

    def __init__(self, file, *flags, port, token=""):
        self.port = port
        self.log = open(ROOT / f"build/test-stages-{port}.log", "w+")
        self.process = subprocess.Popen([str(BINARY), "omni", "stage", str(file), "--listen", f"127.0.0.1:{port}", *flags],
                                        stdout=self.log, stderr=subprocess.STDOUT, env={**os.environ, "PORTICO_STAGE_TOKEN": token})
        wait_until(lambda: "ready: stages" in self.output() or self.process.poll() is not None, self.output)
        assert self.process.poll() is None, self.output()

    def output(self):
        with open(self.log.name, errors="replace") as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.stop(-signal.SIGKILL)

    def stop(self, expected=0):
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)  # a test that froze it may have failed
        status = self.process.wait(60)
        self.log.close()
        os.unlink(self.log.name)
        assert status == expected


@pytest.fixture
def host():
    """host(file, *flags, port=…) -> StageHost"""
    hosts = []

    def make(*arguments, **keywords):
        hosts.append(StageHost(*arguments, **keywords))
        return hosts[-1]
    yield make
    for one in hosts:
        if not one.log.closed:
            one.stop()


@pytest.fixture
def remote(start, host, tmp_path):
    """remote(processes, *stages) -> (a server, the host of these processes, their file)"""
    def make(processes, *stages, token="", more=""):
        port = free_port()
        head = "processes: {" + ", ".join(f"{name}: {{host: '127.0.0.1:{port}'{more}}}" for name in processes) + "}\n"
        file = write(tmp_path / "p.yaml", *stages, head=head)
        stage_host = host(file, port=port, token=token)
        return start("--pipeline", str(file), "--engine", "mock"), stage_host, file
    return make


def command(verb, *words, token=""):
    return subprocess.run([str(BINARY), "omni", verb, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PORTICO_STAGE_TOKEN": token})


def lives(pid):
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_stages_on_another_host_answer_as_on_this_one(remote):
    server, host, _ = remote(["p1", "p2"], "name: talk, process: p1, " + MOCK % 1, ENCODE.replace("name: encode,", "name: encode, process: p2,"))
    assert len(children(host)) == 2 and not children(server)
    assert steps(say(server, "hello")) == [0, 327, 655, 983, 1310]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: steps(say(server, "hello")), range(64)))
    assert answers == [[0, 327, 655, 983, 1310]] * 64
    assert say(server, "fail-now").status_code == 500
    assert health(server).text == "ok\n"


def test_python_stages_on_another_host_are_as_on_this_one(remote):
    server, host, _ = remote(["shout", "voice"], python("shout", "shout", "factory: {mark: ' now'}, stream_to: [voice]"),
                             python("voice", "spell", "factory: {delay: 0.0}, stream_to: [encode]"), ENCODE)
    assert len(children(host)) == 2
    assert steps(say(server, "one two three")) == [1, 2, 3, 4]


def test_a_long_tensor_passes_through_another_host(remote):
    server, host, _ = remote(["p", "use"], python("make", "to_tensor", "factory: {megabytes: 16}, stream_to: [pass]"),
                             "name: pass, factory_path: portico.pass, process: p, stream_to: [use]", python("use", "from_tensor"), ENCODE)
    assert steps(say(server, "hello")) == [1000]
    pids = [server.process.pid, host.process.pid, *children(server), *children(host)]
    wait_until(lambda: not any("memfd" in name for pid in pids for name in open_files(pid)), "shared memory is left")


def test_what_a_stage_refuses_there_the_client_is_told_here(remote):
    server, host, _ = remote(["voice"], python("voice", "Hold"), ENCODE)
    refused = say(server, "refuse")
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "input"
    crashed = say(server, "crash")
    assert crashed.status_code == 500 and "secret" not in crashed.text
    wait_until(lambda: "RuntimeError: a secret" in host.output(), "its traceback is not in the log")
    assert "a secret" not in server.output()


def test_a_stage_that_is_killed_there_comes_back_and_its_silent_requests_begin_anew(remote, tmp_path):
    marker = tmp_path / "go"
    server, host, _ = remote(["voice"], python("voice", "Hold", f"factory: {{marker: '{marker}'}}, stream_to: [encode]"), ENCODE)
    before = len(open_files(server.process.pid)), len(open_files(host.process.pid))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        # Not the answers themselves, which would keep their connections.
        silent = [pool.submit(lambda: say(server, "hold").status_code) for _ in range(4)]
        begun = [pool.submit(lambda: say(server, "first hold", stream_format="sse").text) for _ in range(3)]
        server.wait_for("portico_stage_parts_total", 7 + 3)  # 7 texts, and the first sound of 3
        marker.touch()
        os.kill(children(host)[0], signal.SIGKILL)
        for answer in begun:
            text = answer.result(WAIT_SECONDS)
            assert "stage `voice` has ended" in text and '"type":"error"' in text and "127.0.0.1" not in text
        assert [answer.result(WAIT_SECONDS) for answer in silent] == [200] * 4
    assert server.metric("portico_stage_replays_total") == 4
    wait_until(lambda: health(server).text == "ok\n", "the stage is not back")
    assert say(server, "hello").status_code == 200
    assert len(children(host)) == 1
    wait_until(lambda: len(open_files(server.process.pid)) <= before[0], "descriptors are left here")
    wait_until(lambda: len(open_files(host.process.pid)) <= before[1], "descriptors are left there")


def test_a_host_that_is_killed_is_reached_again_when_it_is_back(remote, host):
    server, first, file = remote(["voice"], python("voice", "Hold"), ENCODE)
    pids = children(first)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = pool.submit(lambda: say(server, "first hold", stream_format="sse").text)
        server.wait_for("portico_stage_parts_total", 2)
        first.kill()
        assert "stage `voice` has ended" in begun.result(WAIT_SECONDS)
    wait_until(lambda: not any(lives(pid) for pid in pids), "stage processes outlive their host")
    wait_until(lambda: say(server, "hello").status_code == 503, "the host is away and nobody is told")
    answer = say(server, "hello")
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "stage_died"
    assert "stage `voice`" in answer.json()["error"]["message"] and "127.0.0.1" not in answer.text
    assert health(server).status_code == 200 and health(server).text.startswith("degraded: stage voice: 1 of 1 processes")
    host(file, port=first.port)
    wait_until(lambda: health(server).text == "ok\n", "the host is not reached again")
    assert say(server, "hello").status_code == 200


@pytest.mark.parametrize("which", ["host", "stage"])
def test_one_that_stops_there_is_left_within_the_stall_timeout(remote, which):
    """SIGSTOP: connections stand, and nothing comes."""
    server, host, _ = remote(["voice"], python("voice", "Hold", "stall_timeout_s: 8, replay: false, stream_to: [encode]"), ENCODE)
    stopped = host.process.pid if which == "host" else children(host)[0]
    freeze(stopped)
    start = time.monotonic()
    answer = say(server, "hello")
    assert answer.status_code == 503 and "stage `voice`" in answer.json()["error"]["message"]
    assert SANITIZED or time.monotonic() - start < 28  # without a stall_timeout_s it would be half a minute
    if which == "host":
        assert health(server).text.startswith("degraded: stage voice")
        os.kill(stopped, signal.SIGCONT)
    wait_until(lambda: say(server, "hello").status_code == 200, "the stage is not back")
    wait_until(lambda: len(children(host)) == 1, "the former process is left")


def test_a_stage_that_sends_garbage_there_is_ended_as_here(remote):
    server, _, _ = remote(["voice"], python("voice", "Garbage", "replay: false, stream_to: [encode]"), ENCODE)
    for number, kind in enumerate(("noise", "empty", "stranger", "numbers", "long"), 1):
        answer = say(server, kind)
        assert answer.status_code == 503 and "stage `voice`" in answer.json()["error"]["message"] and "127.0.0.1" not in answer.text
        wait_until(lambda: say(server, "fine").status_code == 200, "the stage is not back")
        if kind != "long":  # its own host ends that one
            assert server.metric("portico_stage_garbage_total") == number


def test_a_client_that_does_not_read_stops_its_own_stage_there_and_no_other(remote):
    server, host, _ = remote(["voice"], python("voice", "Hold"), ENCODE)
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
    assert say(server, "hello").status_code == 200


def test_nothing_is_left_there_when_the_server_is_killed(remote):
    server, host, _ = remote(["voice"], python("voice", "Hold"), ENCODE)
    assert len(children(host)) == 1
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    server.stop = lambda: None
    server.log.close()
    os.unlink(server.log.name)
    wait_until(lambda: not children(host), "the stage outlives its server")
    wait_until(lambda: not any("memfd" in name for name in open_files(host.process.pid)), "shared memory is left")


def test_replicas_on_another_host_take_over(remote):
    server, host, _ = remote(["voice"], python("voice", "spell", "factory: {delay: 0.02}, stream_to: [encode]"), ENCODE, more=", num_replicas: 2")
    assert len(children(host)) == 2
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(say, server, "one two three", stream_format="sse") for _ in range(40)]
        os.kill(children(host)[0], signal.SIGKILL)
        texts = [answer.result(WAIT_SECONDS).text for answer in answers]
    done = sum("speech.audio.done" in text for text in texts)
    told = sum("stage `voice` has ended" in text for text in texts)
    assert done + told == 40 and done >= 20
    wait_until(lambda: health(server).text == "ok\n", "the replica is not back")


def test_replicas_on_two_hosts_stand_in_for_each_other(start, host, tmp_path):
    ports = free_port(), free_port()
    file = write(tmp_path / "p.yaml", "name: talk, process: p, " + MOCK % 1, ENCODE,
                 head=f"processes: {{p: {{host: ['127.0.0.1:{ports[0]}', '127.0.0.1:{ports[1]}']}}}}\n")
    hosts = [host(file, port=port) for port in ports]
    server = start("--pipeline", str(file), "--engine", "mock")
    assert [len(children(one)) for one in hosts] == [1, 1]
    hosts[0].kill()
    wait_until(lambda: health(server).text.startswith("degraded: stage talk: 1 of 2 processes"), "nobody says that a host is away")
    for _ in range(8):
        assert steps(say(server, "hello")) == [0, 327, 655, 983, 1310]
    host(file, port=ports[0])
    wait_until(lambda: health(server).text == "ok\n", "the host is not reached again")


def test_both_ends_must_know_the_token(remote, monkeypatch):
    monkeypatch.setenv("PORTICO_STAGE_TOKEN", TOKEN)
    server, host, file = remote(["p1"], "name: talk, process: p1, " + MOCK % 1, ENCODE, token=TOKEN)
    assert steps(say(server, "hello")) == [0, 327, 655, 983, 1310]
    for token in ("", "another token of the tests"):
        refused = command("check", file, token=token)
        assert refused.returncode == 1 and "the two ends have different tokens" in refused.stderr, refused.stderr
    wait_until(lambda: "is refused: the two ends have different tokens" in host.output(), "the host is silent")
    assert TOKEN not in host.output() + server.output()
    short = command("check", file, token="short")
    assert short.returncode == 1 and "at least 16 characters" in short.stderr


def test_without_a_token_only_loopback_is_served_and_used(tmp_path):
    stages = "name: talk, process: p, " + MOCK % 1, ENCODE
    file = write(tmp_path / "p.yaml", *stages, head="processes: {p: {host: '10.0.0.2:7000'}}\n")
    for words in ((file, "--listen", "0.0.0.0:0"), (file, "--listen", "[::]:0")):
        refused = command("stage", *words)
        assert refused.returncode == 1 and "there is no token" in refused.stderr, refused.stderr
    refused = command("check", file)
    assert refused.returncode == 1 and "there is no token" in refused.stderr


def test_hosts_refuse_what_their_file_does_not_say(start, host, tmp_path):
    port = free_port()
    head = f"processes: {{p: {{host: '127.0.0.1:{port}'}}}}\n"
    file = write(tmp_path / "p.yaml", "name: talk, process: p, " + MOCK % 1, ENCODE, head=head)
    stage_host = host(file, port=port)
    for name, stages, why in (("other.yaml", ("name: talk, process: p, " + MOCK % 2, ENCODE), "defines the stages talk differently"),
                              ("more.yaml", ("name: walk, process: p, " + MOCK % 1, ENCODE), "stages walk are not served")):
        refused = command("check", write(tmp_path / name, *stages, head=head))
        assert refused.returncode == 1 and why in refused.stderr, refused.stderr
    assert command("check", file).returncode == 0
    # The file names one process, and a server has it.
    start("--pipeline", str(file), "--engine", "mock")
    assert len(children(stage_host)) == 1
    refused = command("check", file)
    assert refused.returncode == 1 and "all 1 processes `p` of this host are in use" in refused.stderr
    for words, why in (((file,), "--listen: needs an address"), ((file, "--listen", "here"), "is not an address and port"),
                       ((file, "--listen", "127.0.0.1:0", "--stage", "nobody"), "has no such stage"),
                       ((file, "--listen", "127.0.0.1:0", "--stage", "encode"), "runs in the server's own process"),
                       ((file, "--listen", "127.0.0.1:0", "--frobnicate"), "unknown flag --frobnicate"),
                       ((file, "--listen", "127.0.0.1:0", "--ssl-keyfile", "x"), "both or none")):
        refused = command("stage", *words)
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr


def greet(port, token=""):
    """A connection that has proved the token."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    hello = b""
    while len(hello) < len(GREETING) + 32:
        hello += connection.recv(len(GREETING) + 32 - len(hello))
    random = os.urandom(32)
    connection.sendall(GREETING + random + hmac.digest(token.encode(), b"server" + hello[len(GREETING):] + random, "sha256"))
    verdict = b""
    while len(verdict) < 33:
        verdict += connection.recv(33 - len(verdict))
    assert verdict == b"+" + hmac.digest(token.encode(), b"stage" + hello[len(GREETING):] + random, "sha256")
    return connection


def frame(message, behind=b""):
    return struct.pack(">II", len(message), len(behind)) + message + behind


def text_message(kind, text):
    data = text.encode()
    return b"\0" + bytes((0x93, kind, 0, 0xDB)) + struct.pack(">I", len(data)) + data


def ended(connection):
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    connection.close()
    return True


def test_strangers_and_garbage_harm_nobody(remote):
    server, host, file = remote(["p1"], "name: talk, process: p1, " + MOCK % 1, ENCODE, more=", num_replicas: 2")
    before = len(open_files(host.process.pid))
    for says in (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"portico stage 1\n", GREETING + bytes(64), b"\xff" * 1000, b""):
        with socket.create_connection(("127.0.0.1", host.port), timeout=60) as stranger:
            stranger.sendall(says)
            stranger.shutdown(socket.SHUT_WR)
            assert ended(stranger)
    for says in (b"\xff" * 64, frame(b"\0" * 9), frame(text_message(1, "{}")), frame(text_message(1, "[")), frame(text_message(8, "{}")),
                 struct.pack(">II", 5, 0xFFFFFFFF)):
        connection = greet(host.port)
        connection.sendall(says)
        assert ended(connection)
    assert "starts for" in host.output() and len(children(host)) == 2  # of the server alone
    assert steps(say(server, "hello")) == [0, 327, 655, 983, 1310]
    wait_until(lambda: len(open_files(host.process.pid)) <= before, "descriptors are left")


def test_a_server_that_says_what_is_not_for_stages_loses_its_process(host, tmp_path):
    """Profiles would name folders of the server's host; a second list of stages would be another's."""
    port = free_port()
    file = write(tmp_path / "p.yaml", "name: talk, process: p1, " + MOCK % 1, ENCODE, head=f"processes: {{p1: {{host: '127.0.0.1:{port}'}}}}\n")
    host = host(file, port=port)
    stages = [{"name": "talk", "factory_path": "portico.mock", "factory": {"chunks": 5, "delay_ms": 1, "text": False}, "next": ["encode"],
               "python_behind": False}]
    for bad in (text_message(8, '{"run_id": "x", "event_dir": "/tmp/x"}'), text_message(1, "{}"), b"\0\xc1", b"\1"):
        wait_until(lambda: not children(host), "a process is left")
        connection = greet(host.port)
        connection.sendall(frame(text_message(1, json.dumps({"stages": stages}))))
        ready = b""
        while b"max_running" not in ready:
            ready += (piece := connection.recv(65536))
            assert piece, ready
        connection.sendall(frame(bad))
        assert ended(connection)
    wait_until(lambda: not children(host), "a process is left")


def test_tls_hides_what_passes(start, host, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out",
                    "cert.pem", "-days", "2", "-subj", "/CN=stage", "-addext", "subjectAltName=IP:127.0.0.1"], cwd=tmp_path, check=True,
                   capture_output=True)
    port = free_port()
    stages = python("make", "to_tensor", "factory: {megabytes: 16}, stream_to: [pass]"), \
        "name: pass, factory_path: portico.pass, process: p, stream_to: [use]", python("use", "from_tensor"), ENCODE

    def head(tls):
        return f"processes: {{p: {{host: '127.0.0.1:{port}'{tls}}}}}\n"
    file = write(tmp_path / "p.yaml", *stages, head=head(f", tls: true, tls_ca: '{tmp_path}/cert.pem'"))
    host(file, "--ssl-certfile", f"{tmp_path}/cert.pem", "--ssl-keyfile", f"{tmp_path}/key.pem", port=port)
    server = start("--pipeline", str(file), "--engine", "mock")
    assert steps(say(server, "hello")) == [1000]
    plain = command("check", write(tmp_path / "plain.yaml", *stages, head=head("")))
    assert plain.returncode == 1 and f"127.0.0.1:{port}" in plain.stderr
    unknown = command("check", write(tmp_path / "unknown.yaml", *stages, head=head(", tls: true")))
    assert unknown.returncode == 1 and "certificate" in unknown.stderr
