"""The schedulers' sockets over TCP (`--sglang-transport tcp`): who holds the ports, and who may connect to them."""
import errno
import json
import os
import re
import signal
import socket
import sys
import time

import pytest
import requests
import zmq
from conftest import BRIEF, ROOT, wait_until

from test_sglang import flags, generate, kill_engine
from test_sglang_controls import short
from test_sglang_lives import running
from test_sglang_starts import MODEL, refusal

sys.path.insert(0, str(ROOT / "python/portico"))
import sglang_sockets  # noqa: E402

TCP = ("--sglang-transport", "tcp")


def addresses(facts):
    return json.loads(facts.read_text())["facts"]["addresses"]


def host_and_port(address):
    host, port = re.fullmatch(r"tcp://([0-9.]+):(\d+)", address).groups()
    return host, int(port)


def attached(start, facts):
    return start("--engine", "sglang", "--attach", facts, *MODEL)


def end(server):
    server.stop()
    server.stop = lambda: None


def test_requests_and_controls_go_over_tcp(start):
    server = start(*flags(portico=TCP))
    answer = generate(server, input_ids=[514, 965, 379], sampling_params={"max_new_tokens": 5, "ignore_eos": True}).json()
    assert answer["output_ids"] == [514, 965, 379, 514, 965]
    assert requests.post(server.url + "/flush_cache", timeout=60).status_code == 200
    response = requests.post(server.url + "/generate", stream=True, timeout=60, json={
        "text": "one", "stream": True, "sampling_params": {"max_new_tokens": 1900, "ignore_eos": True}})
    lines = response.iter_lines()
    next(lines)
    response.close()
    wait_until(lambda: requests.post(server.url + "/flush_cache", timeout=60).status_code == 200, "it is not aborted")


def test_an_engine_that_is_started_again_is_reached_again(start):
    server = start(*flags(portico=(*TCP, "--restart-engine")))
    kill_engine(server)
    wait_until(lambda: generate(server, text="x").status_code == 503, "its death goes unnoticed")
    wait_until(lambda: short(server).status_code == 200, "it does not come back")


def test_the_ranks_of_an_engine_are_reached_over_tcp(start):
    server = start(*flags("--dp-size", "2", portico=TCP))
    for rank in range(2):
        answer = generate(server, text="one two", routed_dp_rank=rank, sampling_params={"max_new_tokens": 2})
        assert answer.json()["meta_info"]["dp_rank"] == rank
    assert requests.post(server.url + "/flush_cache", timeout=60).status_code == 200


def test_one_front_end_after_the_other_joins_and_the_ports_stay_held_between_them(start, tmp_path):
    with running(tmp_path, "--transport", "tcp") as facts:
        for _ in range(2):
            server = attached(start, facts)
            assert short(server).status_code == 200
            end(server)
            for name in ("scheduler_input", "tokenizer", "detokenizer"):
                host, port = host_and_port(addresses(facts)[name])
                assert host == "127.0.0.1"
                with socket.socket() as taker, pytest.raises(OSError) as refused:
                    taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    taker.bind(("0.0.0.0", port))
                    taker.listen()
                assert refused.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_second_front_end_does_not_take_the_sockets_of_the_first(start, tmp_path, transport):
    # It waited for a minute, and what the schedulers connected to was gone.
    with running(tmp_path, "--transport", transport) as facts:
        server = attached(start, facts)
        assert "another front end serves its sockets" in refusal("--attach", facts, "--drain-timeout", "0")
        assert short(server).status_code == 200
        server.process.kill()  # no farewell
        server.process.wait()
        server.stop = lambda: None
        assert short(attached(start, facts)).status_code == 200


def test_a_front_end_that_comes_before_the_last_has_ended_waits_for_it(start, tmp_path):
    # It ended at once while the last one's requests were finishing.
    with running(tmp_path) as facts:
        last = attached(start, facts)
        later = start("--engine", "sglang", "--attach", facts, *MODEL, "--drain-timeout", "3600", wait=False)
        wait_until(lambda: "another front end serves SGLang's sockets; waiting up to 3610 s" in later.output(), later.output)
        assert short(last).status_code == 200
        end(last)
        later.wait_ready()
        assert short(later).status_code == 200
        assert later.output().count("another front end serves") == 1


@pytest.mark.parametrize("busy_first", [True, False])
def test_an_engine_that_cannot_be_joined_ends_the_wait_for_another(start, tmp_path, busy_first):
    # The error came after the hour, when the wait for the other engine's sockets had ended too.
    with running(tmp_path) as facts:
        last = attached(start, facts)
        missing = tmp_path / "missing.json"
        files = (facts, missing) if busy_first else (missing, facts)
        said = refusal("--attach", ",".join(map(str, files)), "--drain-timeout", "3600")
        assert f"cannot read {missing}" in said
        assert short(last).status_code == 200


def as_nobody(address, seconds, kind=zmq.PULL):
    """Connects as another user, for so long or until it gets SIGTERM; then it says how many messages came."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        count, told = 0, []
        signal.signal(signal.SIGTERM, lambda *_: told.append(True))
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            stranger = zmq.Context().socket(kind)
            stranger.connect(address)
            until = time.monotonic() + seconds
            os.write(writer, b"connecting\n")
            while not told and time.monotonic() < until:
                count += bool(stranger.poll(10) and stranger.recv())
            os.write(writer, f"got {count}\n".encode())
        finally:
            os._exit(0)
    os.close(writer)
    return child, os.fdopen(reader)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two users")
def test_a_process_of_another_user_gets_no_request_and_nothing_is_lost(start, tmp_path):
    with running(tmp_path, "--transport", "tcp") as facts:
        server = attached(start, facts)
        assert short(server).status_code == 200  # the scheduler's connections are made, which the stranger could prevent
        child, told = as_nobody(addresses(facts)["scheduler_input"], 200)
        with told:
            assert told.readline() == "connecting\n"
            for _ in range(20 if BRIEF else 100):
                assert short(server).status_code == 200
            # It is looked up again at each of its attempts; on a busy machine the first ones tell nothing.
            wait_until(lambda: "a process of another user has connected" in server.output(), "the log is silent")
            os.kill(child, signal.SIGTERM)
            assert told.readline() == "got 0\n"
        os.waitpid(child, 0)
        end(server)
        assert short(attached(start, facts)).status_code == 200


def test_ports_that_nobody_holds_and_addresses_of_the_network_are_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("SGLANG_ZMQ_ALLOWED_PEERS", raising=False)
    with running(tmp_path, "--transport", "tcp") as facts:
        told = json.loads(facts.read_text())
        change = lambda **more: facts.write_text(json.dumps({**told, "facts": {**told["facts"], **more}}))
        change(listeners="")
        assert "nobody holds tcp://127.0.0.1:" in refusal("--attach", facts)
        change(addresses={**told["facts"]["addresses"], "tokenizer": "tcp://10.0.0.1:7000"})
        assert "SGLANG_ZMQ_ALLOWED_PEERS lists the IP addresses that may connect" in refusal("--attach", facts)
        assert "this machine's own schedulers too (10.0.0.1)" in refusal("--attach", facts)
        change(addresses={**told["facts"]["addresses"], "tokenizer": "udp://127.0.0.1:7000"})
        assert "ipc and tcp are known" in refusal("--attach", facts)


def test_a_transport_that_cannot_be_had_is_refused(tmp_path):
    assert "--sglang-transport shm is not available" in refusal("--sglang-transport", "shm")
    assert "give its launcher --transport tcp" in refusal(*TCP, "--attach", tmp_path / "facts.json")


def test_what_waits_at_the_ports_is_sent_away_only_while_no_front_end_has_them(tmp_path, monkeypatch):
    """Schedulers that find no front end connect anew every 30 seconds: the queue would fill up in hours."""
    monkeypatch.setattr(sglang_sockets, "DRAIN_SECONDS", 0)
    listeners = sglang_sockets.listeners_for(str(tmp_path), "tcp", {name: "ipc://x" for name in sglang_sockets.HANDED})
    place = host_and_port(listeners.addresses["tokenizer"])
    with socket.create_connection(place) as waiting:
        listeners.keep()
        waiting.settimeout(60)
        assert waiting.recv(1) == b""
    with socket.socket(socket.AF_UNIX) as front_end:
        front_end.connect(listeners.path)
        line, handed, *_ = socket.recv_fds(front_end, 1000, 8)
        assert json.loads(line) == {"event": "sockets"} and len(handed) == 3
        with socket.create_connection(place) as waiting:
            listeners.keep()
            taken = socket.socket(fileno=handed[1])
            taken.setblocking(True)
            peer, _ = taken.accept()
            peer.sendall(b"x")
            assert waiting.recv(1) == b"x"
            peer.close()
            taken.close()
    with socket.socket(socket.AF_UNIX) as later:
        later.connect(listeners.path)
        assert json.loads(socket.recv_fds(later, 1000, 8)[0]) == {"event": "sockets"}


def test_ports_are_held_where_an_engine_has_some_on_this_machine(tmp_path):
    unix = {name: f"ipc://{tmp_path}/{name}" for name in (*sglang_sockets.HANDED, "rpc")}
    assert not sglang_sockets.listeners_for(str(tmp_path), "ipc", unix).addresses
    network = {name: "tcp://10.0.0.1:7000" for name in unix}
    assert not sglang_sockets.listeners_for(str(tmp_path), "tcp", network).addresses
    for host in ("127.0.0.1", "localhost"):
        own = {name: f"tcp://{host}:0" for name in unix}  # SGLang's own choice: all are held, also what no front end serves
        held = sglang_sockets.listeners_for(str(tmp_path), "ipc", own).addresses
        assert set(held) == set(own) and all(address.startswith("tcp://127.0.0.1:") for address in held.values())
