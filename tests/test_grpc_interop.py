"""gRPC's official interoperability client (Go) against its test service on our server layer."""
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT

SERVER = ROOT / "build/release/grpc_interop_server"
GRPC_GO = "v1.85.0"
CASES = """empty_unary large_unary client_streaming server_streaming ping_pong empty_stream
    timeout_on_sleeping_server cancel_after_begin cancel_after_first_response status_code_and_message
    special_status_message custom_metadata unimplemented_method unimplemented_service pick_first_unary""".split()


@pytest.fixture(scope="module")
def client():
    """The program, built once a version; Go keeps what it downloads."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        pytest.skip("Go is not installed")
    folder = ROOT / "build/interop" / GRPC_GO
    program = folder / "client"
    if not program.exists():
        built = subprocess.run([go, "install", f"google.golang.org/grpc/interop/client@{GRPC_GO}"], timeout=900,
                               env={**os.environ, "GOBIN": str(folder)}, capture_output=True, text=True)
        if not program.exists():
            pytest.skip("the client cannot be built: " + built.stderr.strip().split("\n")[-1])
    return program


@pytest.fixture(scope="module")
def port():
    if not SERVER.exists():
        pytest.skip(f"{pathlib.Path(SERVER).name} is not built")
    with subprocess.Popen([SERVER, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        yield int(server.stdout.readline().split()[-1])
        server.terminate()
        assert server.wait(30) == 0


@pytest.mark.parametrize("case", CASES)
def test_the_official_client_passes(client, port, case):
    command = [client, "--server_host=127.0.0.1", f"--server_port={port}", "--use_tls=false", f"--test_case={case}"]
    run = subprocess.run(command, timeout=120, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
