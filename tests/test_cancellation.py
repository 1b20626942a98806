"""Clients that vanish: the engine's work stops, nothing is left behind."""
import random
import socket

import pytest

from conftest import BRIEF, ENDLESS, SANITIZED
from leaving import leave, request_bytes, vanish

CHAT = "/v1/chat/completions"
DISCONNECTS = 200 if BRIEF else 1000


def random_request(rng, stream):
    return request_bytes(CHAT, {"messages": [{"role": "user", "content": f"Count from 1 to {rng.randint(20, 60)}"}],
                                "max_tokens": rng.randint(50, 400), "stream": stream, "ignore_eos": True,
                                "n": rng.choice([1, 1, 1, 3])})


def memory_kib(server):
    for line in open(f"/proc/{server.process.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])


@pytest.mark.parametrize("flags", [("--engine", "mock", "--mock-itl-ms", "2"), ()], ids=["mock", "demo"])
def test_a_thousand_random_disconnects_leave_nothing_running(start, flags):
    server = start(*flags)
    rng = random.Random(7)
    for _ in range(DISCONNECTS // 5):
        vanish(server.port, rng, random_request(rng, stream=rng.random() < 0.5))
    server.settle()
    before = memory_kib(server)
    for _ in range(DISCONNECTS - DISCONNECTS // 5):
        vanish(server.port, rng, random_request(rng, stream=rng.random() < 0.5))
    server.settle()
    server.wait_for("portico_kv_cache_usage_ratio", 0)
    if not SANITIZED:
        assert memory_kib(server) < before + 8 * 1024
    answer = server.chat("What is 7 plus 5?", max_tokens=16)
    assert answer.status_code == 200


def test_half_close_counts_as_leaving(start):
    server = start("--engine", "mock", "--mock-itl-ms", "200")
    s = leave(server, CHAT, {"messages": [{"role": "user", "content": "Count"}], "max_tokens": ENDLESS})
    server.wait_for("portico_requests_running", 1)
    s.shutdown(socket.SHUT_WR)
    server.wait_for("portico_requests_aborted_total", 1)
    server.settle()
    s.close()
