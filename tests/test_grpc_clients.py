"""What gRPC's clients of other languages do with the server: every method, health, reflection, gzip, ten megabytes,
deadlines, cancelled calls, a thousand streams, drains, and TLS with and without their own certificate."""
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT, SANITIZED, WAIT_SECONDS, wait_until
from go_tools import go_with_stubs
from test_grpc_transport import authority, healthy, start_with_tls  # noqa: F401

CASES = ["every_rpc", "health", "reflection", "gzip", "large", "streams"]


@pytest.fixture(scope="module")
def javascript(node):
    return [node, ROOT / "tests/js/grpc_client.mjs", pathlib.Path(sys.prefix) / "js", ROOT / "proto"]


@pytest.fixture(scope="module")
def go(tmp_path_factory):
    return [go_with_stubs(ROOT / "tests/go/grpc_client.go", tmp_path_factory.mktemp("go"))]


@pytest.fixture(scope="module")
def cpp():
    build = ROOT / "build/grpc-client"
    for command in (["-S", ROOT / "tests/cpp", "-B", build, "-G", "Ninja", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"],
                    ["--build", build]):
        made = subprocess.run(["cmake", *map(str, command)], capture_output=True, text=True, timeout=900)
        assert made.returncode == 0, made.stdout + made.stderr
    return [build / "grpc_client"]


@pytest.fixture(params=["javascript", "go", "cpp"])
def client(request):
    """client(server, case, *files): the program, started."""
    if SANITIZED and request.param != "javascript":
        pytest.skip("one client is enough for the sanitizers")
    command = request.getfixturevalue(request.param)

    def begin(server, case, *files):
        arguments = [*command, f"127.0.0.1:{server.port}", case, *files]
        return subprocess.Popen([str(argument) for argument in arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    return begin


def succeed(program):
    output, errors = program.communicate(timeout=2 * WAIT_SECONDS)
    assert program.returncode == 0, output + errors


@pytest.mark.parametrize("case", CASES)
def test_it_is_served(client, mock, case):
    succeed(client(mock, case))


@pytest.mark.parametrize("case", ["deadline", "cancel"])
def test_a_stream_that_it_ends_frees_the_engine(client, patient, case):
    succeed(client(patient, case))
    patient.settle()


def test_its_stream_ends_well_in_a_drain(client, start):
    server = start("--engine", "mock", "--mock-itl-ms", "5")
    program = client(server, "drain")
    assert program.stdout.readline() == "begun\n", program.communicate()
    server.process.terminate()
    succeed(program)
    assert server.process.wait(60) == 0


def test_it_trusts_an_authority_and_shows_its_certificate(client, start, authority):  # noqa: F811
    authority.issue("client")
    server = start_with_tls(start, authority)
    files = [authority.folder / name for name in ("ca.crt", "client.crt", "client.key")]
    wait_until(lambda: "ready" in server.output(), server.output)
    succeed(client(server, "health", files[0]))
    mutual = start_with_tls(start, authority, "--ssl-ca-certs", files[0])
    wait_until(lambda: "ready" in mutual.output(), mutual.output)
    succeed(client(mutual, "health", *files))
    refused = client(mutual, "health", files[0])
    assert refused.wait(2 * WAIT_SECONDS) == 1, refused.communicate()
