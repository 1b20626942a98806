"""SGLang's sessions: all workers know one, and the worker that has answered in it gets what follows."""
import json

import pytest
import requests
from conftest import wait_until
from gateway_fleet import front


def ok(connection, head, body):
    answer = b'"' + json.loads(body)["session_id"].encode() + b'"' if b" /open_session " in head else b"{}"
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))


@pytest.fixture
def fleet():
    with front([ok, ok, ok], "--policy", "round_robin", "--retry-max-retries", "2") as made:
        yield made


def post(gateway, path, **fields):
    return requests.post(gateway.url + path, json=fields, timeout=60)


def generate(gateway, session=None):
    return post(gateway, "/generate", text="x", **({"session_params": {"id": session, "rid": None}} if session else {}))


def large(session=None):
    """The beginning of its body, of which the gateway decides whether it passes the rest on as it comes, names no session."""
    named = {"session_params": {"id": session}} if session else {}
    return {"text": "x" * (3 << 20), **named}


def asked(workers):
    """How many requests each has got to generate, and forgets."""
    counts = [sum(head.startswith(b"POST /generate ") for head, _ in worker.requests) for worker in workers]
    for worker in workers:
        worker.requests.clear()
    return counts


def test_a_sessions_requests_go_to_one_worker(fleet):
    """Each went where the policy sent it, and the history was elsewhere."""
    workers, gateway = fleet
    for _ in range(2):
        session = post(gateway, "/open_session", capacity_of_str_len=100).json()
        for _ in range(6):
            assert generate(gateway, session).status_code == 200
        assert sorted(asked(workers)) == [0, 0, 6]
        for _ in range(6):
            assert generate(gateway).status_code == 200
        assert asked(workers) == [2, 2, 2], "others take turns"
        assert post(gateway, "/close_session", session_id=session).status_code == 200
        for _ in range(6):
            generate(gateway, session)
        assert asked(workers) == [2, 2, 2], "a session that is closed is none"


def test_a_large_request_goes_to_its_sessions_worker_wherever_it_names_it(fleet):
    """What was behind the first MiB was not looked at, and any worker got the request."""
    workers, gateway = fleet
    session = post(gateway, "/open_session", capacity_of_str_len=100).json()
    for _ in range(3):
        assert post(gateway, "/generate", **large(session)).status_code == 200
    assert generate(gateway, session).status_code == 200
    assert sorted(asked(workers)) == [0, 0, 4]
    assert gateway.metric("portico_gateway_streamed_bodies_total") == 0
    assert post(gateway, "/close_session", session_id=session).status_code == 200
    for _ in range(3):
        assert post(gateway, "/generate", **large()).status_code == 200
    assert asked(workers) == [1, 1, 1], "without sessions such bodies are passed on as they come"
    assert gateway.metric("portico_gateway_streamed_bodies_total") == 3


def test_sessions_are_spread(fleet):
    workers, gateway = fleet
    sessions = [post(gateway, "/open_session", capacity_of_str_len=100, session_id=f"s{i}").json() for i in range(3)]
    for _ in range(4):
        for session in sessions:
            assert generate(gateway, session).status_code == 200
    assert asked(workers) == [4, 4, 4]


def test_a_session_whose_worker_is_gone_goes_to_no_other(fleet):
    """Another would answer without what has been said."""
    workers, gateway = fleet
    session = post(gateway, "/open_session", capacity_of_str_len=100).json()
    assert generate(gateway, session).status_code == 200
    counts = asked(workers)
    workers[counts.index(1)].stop()
    wait_until(lambda: gateway.metric("portico_gateway_worker_healthy") == 2 or generate(gateway, session).status_code == 503, gateway.output)
    answer = generate(gateway, session)
    assert answer.status_code == 503 and "127.0.0.1" not in answer.text
    assert sum(asked(workers)) == 0
    assert generate(gateway).status_code == 200, "others go on"


def test_a_session_outlives_that_its_worker_is_removed_and_added_again(fleet):
    """The gateway knew it by a number that was never used again: 503 with Retry-After for good."""
    workers, gateway = fleet
    session = post(gateway, "/open_session", capacity_of_str_len=100).json()
    assert generate(gateway, session).status_code == 200
    counts = asked(workers)
    url = workers[counts.index(1)].url
    assert requests.post(f"{gateway.url}/remove_worker?url={url}", timeout=60).status_code == 200
    for _ in range(2):
        answer = generate(gateway, session)
        assert answer.status_code == 410 and answer.json()["error"]["code"] == "session_lost" and "retry-after" not in answer.headers
    assert sum(asked(workers)) == 0, "another would answer without what has been said"
    assert requests.post(f"{gateway.url}/add_worker?url={url}", timeout=60).status_code == 200
    wait_until(lambda: gateway.metric("portico_gateway_worker_healthy") == 3, gateway.output)
    for _ in range(3):
        assert generate(gateway, session).status_code == 200
    assert asked(workers) == [3 * count for count in counts]
