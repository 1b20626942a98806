"""Workers over TLS: HTTP and gRPC, with an authority of their own, and with certificates that the gateway shows."""
import pytest
import requests
from conftest import Server, wait_until
from gateway_fleet import Process
from test_grpc_transport import Authority

CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("tls"))
    made.issue("server")
    made.issue("client")
    return made


@pytest.fixture(scope="module")
def worker(authority):
    """A server that wants to see a certificate of the authority."""
    folder = authority.folder
    server = Server("--engine", "mock", "--ssl-certfile", folder / "server.crt", "--ssl-keyfile", folder / "server.key",
                    "--ssl-ca-certs", folder / "ca.crt", wait=False)
    wait_until(lambda: "ready" in server.output() or "listening" in server.output(), server.output)
    yield server
    server.stop()


@pytest.fixture
def gateway(worker):
    made = []

    def make(scheme, *flags):
        made.append(Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls",
                            f"{scheme}://127.0.0.1:{worker.port}", *flags))
        return made[-1]

    yield make
    for one in made:
        assert one.end() == 0, one.output()[-3000:]


def keys(authority):
    folder = authority.folder
    return ("--ca-cert-paths", folder / "ca.crt", "--client-cert-path", folder / "client.crt",
            "--client-key-path", folder / "client.key")


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
@pytest.mark.parametrize("more", [(), ("--upstream-http2",)], ids=["", "http2"])
def test_a_worker_over_tls_answers_a_gateway_that_shows_its_certificate(gateway, authority, scheme, more):
    made = gateway(scheme, *keys(authority), *more)
    made.wait_ready("/readiness")
    answer = requests.post(made.url + "/v1/chat/completions", json=CHAT, timeout=60)
    assert answer.status_code == 200 and answer.json()["usage"]["completion_tokens"] == 4
    streamed = requests.post(made.url + "/v1/chat/completions", json={**CHAT, "stream": True}, timeout=60)
    assert streamed.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("flags", [lambda folder: ("--ca-cert-paths", folder / "ca.crt"),
                                   lambda folder: ("--client-cert-path", folder / "client.crt", "--client-key-path", folder / "client.key")],
                         ids=["no certificate shown", "authority not known"])
def test_without_either_half_the_worker_is_not_used(gateway, authority, flags):
    made = gateway("https", *flags(authority.folder))
    wait_until(lambda: requests.get(made.url + "/workers", timeout=60).json()["workers"][0]["status"] != "unknown"
               if made.answers("/workers") else False, made.output)
    assert not made.answers("/readiness")
    answer = requests.post(made.url + "/v1/chat/completions", json=CHAT, timeout=60)
    assert answer.status_code == 503 and "127.0.0.1" not in answer.text
