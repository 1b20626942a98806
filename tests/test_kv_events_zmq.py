"""KV-cache events of HTTP workers over ZMQ: SGLang's and vLLM's publishers before a gateway that follows them."""
import itertools
import json
import subprocess

import pytest
import requests
from conftest import BINARY, free_port, wait_until
from gateway_fleet import Process
from kv_publisher import HttpWorker, Publisher, sglang, vllm, vllm_array

FRESH = itertools.count(1)
FAULTS = "portico_gateway_kv_event_faults_total"
STORY = "Once upon a time there was a kingdom by the sea. " * 40


def prompt():
    """Token ids that no other prompt begins with."""
    start = 100_000 + 1000 * next(FRESH)
    return [start + i for i in range(200)]


class Gateway:
    """Two HTTP workers with a publisher each, and a gateway before them."""

    def __init__(self, tmp_path, layout=sglang, replay=False, before=lambda publishers: None):
        self.workers = [HttpWorker() for _ in range(2)]
        self.publishers = [Publisher(layout, replay=replay) for _ in range(2)]
        before(self.publishers)
        file = tmp_path / "fleet.yaml"
        file.write_text(json.dumps({"workers": [{"url": worker.url, "kv-events": publisher.config()}
                                                for worker, publisher in zip(self.workers, self.publishers)]}))
        self.process = started("--config", str(file))
        self.marks = 0
        self.wait_followed(2)
        for publisher in self.publishers:
            publisher.wait_subscribed()

    def wait_followed(self, count):
        wait_until(lambda: sum(one["kv_events"] for one in workers(self.process)) == count,
                   lambda: f"{workers(self.process)}: {self.process.output()[-3000:]}")

    def settle(self, which=None):
        """Waits until all that was published has been taken in."""
        for publisher in self.publishers if which is None else [self.publishers[which]]:
            self.marks += 1
            before = self.process.metric(FAULTS)
            publisher.mark()
            wait_until(lambda: self.process.metric(FAULTS) > before, lambda: self.process.output()[-3000:])

    def chosen(self, ids):
        return chosen(self.process, "/generate", {"input_ids": ids})

    def resets(self):
        return self.process.metric("portico_gateway_kv_event_resets_total")

    def faults(self):
        """But for the marks."""
        return self.process.metric(FAULTS) - self.marks

    def stop(self):
        assert self.process.end() == 0, self.process.output()[-3000:]
        for each in self.workers + self.publishers:
            each.stop()


def started(*flags):
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--access-log", *flags)
    gateway.wait_ready("/health")
    return gateway


def workers(gateway):
    return requests.get(gateway.url + "/workers", timeout=60).json()["workers"]


def chosen(gateway, path, body):
    """Which worker a request went to (0, 1), and why."""
    name = f"request-{next(FRESH)}"
    reply = requests.post(gateway.url + path, json=body, headers={"x-request-id": name}, timeout=60)
    assert reply.status_code == 200, reply.text

    def line():
        return next((line for line in gateway.output().splitlines() if f'"{name}"' in line), None)

    wait_until(line, "the request is not in the log")
    entry = json.loads(line()[line().index("{"):])
    ids = [worker["id"] for worker in workers(gateway)]
    return ids.index(entry["worker"]), entry["reason"]


@pytest.fixture
def gateway(tmp_path):
    made = []

    def make(**how):
        made.append(Gateway(tmp_path, **how))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.mark.parametrize("layout", [sglang, vllm, vllm_array])
def test_prompts_go_where_the_events_say_that_they_are(gateway, layout):
    fleet = gateway(layout=layout)
    first, second, third = prompt(), prompt(), prompt()
    names = fleet.publishers[1].stored(first)
    fleet.publishers[0].stored(second)
    gone = fleet.publishers[1].stored(third)
    fleet.publishers[1].removed(gone)
    fleet.settle()
    assert fleet.chosen(first) == (1, "cached")
    assert fleet.chosen(second) == (0, "cached")
    assert fleet.chosen(third)[1] == "least cost"
    # It was sent there itself, and is believed to be there until it is said to be gone.
    fleet.publishers[1].removed(names)
    fleet.settle(1)
    assert fleet.chosen(first)[1] == "least cost"
    assert fleet.faults() == 0


def test_an_api_that_names_a_model_finds_its_tokens_too(gateway):
    fleet = gateway()
    ids = prompt()
    fleet.publishers[1].stored(ids)
    fleet.settle(1)
    body = {"model": "m", "prompt": ids, "max_tokens": 1}
    assert chosen(fleet.process, "/v1/completions", body) == (1, "cached")


def test_what_was_lost_is_asked_for_where_it_can_be_replayed(gateway):
    past, lost, after = prompt(), prompt(), prompt()
    fleet = gateway(replay=True, before=lambda publishers: publishers[1].stored(past))
    # What was published before the gateway came is replayed at once.
    fleet.settle()
    assert fleet.chosen(past) == (1, "cached")
    resets = fleet.resets()
    fleet.publishers[1].stored(lost, lost=True)
    fleet.publishers[1].stored(after)
    fleet.settle(1)
    assert fleet.chosen(lost) == (1, "cached")
    assert fleet.chosen(after) == (1, "cached")
    assert fleet.resets() == resets
    # What is not kept any more is lost, and with it all that was told.
    del fleet.publishers[1].kept[:]
    fleet.publishers[1].removed([1], lost=True)
    del fleet.publishers[1].kept[:]
    kept = prompt()
    fleet.publishers[1].stored(kept)
    fleet.settle(1)
    assert fleet.chosen(kept) == (1, "cached")
    assert fleet.resets() > resets
    assert fleet.faults() == 0


def test_a_gap_that_cannot_be_filled_forgets_what_was_told(gateway):
    fleet = gateway()
    before, lost, after = prompt(), prompt(), prompt()
    fleet.publishers[1].stored(before)
    fleet.settle(1)
    resets = fleet.resets()
    fleet.publishers[1].stored(lost, lost=True)
    fleet.publishers[1].stored(after)
    fleet.settle(1)
    assert fleet.resets() == resets + 1
    assert fleet.chosen(before)[1] == "least cost"
    assert fleet.chosen(lost)[1] == "least cost"
    assert fleet.chosen(after) == (1, "cached")


def test_a_publisher_that_restarts_is_followed_anew(gateway):
    fleet = gateway()
    before, after = prompt(), prompt()
    fleet.publishers[1].stored(before)
    fleet.settle(1)
    resets = fleet.resets()
    fleet.publishers[1].end()
    fleet.wait_followed(1)
    fleet.publishers[1].start()
    fleet.publishers[1].wait_subscribed()
    fleet.wait_followed(2)
    fleet.publishers[1].stored(after)
    fleet.settle(1)
    assert fleet.resets() > resets
    assert fleet.chosen(before)[1] == "least cost"
    assert fleet.chosen(after) == (1, "cached")
    # Behind a proxy the connection stays: the numbers tell.
    again = prompt()
    fleet.publishers[1].stored(again, number=0)
    fleet.settle(1)
    assert fleet.chosen(again) == (1, "cached")
    assert fleet.process.output().count("reports what its cache holds") == 2


def test_messages_that_cannot_be_read_are_counted_and_said_once(gateway):
    fleet = gateway()
    socket, number = fleet.publishers[1].socket, (7).to_bytes(8, "big")
    bad = [[b"kv-events"], [b"kv-events", b"123", b"x"], [b"kv-events", number, b"x", b"y"], [b"kv-events", number, b"\x93\xcb"],
           [b"kv-events", (8).to_bytes(8, "big"), b""]]
    for message in bad:
        socket.send_multipart(message)
    wait_until(lambda: fleet.faults() >= len(bad), lambda: f"{fleet.faults()}: {fleet.process.output()[-3000:]}")
    fleet.publishers[1].publish(["BlockMoved", 1, 2], number=9)
    wait_until(lambda: fleet.faults() == len(bad) + 1, lambda: f"{fleet.faults()}")
    assert fleet.process.output().count("its KV-cache events:") == 1
    ids = prompt()
    fleet.publishers[1].stored(ids)
    fleet.settle(1)
    assert fleet.chosen(ids) == (1, "cached")


def test_text_is_forgotten_when_the_cache_is_cleared(gateway):
    fleet = gateway()
    body = {"model": "m", "messages": [{"role": "user", "content": STORY}]}
    home, _ = chosen(fleet.process, "/v1/chat/completions", body)
    assert chosen(fleet.process, "/v1/chat/completions", body) == (home, "cached")
    fleet.publishers[home].cleared()
    fleet.settle(home)
    assert chosen(fleet.process, "/v1/chat/completions", body)[1] == "least cost"


def test_servers_say_themselves_where_they_publish_and_each_rank_has_a_port():
    port = free_port(2)
    ranks = [Publisher(port=port), Publisher(port=port + 1)]
    silent = HttpWorker()
    telling = HttpWorker({"kv_events": {"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": port,
                                        "topic": "kv-events", "dp_size": 2}})
    gateway = started("--worker-urls", silent.url, telling.url)
    try:
        wait_until(lambda: [one["kv_events"] for one in workers(gateway)] == [False, True], lambda: gateway.output())
        prompts = [prompt(), prompt()]
        for rank, ids in zip(ranks, prompts):
            rank.wait_subscribed()
            rank.stored(ids)
            rank.mark()
        wait_until(lambda: gateway.metric(FAULTS) == 2, lambda: gateway.output())
        for ids in prompts:
            assert chosen(gateway, "/generate", {"input_ids": ids}) == (1, "cached")
    finally:
        assert gateway.end() == 0
        for each in [*ranks, silent, telling]:
            each.stop()


def test_workers_are_named_with_their_events_by_a_flag_and_over_http():
    publishers = [Publisher(), Publisher(vllm)]
    servers = [HttpWorker(), HttpWorker()]
    gateway = started("--worker-urls", servers[0].url, "--kv-events-config", json.dumps(publishers[0].config()))
    try:
        body = {"url": servers[1].url, "kv_events": "localhost:1"}
        reply = requests.post(gateway.url + "/workers", json=body, timeout=60)
        assert reply.status_code == 400 and "kv_events: endpoint: `localhost:1`" in reply.text, reply.text
        body["kv_events"] = {"endpoint": f"tcp://127.0.0.1:{publishers[1].port}", "topic": "kv-events"}
        assert requests.post(gateway.url + "/workers", json=body, timeout=60).status_code == 202
        wait_until(lambda: [one["kv_events"] for one in workers(gateway)] == [True, True], lambda: gateway.output())
        # Who is removed is not followed any more.
        requests.delete(f"{gateway.url}/workers/{workers(gateway)[1]['id']}", timeout=60)
        assert [one["kv_events"] for one in workers(gateway)] == [True]
    finally:
        assert gateway.end() == 0
        for each in publishers + servers:
            each.stop()


def test_a_policy_that_takes_no_events_has_nothing_followed():
    publisher, server = Publisher(), HttpWorker({"kv_events": {"endpoint_port_base": 1}})
    gateway = started("--policy", "round_robin", "--worker-urls", server.url, "--kv-events-config",
                      json.dumps(publisher.config()))
    try:
        wait_until(lambda: "/v1/loads" in server.asked, "its load is not asked for")
        assert chosen(gateway, "/generate", {"input_ids": prompt()})[0] == 0
        assert not workers(gateway)[0]["kv_events"]
        assert "/server_info" not in server.asked
        assert gateway.metric("portico_gateway_kv_event_resets_total") == 0
    finally:
        assert gateway.end() == 0
        publisher.stop()
        server.stop()


@pytest.mark.parametrize("text, said", [
    ("10.0.0.1:5557", "endpoint: `10.0.0.1:5557` is not tcp://host:port or ipc://path"),
    ("{publisher: 'null'}", "publisher must be zmq"),
    ("{endpoint: 'tcp://*:5557', topics: x}", "there is no `topics`"),
])
def test_a_wrong_address_of_events_is_named_in_the_file(tmp_path, text, said):
    file = tmp_path / "fleet.yaml"
    file.write_text(f"workers:\n  - url: http://10.0.0.1:30000\n    kv-events: {text}\n")
    checked = subprocess.run([str(BINARY), "check", str(file)], capture_output=True, text=True, timeout=60)
    assert checked.returncode != 0
    assert f"kv-events: {said}" in checked.stdout + checked.stderr
