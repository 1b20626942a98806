"""Our gRPC client against gRPC's official interoperability server (Go), plain and through TLS."""
import socket
import subprocess
import time

import pytest

from conftest import ROOT, free_port
from go_tools import GRPC_GO, go_program
from test_grpc_interop import CASES

CLIENT = ROOT / "build/release/grpc_interop_client"


@pytest.fixture(scope="module")
def program():
    if not CLIENT.exists():
        pytest.skip(f"{CLIENT.name} is not built")
    return go_program("google.golang.org/grpc/interop/server", GRPC_GO)


def serve(program, *flags):
    """The port of a server that runs until the generator is closed."""
    port = free_port()
    with subprocess.Popen([program, f"--port={port}", *flags]) as server:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None
            time.sleep(0.05)
        yield port
        server.terminate()


@pytest.fixture(scope="module")
def plain(program):
    yield from serve(program)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=interop.test",
                    "-addext", "subjectAltName=DNS:interop.test", "-days", "2"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def secure(program, certificate):
    yield from serve(program, "--use_tls", f"--tls_cert_file={certificate}/cert.pem",
                     f"--tls_key_file={certificate}/key.pem")


def run(port, case, *flags):
    return subprocess.run([CLIENT, "--port", str(port), "--case", case, *flags], timeout=120, capture_output=True,
                          text=True)


@pytest.mark.parametrize("case", CASES)
def test_the_client_passes_against_the_official_server(plain, case):
    result = run(plain, case)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("case", ["large_unary", "ping_pong", "cancel_after_first_response"])
def test_the_client_passes_through_tls(secure, certificate, case):
    result = run(secure, case, "--tls", "--ca-file", f"{certificate}/cert.pem", "--server-name", "interop.test")
    assert result.returncode == 0, result.stderr


def test_a_server_with_another_name_is_refused(secure, certificate):
    result = run(secure, "empty_unary", "--tls", "--ca-file", f"{certificate}/cert.pem", "--server-name", "other.test")
    assert result.returncode == 1
    assert "certificate" in result.stderr and "ostname mismatch" in result.stderr


def test_a_server_of_another_authority_is_refused(secure):
    result = run(secure, "empty_unary", "--tls", "--server-name", "interop.test")
    assert result.returncode == 1
    assert "self-signed certificate" in result.stderr
