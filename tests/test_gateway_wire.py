"""What passes between clients and workers byte by byte, and what does not: messages that could be read in two ways."""
import socket

import pytest
import requests
from gateway_fleet import raw  # noqa: F401 (a fixture)


def test_a_request_passes_byte_by_byte(raw):
    def answer(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nServer: x\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok")

    worker, gateway = raw(answer)
    body = b'{"model":"m",  "n":1.0e0,"unknown":{"b":[1,2.50]},"messages":[]}'
    said = requests.post(gateway.url + "/v1/chat/completions?a=1&b=%20", data=body, timeout=60,
                         headers={"Content-Type": "application/json", "X-Own": "1", "Connection": "keep-alive, x-own"})
    assert said.text == "ok" and said.headers["x-kept"] == "1" and said.headers["server"] == "portico"
    head, passed = worker.requests[-1]
    assert passed == body
    assert head.startswith(b"POST /v1/chat/completions?a=1&b=%20 HTTP/1.1\r\n")
    assert b"x-own" not in head.lower()


def test_a_multipart_body_passes_as_it_is(raw):
    worker, gateway = raw(lambda connection, head, body: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    requests.post(gateway.url + "/v1/audio/transcriptions", files={"file": b"\0\1\2" * 5000}, data={"model": "m"},
                  timeout=60)
    head, body = worker.requests[-1]
    assert b"multipart/form-data; boundary=" in head and body.count(b"\0\1\2") == 5000


@pytest.mark.parametrize("answer", [
    b"garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
    b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 100_000,
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
])
def test_an_answer_that_breaks_the_protocol_does_not_reach_the_client(raw, answer):
    def say(connection, head, body):
        connection.sendall(answer)
        return False

    worker, gateway = raw(say, "--retry-max-retries", "1")
    said = requests.post(gateway.url + "/v1/completions", json={}, timeout=60)
    assert said.status_code in (502, 503)
    assert str(worker.port) not in said.text
    assert gateway.answers()


def test_what_follows_an_answer_is_no_others(raw):
    def say(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmineHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    _, gateway = raw(say)
    for _ in range(5):
        assert requests.post(gateway.url + "/v1/completions", json={}, timeout=60).text == "mine"


@pytest.mark.parametrize("request_bytes", [
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2, 2\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n 2\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n\tContent-Length: 4\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length : 2\r\n\r\n{}",
])
def test_a_request_that_could_be_read_in_two_ways_is_refused(raw, request_bytes):
    worker, gateway = raw(lambda connection, head, body: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(request_bytes)
        client.settimeout(60)
        assert client.recv(100).startswith(b"HTTP/1.1 400")
    assert not worker.requests
