"""gzip with large messages: what goes over the wire, and what a small message that unpacks to a large one costs."""
import contextlib
import random
import socket
import threading

import grpc
import pytest

from conftest import SANITIZED
from grpc_client import Service

MEGABYTE = 1 << 20
Code = grpc.StatusCode


class Relay:
    """Hands one connection on, and counts what goes each way."""

    def __init__(self, port):
        self.counts = {"sent": 0, "received": 0}
        self.server = socket.create_connection(("127.0.0.1", port))
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        self.client, _ = self.door.accept()
        for name, source, to in [("sent", self.client, self.server), ("received", self.server, self.client)]:
            threading.Thread(target=self.pump, args=(name, source, to), daemon=True).start()

    def pump(self, name, source, to):
        with contextlib.suppress(OSError):  # one side has left
            while data := source.recv(1 << 16):
                self.counts[name] += len(data)
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)


def gzip_client(port, limit=64 * MEGABYTE):
    options = [("grpc.max_receive_message_length", limit), ("grpc.max_send_message_length", -1)]
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options, compression=grpc.Compression.Gzip)
    return Service(channel, "sglang.runtime.v1.SglangService")


def test_ten_megabytes_go_compressed_both_ways(mock):
    relay = Relay(mock.port)
    service = gzip_client(relay.port)
    text = "word " * (2 * MEGABYTE)
    answer = service.Tokenize(text=text, add_special_tokens=False)
    assert answer.input_text == text and answer.count == len(answer.tokens) > MEGABYTE
    assert service.Detokenize(tokens=answer.tokens).text == text
    assert max(relay.counts.values()) < MEGABYTE < min(relay.counts.values()) * 100


def test_messages_that_hardly_compress_arrive_too(mock):
    rng = random.Random(1)
    text = " ".join(f"{rng.getrandbits(32):08x}" for _ in range(MEGABYTE))
    assert gzip_client(mock.port).Tokenize(text=text).input_text == text


def test_a_client_with_grpcs_own_limit_is_told_that_the_answer_is_too_large(mock):
    service = gzip_client(mock.port, limit=4 * MEGABYTE)
    with pytest.raises(grpc.RpcError) as refused:
        service.Tokenize(text="word " * MEGABYTE)
    assert refused.value.code() == Code.RESOURCE_EXHAUSTED
    assert service.HealthCheck().healthy


def peak_mib(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))


def test_the_limit_is_that_of_the_unpacked_message_which_is_not_unpacked_further(start):
    server = start("--engine", "mock", "--grpc-max-message-size", "1MiB")
    service = gzip_client(server.port)
    assert service.Tokenize(text="x" * 1_000_000).count > 0
    before = peak_mib(server)
    with pytest.raises(grpc.RpcError) as refused:
        service.Tokenize(text="\0" * (100 * MEGABYTE))  # 100 KB on the wire
    assert refused.value.code() == Code.RESOURCE_EXHAUSTED
    assert "1048576" in refused.value.details()
    if not SANITIZED:
        assert peak_mib(server) < before + 16
    assert service.HealthCheck().healthy
