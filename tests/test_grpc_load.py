"""Many gRPC streams at once, and clients that do not read."""
import asyncio

import grpc
import grpc.aio

from conftest import BRIEF, wait_until
from grpc_client import LARGE, Client, Service


def channel(server, number):
    # Channels with equal options would share one connection.
    options = [*LARGE, ("grpc.use_local_subchannel_pool", 1), ("portico.test.channel", number)]
    return grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", options=options)


def run_streams(server, streams, connections, tokens):
    """Runs them all at once; each gives its text and whether its last message said so."""

    async def one(service, i):
        text = ""
        async for message in service.TextGenerate(text=f"stream number {i} of many", stream=True, timeout=300,
                                                  sampling_params={"max_new_tokens": tokens, "ignore_eos": True}):
            text += message.text
        return text, message.finished

    async def run():
        channels = [channel(server, i) for i in range(connections)]
        services = [Service(c, "sglang.runtime.v1.SglangService") for c in channels]
        answers = await asyncio.gather(*(one(services[i % connections], i) for i in range(streams)))
        for c in channels:
            await c.close()
        return answers

    return asyncio.run(run())


def resident_mib(server):
    with open(f"/proc/{server.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096 >> 20


def test_a_thousand_streams_on_one_connection(mock):
    for text, finished in run_streams(mock, 300 if BRIEF else 1000, 1, 8):
        assert finished and text.startswith("stream number")


def test_ten_thousand_streams_over_a_hundred_connections(start):
    server = start("--engine", "mock", "--mock-itl-ms", "50", "--max-running-requests", "12000",
                   "--max-queued-requests", "12000")
    before = resident_mib(server)
    for text, finished in run_streams(server, 1000 if BRIEF else 10_000, 100, 8):
        assert finished and text.startswith("stream number")
    assert resident_mib(server) - before < 512
    server.settle()


def test_a_client_that_does_not_read_stalls_only_itself_and_is_cut_off(start):
    # Slow enough that the stream does not end before the shard sees that nobody reads.
    server = start("--engine", "mock", "--mock-itl-ms", 1, "--max-unsent-bytes", "256KiB")
    client = Client(f"127.0.0.1:{server.port}")
    # The cumulative form makes megabytes of a few thousand tokens.
    stalled = client.sglang.TextGenerate(text="word " * 50, stream=True, metadata=[("x-portico-stream", "cumulative")],
                                         sampling_params={"max_new_tokens": 20_000, "ignore_eos": True})

    def cut_off():
        messages = list(client.sglang.TextGenerate(text="hello", stream=True, sampling_params={"max_new_tokens": 5}))
        assert messages[-1].finished
        return server.metric("portico_requests_aborted_total") > 0

    wait_until(cut_off, "the stalled stream goes on")
    server.settle()
    assert server.metric("portico_requests_aborted_total") == 1
    try:
        for message in stalled:
            assert not message.finished
        raise AssertionError("the stream ended well")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
