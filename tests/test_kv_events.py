"""KV-cache events: what a worker's cache takes in and lets go, as its own server tells it and as a gateway uses it."""
import contextlib
import hashlib
import struct
import threading

import grpc
import pytest
import requests
from conftest import Server, wait_until
from gateway_fleet import Process, mock_worker
from grpc_client import Client

CELLS = ("--mock-kv-cells", "4000", "--mock-step-ms", "1")
STORY = "Once upon a time there was a kingdom by the sea. " * 40


def chat(url, content, **fields):
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 4, **fields}
    reply = requests.post(url + "/v1/chat/completions", json=body, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply


def names(tokens):
    """SGLang's names of the blocks of 16."""
    digest, made = b"", []
    for at in range(0, len(tokens) // 16 * 16, 16):
        digest = hashlib.sha256(digest + struct.pack("<16I", *tokens[at:at + 16])).digest()
        made.append(struct.unpack(">q", digest[:8])[0])
    return made


class Follower:
    """A subscription, read by a thread."""

    def __init__(self, port, start=0):
        self.batches = []
        self.stream = Client(f"127.0.0.1:{port}").scheduler.SubscribeKvEvents(start_sequence_number=start)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(grpc.RpcError):
            for batch in self.stream:
                self.batches.append(batch)

    def held(self):
        held = {}
        for batch in list(self.batches):
            for event in batch.events:
                kind = event.WhichOneof("data")
                if kind == "cleared":
                    held = {}
                elif kind == "removed":
                    for name in event.removed.block_hashes:
                        del held[name]
                else:
                    parent = event.stored.parent_block_hash if event.stored.HasField("parent_block_hash") else None
                    for block in event.stored.blocks:
                        assert parent is None or parent in held
                        held[block.block_hash] = list(block.token_ids)
                        parent = block.block_hash
        return held


@pytest.fixture(scope="module")
def demo():
    server = Server("--engine", "llama", "--threads", "1", "--max-total-tokens", "1024")
    yield server
    server.stop()


def generate(server, ids, tokens=2):
    body = {"input_ids": ids, "sampling_params": {"max_new_tokens": tokens, "temperature": 0}}
    reply = requests.post(server.url + "/generate", json=body, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_model_publishes_its_cache_under_the_names_that_sglang_gives(demo):
    follower = Follower(demo.port)
    ids = [5 + i % 7 for i in range(50)]
    answer = generate(demo, ids)
    wait_until(lambda: len(follower.held()) >= 3, "no events come")
    whole = ids + answer["output_ids"][:1]  # the last token is not computed
    assert set(names(whole)) <= set(follower.held())
    assert follower.held()[names(ids)[0]] == ids[:16]
    # Who comes later is told the state, and then what comes.
    late = Follower(demo.port)
    wait_until(lambda: late.held() == follower.held(), lambda: f"{late.held()} is not {follower.held()}")
    for start in range(100, 130):  # more than the cache holds
        generate(demo, [start + i % 11 for i in range(60)])
    wait_until(lambda: late.held() == follower.held() and len(late.batches) > 20, "the followers differ")
    assert len(follower.held()) <= 1024 // 16
    numbers = [batch.sequence_number for batch in follower.batches if batch.events]
    assert numbers == sorted(numbers)
    assert requests.post(demo.url + "/flush_cache", timeout=60).status_code == 200
    wait_until(lambda: follower.held() == {} and late.held() == {}, "the flush is not told")
    follower.stream.cancel()
    late.stream.cancel()


def test_a_number_of_another_engine_is_refused(demo):
    with pytest.raises(grpc.RpcError) as refused:
        next(Client(f"127.0.0.1:{demo.port}").scheduler.SubscribeKvEvents(start_sequence_number=10**6))
    assert refused.value.code() == grpc.StatusCode.OUT_OF_RANGE


class Pair:
    """Two workers with caches, and a gateway that follows them."""

    def __init__(self, policy="cost"):
        self.workers = [mock_worker(*CELLS) for _ in range(2)]
        for worker in self.workers:
            worker.wait_ready()
        self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--show-workers", "--policy", policy,
                               "--health-check-interval-secs", "2", "--health-check-timeout-secs", "2",
                               "--worker-urls", *(f"grpc://127.0.0.1:{worker.port}" for worker in self.workers))
        self.gateway.wait_ready("/readiness")

    def listed(self):
        with contextlib.suppress(requests.RequestException):
            return requests.get(self.gateway.url + "/workers", timeout=60).json()["workers"]
        return []

    def wait_followed(self, count=2):
        wait_until(lambda: sum(worker["kv_events"] for worker in self.listed()) == count,
                   lambda: f"{self.listed()}: {self.gateway.output()[-2000:]}")

    def goes_to(self, content):
        return int(chat(self.gateway.url, content).headers["x-portico-worker"][1:]) - 1

    def flush(self, which):
        wait_until(lambda: requests.post(self.workers[which].url + "/flush_cache", timeout=60).status_code == 200,
                   "the cache cannot be flushed")

    def stop(self):
        assert self.gateway.end() == 0, self.gateway.output()[-3000:]
        for worker in self.workers:
            worker.kill()


@pytest.fixture(scope="module")
def pair():
    made = Pair()
    yield made
    made.stop()


def settles(pair, content, where):
    """What the workers tell comes a moment later. A miss would put the prompt where it went, so it is tried with new ends."""
    tries = iter(range(1000))
    wait_until(lambda: pair.goes_to(f"{content} {next(tries)}") == where, f"it does not go to {where}")


def test_a_gateway_follows_what_its_workers_evict_and_what_others_send_them(pair):
    pair.wait_followed()
    home = pair.goes_to(STORY)
    assert pair.goes_to(STORY) == home
    # Another client's request brings the prompt into the other worker, and the first one loses it.
    chat(pair.workers[1 - home].url, STORY)
    pair.flush(home)
    settles(pair, STORY, 1 - home)
    chat(pair.workers[home].url, STORY)
    pair.flush(1 - home)
    settles(pair, STORY, home)
    assert pair.gateway.metric("portico_gateway_kv_event_batches_total") > 0


def test_a_worker_that_restarts_is_followed_from_its_new_state(pair):
    pair.wait_followed()
    story = "A tale of " + STORY
    home = pair.goes_to(story)
    pair.workers[home].kill()
    wait_until(lambda: not pair.listed()[home]["is_healthy"], "its death is not seen")
    pair.workers[home].start()
    pair.wait_followed()
    chat(pair.workers[1 - home].url, story)
    settles(pair, story, 1 - home)
    # The new process counts from 1 again, which is less than the gateway has seen.
    chat(pair.workers[home].url, story)
    pair.flush(1 - home)
    settles(pair, story, home)
    assert pair.gateway.metric("portico_gateway_kv_event_resets_total") >= 3


def test_policies_that_take_no_events_ask_for_none():
    made = Pair("round_robin")
    try:
        chat(made.gateway.url, STORY)
        assert not any(worker["kv_events"] for worker in made.listed())
        assert made.gateway.metric("portico_gateway_kv_event_resets_total") == 0
    finally:
        made.stop()
