"""What a gateway tells of itself and of its workers, and what a stream gets that its worker is silent about."""
import contextlib
import json
import socket
import threading

import pytest
import requests
from conftest import free_port, wait_until
from gateway_fleet import Fleet, Process, RawWorker, raw  # noqa: F401  (raw is a fixture)


@pytest.fixture
def route():
    """route(answer, *flags) -> gateway process: before one worker of sockets."""
    made = []

    def start(answer, *flags):
        worker = RawWorker(answer)
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", worker.url, *flags)
        made.append((worker, gateway))
        gateway.wait_ready("/readiness")
        return gateway

    yield start
    for worker, gateway in made:
        assert gateway.end() == 0, gateway.output()[-3000:]
        worker.stop()


def test_metrics_tell_what_the_policy_has_found():
    fleet = Fleet(2, "--policy", "cost")
    try:
        fleet.wait_healthy(2)
        for _ in range(3):
            assert fleet.chat("the same long prompt " * 100).status_code == 200
        metric = fleet.gateway.metric
        assert metric("portico_gateway_policy_choices_total") == 3
        assert 0 < metric("portico_gateway_policy_matched_tokens_total") < metric("portico_gateway_policy_prompt_tokens_total")
        assert metric("portico_gateway_policy_imbalance") == 0
        said = requests.get(fleet.url + "/metrics", timeout=60).text
        assert 'portico_gateway_policy_choices_total{policy="cost",role="regular",model=""} 3' in said
    finally:
        fleet.stop()


def test_what_a_worker_says_of_itself_has_no_keys_and_no_addresses(route):
    """SGLang's /server_info has its keys, and where it listens."""
    said = json.dumps({"model_path": "m", "api_key": "hidden", "host": "10.1.2.3", "port": 31234,
                       "server_args": {"admin_api_key": "hidden", "nccl_port": 31235, "dp_size": 1}})

    def answer(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said.encode())

    for flags, port in (((), None), (("--show-workers",), 31234)):
        gateway = route(answer, *flags)
        for path in ("/server_info", "/get_server_info"):
            info = requests.get(gateway.url + path, timeout=60)
            assert info.status_code == 200 and "hidden" not in info.text
            assert info.json()["model_path"] == "m" and info.json()["server_args"]["dp_size"] == 1
            assert info.json()["port"] == port and ("10.1.2.3" in info.text) == bool(port)


def test_a_stream_that_has_only_a_head_gets_comments(route):
    """A client, or a proxy before it, took a stream whose prompt was long to compute for dead."""
    go = threading.Event()

    def answer(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        go.wait(60)
        connection.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    gateway = route(answer, "--sse-keepalive-secs", "0.1")
    with requests.post(gateway.url + "/v1/completions", json={"stream": True}, timeout=60, stream=True) as reply:
        lines = reply.iter_lines()
        assert reply.status_code == 200
        assert next(line for line in lines if line) == b": keep-alive"
        go.set()
        assert next(line for line in lines if line.startswith(b"data")) == b"data: [DONE]"


def test_a_gateway_says_how_many_workers_it_waits_for():
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls",
                      f"http://127.0.0.1:{free_port()}")
    try:
        wait_until(lambda: "waiting for workers: 0 of 1 are healthy" in gateway.output(), gateway.output)
        assert gateway.end() == 0
    finally:
        gateway.kill()


def test_a_gateway_without_workers_says_how_to_add_them():
    """It waited for 0 of 0 workers."""
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0")
    try:
        wait_until(lambda: "waiting for workers: there are none" in gateway.output(), gateway.output)
        assert gateway.end() == 0
        warnings = [line for line in gateway.output().splitlines() if "] warning there are no workers" in line]
        assert len(warnings) == 1 and "--worker-urls" in warnings[0] and "POST /workers" in warnings[0]
    finally:
        gateway.kill()


def test_the_log_names_the_model_of_a_worker_that_takes_tokens():
    """It named the formats of a model ``."""
    worker = Process("serve", "--engine", "mock", "--served-model-name", "tokens-model")
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", f"grpc://127.0.0.1:{worker.port}")
    try:
        gateway.wait_ready("/readiness")
        formats = [line for line in gateway.output().splitlines() if ": tool calls as " in line]
        assert formats and all("model `tokens-model`:" in line for line in formats), gateway.output()
        assert gateway.end() == 0
    finally:
        for process in (gateway, worker):
            process.kill()


def test_a_worker_that_is_lost_is_a_line_of_the_log_and_so_is_a_gateway_without_workers():
    """It was two lines with two reasons, and none told that requests were refused."""
    fleet = Fleet(1)
    try:
        wait_until(lambda: "info ready: " in fleet.gateway.output(), fleet.gateway.output)
        assert fleet.state()["workers"][0]["reason"] is None
        fleet.workers[0].kill()
        assert fleet.chat().status_code == 503
        wait_until(lambda: "not ready: the only worker cannot take the request: 1 down" in fleet.gateway.output(), fleet.gateway.output)
        assert len(health_warnings(fleet.gateway)) == 1 and "it cannot be reached (" in health_warnings(fleet.gateway)[0], fleet.gateway.output()
        assert "it cannot be reached" in fleet.state()["workers"][0]["reason"]
        assert "127.0.0.1" not in requests.get(fleet.url + "/metrics", timeout=60).text
        fleet.workers[0].start()
        wait_until(lambda: fleet.gateway.output().count("info ready: ") == 2, fleet.gateway.output)
        assert fleet.state()["workers"][0]["reason"] is None
    finally:
        fleet.stop()


def test_a_worker_that_is_still_loading_is_no_cause_for_a_warning(raw):
    """A server that answered 503 while it loaded was unhealthy in the log."""
    worker, gateway = raw(None)
    loading = RawWorker(None)
    said = b'{"error":{"message":"the model is still loading"}}'
    loading.well = lambda: b"HTTP/1.1 503 Later\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)
    try:
        assert requests.post(gateway.url + "/workers", json={"url": loading.url}, timeout=60).status_code == 202
        why = "its probe returned 503 (the model is still loading)"
        wait_until(lambda: f"{loading.url} is not up yet: {why}" in gateway.output(), gateway.output)
        listed = requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
        assert [one["reason"] for one in listed] == [None, why]
        loading.well = lambda: 200
        wait_until(lambda: f"{loading.url} is healthy" in gateway.output(), gateway.output)
        assert "is unhealthy" not in gateway.output()
    finally:
        loading.stop()


def health_warnings(gateway):
    return [line for line in gateway.output().splitlines() if "] warning worker w1" in line and "is unhealthy: " in line]


@pytest.mark.parametrize("url, why", [
    ("http://127.0.0.1:{closed}", "it cannot be reached (Connection refused)"),
    ("http://127.0.0.1:{port}/v1", "its probe returned 404; it is asked for /v1/health: leave `/v1` out of its URL"),
    ("grpc://127.0.0.1:{closed}", "Connection refused")])
def test_the_log_says_why_a_worker_is_unhealthy(mock, url, why):
    """A wrong name, a wrong port and a wrong scheme looked alike, and nothing told of a path too much."""
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls",
                      url.format(port=mock.port, closed=free_port()))
    try:
        wait_until(lambda: health_warnings(gateway), gateway.output)
        assert why in health_warnings(gateway)[0], gateway.output()
        assert gateway.end() == 0
    finally:
        gateway.kill()


def test_the_log_says_that_a_worker_does_not_use_tls():
    """uvicorn, which SGLang and vLLM use, answers what it cannot read with 400."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(60)
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, daemon=True).start()
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls",
                      f"https://127.0.0.1:{listener.getsockname()[1]}")
    try:
        wait_until(lambda: health_warnings(gateway), gateway.output)
        assert "its URL begins with https, but it does not use TLS" in health_warnings(gateway)[0], gateway.output()
        assert gateway.end() == 0
    finally:
        gateway.kill()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_a_port_for_metrics_that_is_taken_is_told_with_its_flag():
    """Only the address was named, which looked like the gateway's own."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        gateway = Process("route", "--host", "127.0.0.1", "--prometheus-host", "127.0.0.1", "--prometheus-port", port)
        try:
            assert gateway.process.wait(60) == 1
        finally:
            gateway.kill()
    assert f"--prometheus-port: cannot listen on 127.0.0.1:{port}" in gateway.output()
