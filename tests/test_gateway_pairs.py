"""Prefill and decode workers behind `portico route`: what both are sent, whose answer the client gets, and what happens when
one of them fails."""
import contextlib
import json
import threading

import pytest
import requests
from conftest import wait_until
from gateway_fleet import Process, RawWorker
from test_profiler import all_ended, events_of


def reply(body, status="200 OK", kind="application/json"):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def say(who):
    return lambda connection, head, body: connection.sendall(reply({"from": who}))


class Pairs:
    """A gateway before prefill and decode workers of sockets."""

    def __init__(self, prefill, decode, *flags):
        self.prefill, self.decode = [RawWorker(answer) for answer in prefill], [RawWorker(answer) for answer in decode]
        for worker in self.prefill + self.decode:
            worker.info = b"{}"
        words = [word for worker in self.prefill for word in ("--prefill", worker.url, "9000")]
        words += [word for worker in self.decode for word in ("--decode", worker.url)]
        self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--pd-disaggregation", *words,
                               *flags)
        self.url = self.gateway.url
        # It is ready with one of each.
        wait_until(self.healthy, self.gateway.output)

    def workers(self):
        return requests.get(self.url + "/workers", timeout=60).json()["workers"]

    def healthy(self):
        with contextlib.suppress(requests.RequestException):
            return all(worker["is_healthy"] for worker in self.workers())
        return False

    def post(self, path="/generate", body=None, **keywords):
        return requests.post(self.url + path, json={"text": "x"} if body is None else body, timeout=60, **keywords)

    def loads(self):
        return [worker["load"] for worker in self.workers()]

    def stop(self):
        # A prefill worker's answer is read to its end after the client has the decode worker's.
        wait_until(lambda: not any(self.loads()), "a worker is thought to hold a request")
        status = self.gateway.end()
        for worker in self.prefill + self.decode:
            worker.stop()
        assert status == 0, self.gateway.output()[-3000:]


@pytest.fixture
def pairs():
    made = []

    def make(*arguments):
        made.append(Pairs(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def bodies(workers, count=0):
    """What they were sent, once that is `count` requests: the client may have the decode worker's answer before the other is asked."""
    wait_until(lambda: sum(len(worker.requests) for worker in workers) >= count, "a worker has not got the request")
    return [json.loads(body) for worker in workers for _, body in worker.requests]


def test_both_get_the_request_with_one_room_and_the_client_gets_the_decode_workers_answer(pairs):
    fleet = pairs([say("prefill")], [say("decode")], "--show-workers", "--access-log")
    raw = b' {"text": "x",  "n": 1.0e0, "unknown": {"b": [1, 2.50]}}'
    answer = requests.post(fleet.url + "/generate", data=raw, timeout=60, headers={"Content-Type": "application/json"})
    assert answer.json() == {"from": "decode"}
    assert answer.headers["x-portico-worker"] != answer.headers["x-portico-prefill-worker"]
    bodies(fleet.prefill, 1)
    (_, prefill), (_, decode) = fleet.prefill[0].requests[0], fleet.decode[0].requests[0]
    assert prefill == decode and prefill.endswith(raw.strip()[1:])
    fields = json.loads(prefill)
    assert fields["bootstrap_host"] == "127.0.0.1" and fields["bootstrap_port"] == 9000
    assert 0 <= fields["bootstrap_room"] < 2**63
    fleet.post()
    assert len({body["bootstrap_room"] for body in bodies(fleet.prefill, 2)}) == 2
    wait_until(lambda: '"prefill_worker":"w' in fleet.gateway.output(), fleet.gateway.output)


def test_a_worker_that_does_not_run_as_its_half_of_a_pair_is_unhealthy():
    """The gateway was ready, and clients were told to leave out a field that they had not sent."""
    prefill, decode = RawWorker(say("prefill")), RawWorker(say("decode"))
    prefill.info, decode.info = b'{"disaggregation_mode":"prefill"}', b'{"server_args":{"disaggregation_mode":"null"}}'
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--pd-disaggregation",
                      "--prefill", prefill.url, "9000", "--decode", decode.url)
    why = "it is configured as decode worker, but runs with --disaggregation-mode null"
    try:
        wait_until(lambda: f"is unhealthy: {why}" in gateway.output(), gateway.output)
        assert not gateway.answers("/readiness")
        listed = requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
        assert [worker["reason"] for worker in listed if worker["worker_type"] == "decode"] == [why]
        decode.info = b'{"disaggregation_mode":"decode"}'
        gateway.wait_ready("/readiness")
        assert requests.post(gateway.url + "/generate", json={"text": "x"}, timeout=60).json() == {"from": "decode"}
        assert gateway.end() == 0, gateway.output()[-3000:]
    finally:
        gateway.kill()
        prefill.stop()
        decode.stop()


def test_a_stream_is_the_decode_workers(pairs):
    def stream(connection, head, body):
        connection.sendall(reply(b"data: 1\n\ndata: [DONE]\n\n", kind="text/event-stream"))

    fleet = pairs([stream], [stream])
    answer = fleet.post("/v1/chat/completions", {"stream": True, "messages": []}, stream=True)
    assert list(answer.iter_lines())[0] == b"data: 1"
    sent = bodies(fleet.prefill, 1)[0]
    assert "bootstrap_room" in sent and sent["stream"] is True


def test_a_prefill_worker_that_dies_ends_the_decode_workers_work_and_another_pair_answers(pairs):
    ended, died, turns = threading.Event(), [], []

    def die(connection, head, body):
        died.append(body)
        wait_until(lambda: turns, "the decode worker is not asked")
        return False

    def wait(connection, head, body):
        turns.append(body)
        if len(turns) == 1:
            with contextlib.suppress(OSError):
                connection.settimeout(60)
                assert connection.recv(1) == b""
            ended.set()
            return False
        return connection.sendall(reply({"from": "decode"}))

    fleet = pairs([die, say("prefill")], [wait], "--policy", "round_robin")
    answers = [fleet.post() for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"from": "decode"}] * 2
    assert ended.wait(60) and died
    rooms = [body["bootstrap_room"] for body in bodies(fleet.decode)]
    assert len(set(rooms)) == len(rooms) >= 3, "each attempt has a room of its own"


def test_what_the_prefill_worker_refuses_the_client_is_told(pairs):
    hold = threading.Event()
    fleet = pairs([lambda connection, head, body: connection.sendall(reply({"error": "too long"}, "400 Bad Request"))],
                  [lambda connection, head, body: hold.wait(60) and False], "--access-log")
    answer = fleet.post()
    hold.set()
    assert answer.status_code == 400 and answer.json() == {"error": "too long"}
    # It named the decode worker, which had not answered.
    prefill = requests.get(fleet.url + "/workers", timeout=60).json()["workers"][0]["id"]
    wait_until(lambda: f'"worker":"{prefill}"' in fleet.gateway.output(), fleet.gateway.output)


def test_what_the_decode_worker_refuses_the_client_is_told(pairs):
    hold = threading.Event()
    fleet = pairs([lambda connection, head, body: hold.wait(60) and False],
                  [lambda connection, head, body: connection.sendall(reply({"error": "no"}, "422 Unprocessable"))])
    assert fleet.post().status_code == 422
    hold.set()


def test_a_decode_worker_that_dies_in_a_stream_ends_it_with_an_error_and_done(pairs):
    def cut(connection, head, body):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
                           b"9\r\ndata: 1\n\n\r\n")
        return False

    fleet = pairs([say("prefill")], [cut])
    lines = [line for line in fleet.post(stream=True).iter_lines() if line]
    assert lines[0] == b"data: 1" and b"worker_lost" in lines[1] and lines[-1] == b"data: [DONE]"
    assert len(fleet.decode[0].requests) == 1


def test_a_client_cannot_choose_where_the_cache_is_fetched_from(pairs):
    fleet = pairs([say("prefill")], [say("decode")])
    for body in ({"text": "x", "bootstrap_host": "10.0.0.1"}, {"bootstrap_room": 1}, {"bootstrap_port": 1}, [], 7):
        answer = fleet.post(body=body)
        assert answer.status_code == 400, body
    assert not fleet.prefill[0].requests and not fleet.decode[0].requests


def test_without_one_of_the_two_nothing_is_sent_and_readiness_says_which_is_missing(pairs):
    fleet = pairs([say("prefill")], [say("decode")])
    workers = requests.get(fleet.url + "/workers", timeout=60).json()
    assert [worker["worker_type"] for worker in workers["workers"]] == ["prefill", "decode"]
    assert workers["workers"][0]["bootstrap_port"] == 9000
    assert requests.delete(fleet.url + "/workers/" + workers["workers"][0]["id"], timeout=60).status_code == 200
    ready = requests.get(fleet.url + "/readiness", timeout=60)
    assert ready.status_code == 503 and ready.json()["reason"].startswith("prefill:")
    assert fleet.post().status_code == 503
    assert not fleet.decode[0].requests
    added = requests.post(fleet.url + "/workers", timeout=60,
                          json={"url": fleet.prefill[0].url, "worker_type": "prefill", "bootstrap_port": 9001})
    assert added.status_code == 202
    wait_until(lambda: requests.get(fleet.url + "/readiness", timeout=60).status_code == 200, "it is not used again")
    assert fleet.post().status_code == 200
    assert bodies(fleet.decode)[-1]["bootstrap_port"] == 9001
    wrong = requests.post(fleet.url + "/workers", json={"url": "http://127.0.0.1:1"}, timeout=60)
    assert wrong.status_code == 400 and "prefill and decode" in wrong.text


def test_a_request_without_a_decode_worker_is_logged(pairs):
    """With --access-log the gateway died of it."""
    fleet = pairs([say("prefill")], [say("decode")], "--access-log")
    [gone] = [worker["id"] for worker in fleet.workers() if worker["worker_type"] == "decode"]
    assert requests.delete(f"{fleet.url}/workers/{gone}", timeout=60).ok
    for path in ("/generate", "/tokenize"):
        refused = fleet.post(path)
        assert refused.status_code == 503 and "decode: no worker is registered" in refused.text
    wait_until(lambda: fleet.gateway.output().count('"policy":""') == 2, fleet.gateway.output)


def test_a_name_that_cannot_be_read_hides_none_that_is_reserved(pairs):
    """Python reads half of a surrogate pair in a name; the gateway looked no further, and the client chose the room."""
    fleet = pairs([say("prefill")], [say("decode")])
    for field in ("bootstrap_host", "bootstrap_room", "disagg_prefill_dp_rank"):
        reply = requests.post(fleet.url + "/generate", data='{"text": "x", "\\ud800": 1, "%s": 7}' % field, timeout=60)
        assert reply.status_code == 400 and field in reply.text, reply.text
    assert not fleet.prefill[0].requests and not fleet.decode[0].requests


def test_other_routes_go_to_one_worker_or_are_refused(pairs):
    fleet = pairs([say("prefill")], [say("decode")])
    assert requests.post(fleet.url + "/tokenize", json={}, timeout=60).json() == {"from": "decode"}
    assert not fleet.prefill[0].requests
    refused = requests.post(fleet.url + "/v1/messages", json={}, timeout=60)
    assert refused.status_code == 501 and "/v1/messages" in refused.text


def test_a_profile_tells_the_calls_to_the_two_workers_apart(pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("SGLANG_TORCH_PROFILER_DIR", str(tmp_path))
    fleet = pairs([say("prefill")], [say("decode")])
    prefill, decode = [f"worker:{worker['id']}" for worker in requests.get(fleet.url + "/workers", timeout=60).json()["workers"]]
    fleet.post("/start_request_profile", {"run_id": "pair"})
    assert fleet.post(headers={"x-request-id": "mine"}).status_code == 200
    fleet.post("/stop_request_profile", {"run_id": "pair"})
    wait_until(lambda: all_ended(tmp_path / "pair/events"), "the files are not complete")
    events = events_of(tmp_path / "pair/events")
    mine = [(event["event_name"], event["metadata"]) for event in events if event["request_id"] == "mine"]
    assert [said["to_stage"] for name, said in mine if name == "stage_hop_sent"] == [prefill, decode]
    begun = [said["from_stage"] for name, said in mine if name == "stage_stream_chunk_received"]
    assert decode in begun and len(set(begun)) == len(begun)
    assert [(said["from_stage"], said["success"]) for name, said in mine if name == "terminal_response"] == [(decode, True)]
