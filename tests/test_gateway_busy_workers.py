"""A worker that says when it will have room, and a connection that has been idle."""
import json
import time

import requests
from gateway_fleet import front, raw  # noqa: F401  (raw is a fixture)

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def send(connection, status, body, more=b""):
    connection.sendall(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s" % (status, more, len(body), body))


def test_a_worker_that_names_a_short_time_is_asked_again_after_it(raw):  # noqa: F811
    asked = []

    def answer(connection, _head, _body):
        asked.append(time.monotonic())
        if len(asked) == 1:
            return send(connection, b"503 Busy", b'{"error":"busy"}', b"Retry-After: 1\r\n")
        return send(connection, b"200 OK", b'{"choices":[]}')

    _, gateway = raw(answer)
    began = time.monotonic()  # the worker's own clock may start late
    reply = requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=60)
    assert reply.status_code == 200 and reply.json() == {"choices": []}
    assert len(asked) == 2 and asked[1] - began > 0.9


def test_a_worker_that_names_a_long_time_is_not_waited_for(raw):  # noqa: F811
    def answer(connection, _head, _body):
        send(connection, b"429 Too Many Requests", json.dumps({"error": {"message": "later"}}).encode(), b"Retry-After: 600\r\n")

    worker, gateway = raw(answer)
    reply = requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=60)
    assert reply.status_code == 429 and reply.headers["retry-after"] == "600"
    assert len(worker.requests) == 1


def test_media_that_a_worker_cannot_read_are_tried_once_and_count_against_no_worker():
    """One client's video, that no worker could read, opened the breakers of them all."""
    def answer(connection, _head, body):
        of_media = b"media" in body
        send(connection, b"500 Internal Server Error", b'{"error":{"code":"media_failed"}}', b"X-Portico-Failure: media_failed\r\n" * of_media)

    with front([answer, answer], "--policy", "round_robin", "--cb-failure-threshold", "3", "--retry-initial-backoff-ms", "1") as (workers, gateway):
        def ask(content):
            body = {"model": "m", "messages": [{"role": "user", "content": content}]}
            reply = requests.post(gateway.url + "/v1/chat/completions", json=body, timeout=60)
            assert reply.status_code == 500 and reply.json() == {"error": {"code": "media_failed"}}
            return sum(len(worker.requests) for worker in workers)

        assert [ask("media") for _ in range(8)] == list(range(1, 9))
        assert gateway.metric("portico_gateway_worker_breaker_opened_total") == 0
        assert gateway.metric("portico_gateway_retries_total") == 0
        assert ask("text") > 9
        assert gateway.metric("portico_gateway_retries_total") > 0


def test_a_connection_that_has_been_idle_for_three_seconds_is_not_used_again(raw):  # noqa: F811
    """SGLang and vLLM close theirs after five: a request that meets the closing is lost."""
    used = []

    def answer(connection, _head, _body):
        used.append(connection.getpeername())
        send(connection, b"200 OK", b"{}")

    _, gateway = raw(answer)

    def ask():
        return requests.post(gateway.url + "/v1/chat/completions", json=CHAT, timeout=60)
    assert ask().status_code == 200
    time.sleep(3.5)
    assert ask().status_code == 200
    assert used[0] != used[1]
