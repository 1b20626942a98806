"""What carries gRPC: its own port and flags, TLS with client certificates and renewal, age and drain of connections."""
import concurrent.futures
import ssl
import subprocess

import grpc
import pytest
import requests

from conftest import free_port, wait_until
from grpc_client import Client

MOCK = ("--engine", "mock")


def connect(port, **keywords):
    return Client(f"127.0.0.1:{port}", **keywords)


def code_of(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()


def test_the_second_port_serves_the_same(start):
    port = free_port()
    server = start(*MOCK, "--grpc-port", port)
    for each in (server.port, port):
        assert connect(each).sglang.HealthCheck().healthy


def test_disabled_grpc_is_refused_and_http_goes_on(start):
    server = start(*MOCK, "--disable-grpc")
    assert code_of(connect(server.port).sglang.HealthCheck) == grpc.StatusCode.UNKNOWN  # HTTP status 415
    assert server.chat("hello", max_tokens=2).status_code == 200


def test_a_message_over_its_limit_is_refused_by_name(start):
    server = start(*MOCK, "--grpc-max-message-size", "64KiB")
    client = connect(server.port)
    assert client.sglang.Tokenize(text="x" * 60000).count > 0
    assert code_of(lambda: client.sglang.Tokenize(text="x" * 70000)) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_the_access_log_names_the_trace(start):
    server = start(*MOCK, "--access-log")
    client = connect(server.port)
    trace = "0af7651916cd43dd8448eb211c80319c"
    for bad in ("", "00-" + "z" * 32 + "-b7ad6b7169203331-01", trace):
        assert client.sglang.HealthCheck(metadata=[("traceparent", bad)]).healthy
    parent = f"00-{trace}-b7ad6b7169203331-01"
    assert client.sglang.HealthCheck(metadata=[("traceparent", parent)]).healthy
    requests.get(f"{server.url}/v1/models", headers={"traceparent": parent}, timeout=60)
    wait_until(lambda: server.output().count(f" trace {trace}\n") == 2, server.output)
    assert server.output().count("SglangService/HealthCheck OK") == 4
    assert server.output().count(" trace ") == 2


def long_stream(client, tokens=300):
    return client.sglang.TextGenerate(text="Say something long", stream=True,
                                      sampling_params={"max_new_tokens": tokens, "ignore_eos": True})


def finished(messages):
    return [message.finished for message in messages][-1]


def test_an_old_connection_ends_after_its_streams(start):
    server = start(*MOCK, "--mock-itl-ms", "10", "--grpc-max-connection-age", "0.5")
    client = connect(server.port)
    assert finished(long_stream(client))  # 3 s on a connection that may have half a second
    assert client.sglang.HealthCheck().healthy


def test_a_drain_lets_streams_finish(start):
    server = start(*MOCK, "--mock-itl-ms", "5")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        streams = [long_stream(connect(server.port, options=[("grpc.use_local_subchannel_pool", 1)])) for _ in range(3)]
        firsts = [next(stream) for stream in streams]
        results = [pool.submit(lambda s=stream: [m.finished for m in s][-1]) for stream in streams]
        server.process.terminate()
        assert all(result.result(120) for result in results) and not any(first.finished for first in firsts)
    assert server.process.wait(60) == 0


class Authority:
    """Makes certificates with openssl."""

    def __init__(self, folder):
        self.folder = folder
        self.run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority",
                 "-keyout", "ca.key", "-out", "ca.crt")

    def run(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def issue(self, name):
        self.run("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key.new",
                 "-out", f"{name}.csr")
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        self.run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                 "2", "-extfile", "names", "-out", f"{name}.crt.new")
        for kind in ("crt", "key"):
            (self.folder / f"{name}.{kind}.new").replace(self.folder / f"{name}.{kind}")

    def read(self, name):
        return (self.folder / name).read_bytes()


@pytest.fixture
def authority(tmp_path):
    made = Authority(tmp_path)
    made.issue("server")
    return made


def start_with_tls(start, authority, *flags):
    folder = authority.folder
    return start(*MOCK, "--ssl-certfile", folder / "server.crt", "--ssl-keyfile", folder / "server.key", *flags,
                 wait=False)


def healthy(client):
    try:
        return client.sglang.HealthCheck().healthy
    except grpc.RpcError:
        return False


def test_clients_must_show_a_certificate_where_an_authority_is_named(start, authority):
    authority.issue("client")
    server = start_with_tls(start, authority, "--ssl-ca-certs", authority.folder / "ca.crt", "--access-log")
    shown = grpc.ssl_channel_credentials(authority.read("ca.crt"), authority.read("client.key"),
                                         authority.read("client.crt"))
    client = connect(server.port, credentials=shown)
    wait_until(lambda: healthy(client), "the server is not ready")
    assert finished(long_stream(client, tokens=20))
    wait_until(lambda: "(CN=client) gRPC /sglang.runtime.v1.SglangService/TextGenerate" in server.output(), server.output)
    (authority.folder / "both.pem").write_bytes(authority.read("client.crt") + authority.read("client.key"))
    url = f"https://127.0.0.1:{server.port}/health"
    files = {"verify": str(authority.folder / "ca.crt"), "cert": str(authority.folder / "both.pem")}
    assert requests.get(url, **files, timeout=60).status_code == 200
    wait_until(lambda: "(CN=client) GET /health" in server.output(), server.output)
    hidden = grpc.ssl_channel_credentials(authority.read("ca.crt"))
    call = connect(server.port, credentials=hidden).sglang.HealthCheck
    assert code_of(lambda: call(timeout=60)) == grpc.StatusCode.UNAVAILABLE


def test_a_renewed_certificate_serves_new_connections_and_old_ones_go_on(start, authority):
    server = start_with_tls(start, authority, "--mock-itl-ms", "10")
    trusted = grpc.ssl_channel_credentials(authority.read("ca.crt"))
    old = connect(server.port, credentials=trusted)
    wait_until(lambda: healthy(old), "the server is not ready")
    stream = long_stream(old)
    next(stream)

    def shown():
        return ssl.get_server_certificate(("127.0.0.1", server.port))

    first = shown()
    authority.issue("server")
    wait_until(lambda: shown() != first, "the renewed certificate is not used")
    assert finished(stream)
    fresh = connect(server.port, credentials=trusted, options=[("grpc.use_local_subchannel_pool", 1)])
    assert fresh.sglang.HealthCheck().healthy
    second = shown()
    (authority.folder / "server.key").write_text("broken")
    wait_until(lambda: "keeps using the previous files" in server.output(), "nothing is said of the broken file")
    assert shown() == second
