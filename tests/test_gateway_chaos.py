"""What clients see while workers are killed, stopped, replaced and lie: whole answers never fail while a worker is healthy,
and no stream ends without a word."""
import contextlib
import json
import os
import signal
import threading
import time

import pytest
import requests
from conftest import SANITIZED, freeze, wait_until
from gateway_fleet import Process, RawWorker, mock_worker

WORKER = ("--mock-ttft-ms", "10", "--mock-itl-ms", "5")


class Load:
    """Clients that ask all the time, each request on a connection of its own, and what they got."""

    def __init__(self, url, whole=4, streams=3):
        self.url, self.stopped = url, threading.Event()
        self.statuses, self.streams, self.errors = [], [], []
        self.threads = [threading.Thread(target=self._run, args=(self._whole,)) for _ in range(whole)]
        self.threads += [threading.Thread(target=self._run, args=(self._stream,)) for _ in range(streams)]
        for thread in self.threads:
            thread.start()

    def _run(self, ask):
        count = 0
        while not self.stopped.is_set():
            count += 1
            try:
                ask(f"Question {count % 7} of {threading.get_ident()}")
            except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
                self.errors.append(repr(error))

    def _post(self, content, **fields):
        body = {"messages": [{"role": "user", "content": content}], **fields}
        return requests.post(self.url + "/v1/chat/completions", json=body, timeout=60, stream="stream" in fields)

    def _whole(self, content):
        reply = self._post(content, max_tokens=4)
        self.statuses.append(reply.status_code)
        if reply.status_code == 200:
            assert reply.json()["usage"]["completion_tokens"] == 4
        else:
            self.errors.append(reply.text)

    def _stream(self, content):
        reply = self._post(content, max_tokens=60, stream=True)
        said = [line[6:] for line in reply.iter_lines(decode_unicode=True) if line.startswith("data: ")]
        cut = any("error" in json.loads(event) for event in said[:-1])
        ended = any(json.loads(event).get("choices", [{}])[0].get("finish_reason") for event in said[:-1] if not cut)
        self.streams.append((reply.status_code, said[-1] if said else reply.text, "cut" if cut else ended))

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        """Stops it: all whole answers are good, and every stream has had its end."""
        self.stop()
        assert not self.errors, self.errors[:5]
        assert set(self.statuses) == {200}
        bad = [stream for stream in self.streams if stream[0] != 200 or stream[1] != "[DONE]" or not stream[2]]
        assert not bad, bad[:5]
        return sum(stream[2] == "cut" for stream in self.streams)


class Fleet:
    """Three workers, of which one takes tokens, and a gateway that reads them from a file."""

    def __init__(self, folder):
        self.workers = [mock_worker(*WORKER) for _ in range(3)]
        for worker in self.workers:
            worker.wait_ready()
        schemes = ("http", "http", "grpc")
        self.urls = [f"{scheme}://127.0.0.1:{worker.port}" for scheme, worker in
                     zip(schemes, self.workers, strict=True)]
        self.file = folder / "fleet.yaml"
        self.write(self.urls, "round_robin")
        self.gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--config", self.file,
                               "--worker-stall-timeout-secs", "8" if SANITIZED else "4",
                               "--health-check-timeout-secs", "4" if SANITIZED else "2")
        self.url = self.gateway.url
        self.gateway.wait_ready("/liveness")
        self.wait_healthy(3)

    def write(self, urls, policy, label="none"):
        self.file.write_text(f"policy: {policy}\nworkers:\n" + "".join(
            f"  - {{url: '{url}', labels: {{of: {label}}}}}\n" for url in urls))

    def listed(self):
        listing = requests.get(self.url + "/workers", timeout=60).json()
        return {worker["url"]: worker for worker in listing["workers"]}

    def healthy(self):
        return sum(worker["is_healthy"] for worker in self.listed().values())

    def wait_healthy(self, count):
        wait_until(lambda: self.healthy() == count, lambda: f"{self.listed()}: {self.gateway.output()[-3000:]}")

    def at_rest(self):
        listed = self.listed().values()
        return listed and all(worker["load"] == 0 and worker["prefill_tokens"] == 0 for worker in listed)

    def wait_progress(self, index, more=3):
        """Until the worker has got so many requests more; how long that took."""
        url, started = self.urls[index], time.monotonic()
        before = self.listed()[url]["requests_total"]
        wait_until(lambda: self.listed()[url]["requests_total"] >= before + more, lambda: f"{url} gets nothing")
        return time.monotonic() - started

    def stop(self):
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.process.pid, signal.SIGCONT)
        status = self.gateway.end()
        for worker in self.workers:
            worker.kill()
        assert status == 0, self.gateway.output()[-3000:]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    made = Fleet(tmp_path_factory.mktemp("fleet"))
    yield made
    made.stop()


@pytest.fixture
def load(fleet):
    made = Load(fleet.url)
    yield made
    made.stop()
    wait_until(fleet.at_rest, lambda: f"requests are still counted: {fleet.listed()}")


@pytest.mark.parametrize("index", [0, 2], ids=["http", "tokens"])
def test_a_killed_worker_fails_no_whole_answer_and_is_used_again_at_once(fleet, load, index):
    for _ in range(2):
        fleet.wait_progress(index)
        victim, url = fleet.workers[index], fleet.urls[index]
        victim.kill()
        wait_until(lambda: not fleet.listed()[url]["is_healthy"], "the dead worker counts as healthy")
        sent = fleet.listed()[url]["requests_total"]
        time.sleep(0.7)
        assert fleet.listed()[url]["requests_total"] == sent, "requests go to a worker that is known to be dead"
        victim.start()
        victim.wait_ready()
        began = time.monotonic()
        wait_until(lambda: fleet.listed()[url]["requests_total"] > sent, "the restarted worker gets nothing")
        assert time.monotonic() - began < 50, "healthy workers are probed every minute, those that are down more often"
    load.check()


@pytest.mark.parametrize("index", [1, 2], ids=["http", "tokens"])
def test_a_stopped_worker_loses_its_whole_answers_to_others(fleet, load, index):
    fleet.wait_progress(index)
    url, pid = fleet.urls[index], fleet.workers[index].process.pid
    try:
        freeze(pid)
        wait_until(lambda: not fleet.listed()[url]["is_healthy"], "the stopped worker counts as healthy")
        before = len(load.statuses)
        wait_until(lambda: len(load.statuses) > before + 20, "nothing is answered any more")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: fleet.listed()[url]["is_healthy"], "the worker that goes on is not used again")
    fleet.wait_progress(index)
    load.check()


def answer_badly(connection, head, _body, turn=iter(range(10**9))):
    """A different kind of nonsense each time; False closes the connection."""
    kinds = [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"half\":",
             b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}",
             b"HTTP/1.1 200 OK\r\n" + b"X-Endless: yes\r\n" * 10000, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
             b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"]
    del head
    connection.sendall(kinds[next(turn) % len(kinds)])
    return False


def test_a_worker_that_answers_nonsense_costs_no_whole_answer(fleet, load):
    liar = RawWorker(answer_badly)
    try:
        reply = requests.post(fleet.url + "/workers", json={"url": liar.url}, timeout=60)
        assert reply.status_code < 300, reply.text
        wait_until(lambda: len(liar.requests) >= 9, "the liar gets nothing")
        number = fleet.listed()[liar.url]["id"]
        assert requests.delete(f"{fleet.url}/workers/{number}", timeout=60).status_code < 300
    finally:
        liar.stop()
    for index in range(3):
        fleet.wait_progress(index)
    load.check()


def test_reloading_under_load_loses_nothing(fleet, load):
    for urls, policy in ((fleet.urls[:2], "power_of_two"), (fleet.urls[1:], "cost"), (fleet.urls, "round_robin")):
        fleet.write(urls, policy)
        os.kill(fleet.gateway.process.pid, signal.SIGHUP)
        wait_until(lambda urls=urls: sorted(fleet.listed()) == sorted(urls), lambda: fleet.gateway.output()[-2000:])
        before = len(load.statuses)
        wait_until(lambda before=before: len(load.statuses) > before + 10, "nothing is answered any more")
    for label in ("one", "two"):
        # All workers are replaced, as new ones.
        fleet.write(fleet.urls, "round_robin", label)
        os.kill(fleet.gateway.process.pid, signal.SIGHUP)
        wait_until(lambda label=label: [one["labels"] for one in fleet.listed().values()] == [{"of": label}] * 3,
                   lambda: fleet.gateway.output()[-2000:])
    fleet.wait_healthy(3)
    assert load.check() == 0, "streams were cut"


def test_sigterm_under_load_loses_nothing(fleet):
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--config", fleet.file)
    gateway.wait_ready("/readiness")
    ended = []

    def ask(number):
        body = {"messages": [{"role": "user", "content": f"Number {number}"}], "max_tokens": 500,
                "stream": number % 2 == 0}
        reply = requests.post(gateway.url + "/v1/chat/completions", json=body, timeout=60)
        good = "[DONE]" in reply.text and "error" not in reply.text if number % 2 == 0 else reply.json()["choices"]
        ended.append((reply.status_code, bool(good)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()

    def arrived():
        workers = requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
        return sum(worker["requests_total"] for worker in workers)

    wait_until(lambda: arrived() >= 12, "the requests do not arrive")
    assert gateway.end() == 0
    for thread in threads:
        thread.join()
    assert ended == [(200, True)] * 12


def test_all_counters_are_zero_in_the_end(fleet):
    fleet.wait_healthy(3)
    assert fleet.at_rest()
    assert all(worker["circuit_breaker"] == "closed" for worker in fleet.listed().values())
    for worker in fleet.workers:
        wait_until(lambda worker=worker: worker.metric("portico_requests_running") == 0, "a worker still computes")
