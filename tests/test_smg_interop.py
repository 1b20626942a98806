"""Portico and the protocol of smg's workers as its own package has it (PyPI: smg-grpc-proto), in both roles."""
import concurrent.futures
import json
import threading

import grpc
import pytest
import requests
from conftest import ROOT, wait_until
from gateway_fleet import Process

proto = pytest.importorskip("smg_grpc_proto")
pb = proto.sglang_scheduler_pb2
pb_grpc = proto.sglang_scheduler_pb2_grpc
common = __import__("smg_grpc_proto.generated.common_pb2", fromlist=["x"])

DEMO = ROOT / "models/demo"
STORY = "A story that many ask for. " * 80


@pytest.fixture(scope="module")
def server():
    made = Process("serve", "--engine", "mock", "--mock-kv-cells", "4000", "--mock-step-ms", "1")
    made.wait_ready()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield pb_grpc.SglangSchedulerStub(channel)


def sampling(**fields):
    return pb.SamplingParams(**{"temperature": 0, "top_p": 1, "top_k": -1, "repetition_penalty": 1, "n": 1,
                                "max_new_tokens": 6, "ignore_eos": True, **fields})


def test_a_server_tells_what_the_package_reads(stub):
    assert stub.HealthCheck(pb.HealthCheckRequest()).healthy
    info = stub.GetModelInfo(pb.GetModelInfoRequest())
    assert info.is_generation and info.vocab_size > 0 and info.max_context_length > 0
    assert stub.GetServerInfo(pb.GetServerInfoRequest()).server_type
    loads = stub.GetLoads(pb.GetLoadsRequest()).loads
    assert [load.max_total_num_tokens for load in loads] == [4000]
    chunks = list(stub.GetTokenizer(common.GetTokenizerRequest()))
    assert chunks[-1].sha256 and sum(len(chunk.data) for chunk in chunks) > 1000


def test_a_server_answers_the_packages_requests(stub):
    ids = [40 + i % 9 for i in range(64)]
    request = pb.GenerateRequest(request_id="one", tokenized=pb.TokenizedInput(input_ids=ids), sampling_params=sampling(),
                                 stream=True)
    replies = list(stub.Generate(request))
    assert [reply.WhichOneof("response") for reply in replies[-1:]] == ["complete"]
    streamed = [one for reply in replies if reply.WhichOneof("response") == "chunk" for one in reply.chunk.token_ids]
    last = replies[-1].complete
    assert streamed == list(last.output_ids) and len(streamed) == 6
    assert last.finish_reason == "length" and last.prompt_tokens == 64
    whole = list(stub.Generate(pb.GenerateRequest(request_id="two", tokenized=pb.TokenizedInput(input_ids=ids),
                                                  sampling_params=sampling())))
    assert list(whole[-1].complete.output_ids) == streamed


def test_a_server_tells_its_cache_as_the_package_has_snapshots(stub):
    ids = [300 + i % 5 for i in range(80)]
    list(stub.Generate(pb.GenerateRequest(request_id="three", tokenized=pb.TokenizedInput(input_ids=ids),
                                          sampling_params=sampling())))
    stream = stub.SubscribeKvEvents(common.SubscribeKvEventsRequest())
    blocks, count = {}, None
    for batch in stream:
        assert batch.HasField("snapshot")
        assert (batch.snapshot.index == 0) == (batch.events[0].WhichOneof("data") == "cleared")
        for event in batch.events:
            blocks.update((block.block_hash, list(block.token_ids)) for block in event.stored.blocks)
        count = batch.snapshot.blocks
        if batch.snapshot.index + 1 == batch.snapshot.count:
            break
    stream.cancel()
    assert len(blocks) == count and ids[:16] in blocks.values()


class Worker(pb_grpc.SglangSchedulerServicer):
    """A worker of smg's: repeats the last token, and tells what it holds as a relay does."""

    def __init__(self):
        self.asked = []
        self.held = []  # events of prompts
        self.cleared = 0
        self.changed = threading.Condition()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        pb_grpc.add_SglangSchedulerServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def HealthCheck(self, _request, _context):
        return pb.HealthCheckResponse(healthy=True)

    def GetModelInfo(self, _request, _context):
        return pb.GetModelInfoResponse(model_path="org/model", is_generation=True, served_model_name="theirs",
                                       max_context_length=2048, vocab_size=4096, eos_token_ids=[2], model_type="qwen3")

    def GetServerInfo(self, _request, _context):
        return pb.GetServerInfoResponse(server_type="sglang", max_total_num_tokens=8192)

    def GetLoads(self, _request, _context):
        return pb.GetLoadsResponse(dp_rank_count=1, loads=[pb.SchedulerLoad(max_total_num_tokens=8192, num_used_tokens=80)])

    def hold(self, ids):
        with self.changed:
            self.held.append(list(ids))
            self.changed.notify_all()

    def drop_all(self):
        with self.changed:
            self.held.clear()
            self.cleared += 1
            self.changed.notify_all()

    def Generate(self, request, _context):
        self.asked.append(request)
        ids = list(request.tokenized.input_ids)
        made = [ids[-1]] * request.sampling_params.max_new_tokens
        for at, one in enumerate(made):
            chunk = pb.GenerateStreamChunk(token_ids=[one], prompt_tokens=len(ids), completion_tokens=at + 1)
            yield pb.GenerateResponse(request_id=request.request_id, chunk=chunk)
        done = pb.GenerateComplete(output_ids=made, finish_reason="length", prompt_tokens=len(ids),
                                   completion_tokens=len(made))
        yield pb.GenerateResponse(request_id=request.request_id, complete=done)
        self.hold(ids)

    @staticmethod
    def stored(ids):
        """Pages of 32 tokens, which is not the index's size."""
        event = common.KvCacheEvent(stored=common.KvBlocksStored())
        for at in range(0, len(ids) // 32 * 32, 32):
            event.stored.blocks.add(block_hash=hash(tuple(ids[:at + 32])), token_ids=ids[at:at + 32], block_size=32)
        return event

    def SubscribeKvEvents(self, _request, context):
        number = 7
        told, cleared = 0, None
        while context.is_active():
            with self.changed:
                batch = common.KvEventBatch(sequence_number=number)
                if cleared is None:
                    batch.snapshot.CopyFrom(common.KvSnapshotChunk(index=0, count=1))
                if cleared != self.cleared:
                    batch.events.append(common.KvCacheEvent(cleared=common.KvCacheCleared()))
                    told, cleared = 0, self.cleared
                batch.events.extend(self.stored(ids) for ids in self.held[told:])
                told = len(self.held)
            yield batch
            number += 1
            with self.changed:
                self.changed.wait_for(lambda: told != len(self.held) or cleared != self.cleared or not context.is_active(), 0.5)

    def stop(self):
        self.server.stop(None)


@pytest.fixture(scope="module")
def door():
    workers = [Worker(), Worker()]
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--show-workers", "--policy", "cost",
                      "--tokenizer-path", str(DEMO),
                      "--worker-urls", *(f"grpc://127.0.0.1:{worker.port}" for worker in workers))
    gateway.wait_ready("/readiness")
    yield gateway, workers
    status = gateway.end()
    for worker in workers:
        worker.stop()
    assert status == 0, gateway.output()[-3000:]


def chat(gateway, content, **fields):
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 5, **fields}
    reply = requests.post(gateway.url + "/v1/chat/completions", json=body, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply


def test_a_gateway_uses_the_packages_servers_as_workers(door):
    gateway, workers = door
    reply = chat(gateway, "Hello there").json()
    assert reply["model"] == "theirs" and reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["completion_tokens"] == 5
    asked = [request for worker in workers for request in worker.asked]
    assert len(asked) == 1 and asked[0].sampling_params.max_new_tokens == 5
    events = requests.post(gateway.url + "/v1/chat/completions", stream=True, timeout=60, json={
        "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, "stream": True})
    lines = [line[6:] for line in events.iter_lines() if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]" and json.loads(lines[-2])["choices"][0]["finish_reason"] == "length"


def test_a_gateway_follows_what_the_packages_servers_tell(door):
    gateway, workers = door
    listed = lambda: requests.get(gateway.url + "/workers", timeout=60).json()["workers"]
    wait_until(lambda: all(worker["kv_events"] for worker in listed()), lambda: f"{listed()}: {gateway.output()}")
    where = lambda: int(chat(gateway, STORY).headers["x-portico-worker"][1:]) - 1
    home = where()
    assert where() == home
    ids = list(workers[home].asked[-1].tokenized.input_ids)
    # It loses all, and the other one gets the prompt from elsewhere.
    workers[home].drop_all()
    workers[1 - home].hold(ids)
    wait_until(lambda: where() == 1 - home, "it goes where nothing is held")
