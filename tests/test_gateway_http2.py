"""A gateway whose HTTP workers are spoken to over HTTP/2 (--upstream-http2)."""
import concurrent.futures
import json
import socket
import threading

import pytest
import requests
from conftest import wait_until
from gateway_fleet import Fleet

FLAGS = ("--upstream-http2", "--policy", "round_robin", "--show-workers")


@pytest.fixture(scope="module")
def fleet():
    made = Fleet(2, *FLAGS)
    made.wait_healthy(2)
    yield made
    made.stop()


def connections_of(worker):
    """Of all that are open to its port, by the kernel's table."""
    port = f":{worker.port:04X}"
    lines = open("/proc/net/tcp").read().splitlines()[1:]
    return sum(1 for line in lines if line.split()[1].endswith(port) and line.split()[3] == "01")


def test_requests_share_a_connection_to_each_worker(fleet):
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        replies = list(pool.map(lambda i: fleet.chat(f"number {i}", max_tokens=20), range(80)))
        assert [reply.status_code for reply in replies] == [200] * 80
    assert {reply.headers["x-portico-worker"] for reply in replies} == {"w1", "w2"}
    # One of the shard's and one of the probes', and what this test's own questions leave.
    assert all(connections_of(worker) <= 6 for worker in fleet.workers)


def test_streams_and_bodies_come_whole(fleet):
    body = {"model": "demo", "messages": [{"role": "user", "content": "count"}], "max_tokens": 40, "stream": True}
    with requests.post(fleet.url + "/v1/chat/completions", json=body, stream=True, timeout=60) as reply:
        lines = [line[6:] for line in reply.iter_lines() if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]" and json.loads(lines[-2])["choices"][0]["finish_reason"] == "length"
    large = fleet.chat("x " * 200_000)
    assert large.status_code in (200, 400) and large.json(), large.text[:500]  # the model's context may be shorter
    assert requests.get(fleet.url + "/v1/models", timeout=60).json()["data"]
    assert requests.get(fleet.url + "/get_model_info", timeout=60).status_code == 200
    assert requests.post(fleet.url + "/flush_cache", timeout=60).status_code == 200


def test_a_client_that_does_not_read_holds_up_no_other(fleet):
    body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": "long " * 50}], "max_tokens": 1900,
                       "ignore_eos": True, "stream": True}).encode()

    def asked():
        return sum(worker["requests_total"] for worker in fleet.state()["workers"])

    slow, before = [], asked()
    for _ in range(4):
        connection = socket.create_connection(("127.0.0.1", int(fleet.url.rsplit(":", 1)[1])), timeout=120)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                           + str(len(body)).encode() + b"\r\n\r\n" + body)
        slow.append(connection)
    wait_until(lambda: asked() == before + len(slow), "their requests have not come")
    for i in range(6):
        assert fleet.chat(f"quick {i}").status_code == 200
    whole = b""
    while b"[DONE]" not in whole:
        piece = slow[0].recv(65536)
        assert piece, whole[-300:]
        whole += piece
    for connection in slow:
        connection.close()
    wait_until(lambda: fleet.loads() == [0, 0], lambda: f"{fleet.loads()}")


def test_a_worker_that_dies_costs_no_whole_answer(fleet):
    failed = []
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            reply = fleet.chat("hello", max_tokens=16)
            if reply.status_code != 200:
                failed.append(reply.text)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        fleet.workers[0].kill()
        wait_until(lambda: fleet.healthy() == 1, "its death is not seen")
        fleet.workers[0].start()
        fleet.wait_healthy(2)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed, failed[:3]


def test_a_worker_of_http1_alone_is_not_used():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    threading.Thread(target=serve, daemon=True).start()
    made = Fleet(1, *FLAGS, urls=[f"http://127.0.0.1:{listener.getsockname()[1]}"])
    try:
        made.wait_healthy(1)
        wait_until(lambda: "violates HTTP/2" in made.gateway.output(), lambda: made.gateway.output())
        assert all(made.chat("x").headers["x-portico-worker"] == "w1" for _ in range(3))
    finally:
        made.stop()
        listener.close()
