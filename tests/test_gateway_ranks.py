"""`--dp-aware`: each data-parallel rank of a server is a worker of its own."""
import json
import queue
import threading

import pytest
import requests
from conftest import ROOT, wait_until
from gateway_fleet import Fleet, Process, RawWorker
from grpc_client import message
from token_stand_ins import NativeStandIn, VllmStandIn


def server(ranks, port=0):
    """A worker of so many ranks; ranks[0] may change."""
    def answer(connection, head, body):
        said = json.dumps({"dp_size": ranks[0]} if head.split(b" ")[1] == b"/server_info" else {}).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said)

    return RawWorker(answer, port=port)


def asked(worker):
    return [(head.lower(), body) for head, body in worker.requests if b"/v1/completions" in head]


def workers(gateway):
    return requests.get(gateway.url + "/workers", timeout=60).json()["workers"]


def test_requests_are_spread_over_the_ranks_that_a_server_names():
    worker = server([2])
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--dp-aware", "--policy", "round_robin",
                      "--worker-urls", worker.url)
    try:
        gateway.wait_ready("/readiness")
        wait_until(lambda: all(one["is_healthy"] for one in workers(gateway)), lambda: str(workers(gateway)))
        assert [(one["url"], one["base_url"], one["dp_rank"], one["dp_size"]) for one in workers(gateway)] == [
            (f"{worker.url}@{rank}", worker.url, rank, 2) for rank in range(2)]
        for _ in range(4):
            requests.post(gateway.url + "/v1/completions", json={"prompt": "x"}, timeout=60,
                          headers={"X-Data-Parallel-Rank": "7"})
        told = [(json.loads(body)["data_parallel_rank"], head.count(b"x-data-parallel-rank"),
                 b"x-data-parallel-rank: %d\r\n" % json.loads(body)["data_parallel_rank"] in head)
                for head, body in asked(worker)]
        assert sorted(told) == [(0, 1, True)] * 2 + [(1, 1, True)] * 2
        chosen = requests.post(gateway.url + "/v1/completions", json={"routed_dp_rank": 1}, timeout=60)
        assert chosen.status_code == 400 and "routed_dp_rank" in chosen.text
        assert requests.post(f"{gateway.url}/remove_worker?url={worker.url}", timeout=60).status_code == 200
        assert workers(gateway) == []
        assert gateway.end() == 0
    finally:
        gateway.kill()
        worker.stop()


def test_a_worker_that_is_removed_while_it_is_asked_does_not_come_back_as_its_ranks():
    asked, go = queue.Queue(), threading.Semaphore(0)

    def answer(connection, head, body):
        asked.put(True)
        go.acquire(timeout=60)
        said = b'{"dp_size":2}'
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said)

    worker, other = RawWorker(answer), server([1])
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--dp-aware")
    try:
        gateway.wait_ready()
        for _ in range(10):  # the answer must come before the gateway's thread has seen that the worker is gone
            assert requests.post(f"{gateway.url}/add_worker?url={worker.url}", timeout=60).status_code == 200
            asked.get(timeout=60)
            assert requests.post(f"{gateway.url}/remove_worker?url={worker.url}", timeout=60).status_code == 200
            go.release()
        assert requests.post(f"{gateway.url}/add_worker?url={other.url}", timeout=60).status_code == 200
        wait_until(lambda: f"{other.url}@0" in [one["url"] for one in workers(gateway)], lambda: str(workers(gateway)))
        assert [one["url"] for one in workers(gateway)] == [f"{other.url}@0"]
        assert gateway.end() == 0
    finally:
        gateway.kill()
        worker.stop()
        other.stop()


def test_a_server_that_does_not_say_its_ranks_is_not_used():
    worker = server([None])
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--dp-aware", "--worker-urls", worker.url)
    try:
        wait_until(lambda: "has no dp_size" in gateway.output(), gateway.output)
        assert not gateway.answers("/readiness")
        refused = requests.post(gateway.url + "/v1/completions", json={}, timeout=60)
        assert refused.status_code == 503 and "1 of unknown dp_size" in refused.text
        assert not asked(worker)
        assert gateway.end() == 0
    finally:
        gateway.kill()
        worker.stop()


def test_a_server_of_portico_has_one_rank():
    """It did not say so: behind --dp-aware it was not used, though it was healthy."""
    fleet = Fleet(1, "--dp-aware", "--show-workers")
    try:
        fleet.wait_healthy(1)
        assert [(one["dp_rank"], one["dp_size"]) for one in workers(fleet)] == [(0, 1)]
        assert fleet.chat().status_code == 200
        for path, body in [("/v1/completions", {"prompt": "x"}), ("/generate", {"text": "x"}), ("/tokenize", {"prompt": "x"})]:
            answer = requests.post(fleet.url + path, json={"model": "demo", **body}, timeout=60)
            assert answer.status_code == 200, f"{path}: {answer.text}"
    finally:
        fleet.stop()


def test_a_server_that_is_gone_costs_no_attempt_on_its_other_ranks():
    """Each rank was tried on its own, so that a request could fail while another server was healthy."""
    gone, there = server([8]), server([1])
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--dp-aware",
                      "--policy", "round_robin", "--retry-max-retries", "2", "--worker-urls", gone.url, there.url)
    try:
        gateway.wait_ready("/readiness")
        wait_until(lambda: [one["is_healthy"] for one in workers(gateway)] == [True] * 9, lambda: str(workers(gateway)))
        flushed = requests.post(gateway.url + "/flush_cache", timeout=60).json()
        assert len(flushed["workers"]) == 2, "once for each server"
        gone.stop()
        for _ in range(9):
            assert requests.post(gateway.url + "/v1/completions", json={"prompt": "x"}, timeout=60).status_code == 200
        assert [one["base_url"] for one in workers(gateway) if one["is_healthy"]] == [there.url]
        assert gateway.end() == 0
    finally:
        gateway.kill()
        there.stop()


def test_a_rank_that_drains_still_does_when_its_server_comes_back_with_more():
    """All ranks took requests again."""
    worker = server([2])
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--dp-aware", "--policy", "round_robin",
                      "--worker-urls", worker.url)

    def named():
        return {one["dp_rank"]: one for one in workers(gateway) if one["is_healthy"]}

    try:
        wait_until(lambda: gateway.answers("/readiness") and len(named()) == 2, gateway.output)
        drained = requests.put(f"{gateway.url}/workers/{named()[1]['id']}", json={"draining": True, "priority": 7}, timeout=60)
        assert drained.status_code < 300
        worker.stop()
        # A connection is refused, so that it is down; its ranks are asked for again when it is back.
        wait_until(lambda: requests.post(gateway.url + "/v1/completions", json={"prompt": "x"}, timeout=60).status_code == 503 and not named(), gateway.output)
        worker = server([3], port=worker.port)
        wait_until(lambda: len(named()) == 3, gateway.output)
        assert [(named()[rank]["draining"], named()[rank]["priority"]) for rank in range(3)] == [(False, 50), (True, 7), (False, 50)]
        for _ in range(4):
            assert requests.post(gateway.url + "/v1/completions", json={"prompt": "x"}, timeout=60).status_code == 200
        assert {json.loads(body)["data_parallel_rank"] for _, body in asked(worker)} == {0, 2}
        assert gateway.end() == 0
    finally:
        gateway.kill()
        worker.stop()


class RankedVllm(VllmStandIn):
    def GetServerInfo(self, _request, _context):
        return message(self.package + "GetServerInfoResponse", server_type="vllm", data_parallel_size=2)

    def GetLoads(self, _request, _context):
        reply = message(self.package + "GetLoadsResponse", dp_rank_count=2)
        for rank in range(2):
            reply.loads.add(dp_rank=rank, num_running_reqs=10 + rank, max_total_num_tokens=1000)
        return reply

    def ranks(self):
        return [one.data_parallel_rank for one in self.asked if one.HasField("data_parallel_rank")]


class RankedNative(NativeStandIn):
    def GetServerInfo(self, _request, _context):
        return message(self.package + "GetServerInfoResponse", json_info=json.dumps(
            {"served_model_name": "native-model", "max_total_num_tokens": 50000, "dp_size": 2}))

    def GetLoad(self, _request, _context):
        return message(self.package + "GetLoadResponse", json_info=json.dumps(
            [{"dp_rank": rank, "num_running_reqs": 10 + rank} for rank in range(2)]))

    def ranks(self):
        return [one.routed_dp_rank for one in self.asked if one.HasField("routed_dp_rank")]


@pytest.mark.parametrize("scheme", ["grpc://", ""])
@pytest.mark.parametrize("make", [RankedVllm, RankedNative])
def test_ranks_of_workers_that_take_tokens_are_workers_too(make, scheme):
    """Such servers were one worker, and chose a rank without regard to what it had cached."""
    worker = make([5, 6, 2], ROOT / "models/demo")
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--dp-aware", "--policy", "round_robin",
                      "--worker-urls", f"{scheme}127.0.0.1:{worker.port}")

    def running():
        return sorted((one.get("reported_load") or {}).get("running_requests", -1) for one in workers(gateway))

    try:
        gateway.wait_ready("/readiness")
        wait_until(lambda: [one["is_healthy"] for one in workers(gateway)] == [True, True], lambda: str(workers(gateway)))
        assert [one["dp_rank"] for one in workers(gateway)] == [0, 1]
        wait_until(lambda: running() == [10, 11], lambda: str(workers(gateway)))
        for _ in range(4):
            reply = requests.post(gateway.url + "/v1/chat/completions", timeout=60,
                                  json={"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8})
            assert reply.status_code == 200, reply.text
        assert sorted(worker.ranks()) == [0, 0, 1, 1]
        assert gateway.end() == 0
    finally:
        gateway.kill()
        worker.stop()
