"""Clients that vanish: the engine's work stops, nothing is left behind."""
import json
import random
import socket
import struct
import time

import pytest

from conftest import ENDLESS, SANITIZED

DISCONNECTS = 1000


def request_bytes(body):
    return (b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
            + str(len(body)).encode() + b"\r\n\r\n" + body)


def random_request(rng, stream):
    body = json.dumps({"messages": [{"role": "user", "content": f"Count from 1 to {rng.randint(20, 60)}"}],
                       "max_tokens": rng.randint(50, 400), "stream": stream, "ignore_eos": True,
                       "n": rng.choice([1, 1, 1, 3])}).encode()
    return request_bytes(body)


def vanish(port, rng):
    """One client that leaves at a random moment, in a random way."""
    s = socket.create_connection(("127.0.0.1", port))
    data = random_request(rng, stream=rng.random() < 0.5)
    how = rng.random()
    if how < 0.1:
        s.sendall(data[:rng.randrange(1, len(data))])
    else:
        s.sendall(data)
        time.sleep(rng.choice([0, 0, 0.001, 0.005, 0.02]))
        if how < 0.5:
            s.settimeout(0.02)
            try:
                s.recv(rng.choice([1, 100, 10000]))
            except (socket.timeout, ConnectionError):
                pass
    if how > 0.9:
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.002)
    if 0.3 < how < 0.6:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def memory_kib(server):
    for line in open(f"/proc/{server.process.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])


@pytest.mark.parametrize("flags", [("--engine", "mock", "--mock-itl-ms", "2"), ()], ids=["mock", "demo"])
def test_a_thousand_random_disconnects_leave_nothing_running(start, flags):
    server = start(*flags)
    rng = random.Random(7)
    for _ in range(DISCONNECTS // 5):
        vanish(server.port, rng)
    server.settle()
    before = memory_kib(server)
    for _ in range(DISCONNECTS - DISCONNECTS // 5):
        vanish(server.port, rng)
    server.settle()
    server.wait_for("portico_kv_cache_usage_ratio", 0)
    if not SANITIZED:
        assert memory_kib(server) < before + 8 * 1024
    answer = server.chat("What is 7 plus 5?", max_tokens=16)
    assert answer.status_code == 200


def test_half_close_counts_as_leaving(start):
    server = start("--engine", "mock", "--mock-itl-ms", "200")
    s = socket.create_connection(("127.0.0.1", server.port))
    body = json.dumps({"messages": [{"role": "user", "content": "Count"}], "max_tokens": ENDLESS}).encode()
    s.sendall(request_bytes(body))
    server.wait_for("portico_requests_running", 1)
    s.shutdown(socket.SHUT_WR)
    server.wait_for("portico_requests_aborted_total", 1)
    server.settle()
    s.close()
