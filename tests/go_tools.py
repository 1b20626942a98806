"""Programs written in Go that drive the server in tests: built once a version into build/go/bin; Go keeps what it downloads."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRPC_GO = "v1.85.0"


def find_go():
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        pytest.skip("Go is not installed")
    return go


def go_program(package, version):
    """The program of `package`@`version`. Skips the test where it cannot be built."""
    name = f"{package.split('/')[-1]}-{version}"
    program = ROOT / "build/go/bin" / name
    if program.exists():
        return program
    go = find_go()
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent.parent) as folder:  # another process may build it as well
        built = subprocess.run([go, "install", f"{package}@{version}"], timeout=900, capture_output=True, text=True,
                               env={**os.environ, "GOBIN": folder})
        if built.returncode != 0:
            pytest.skip(f"{package} cannot be built: " + built.stderr.strip().split("\n")[-1])
        (pathlib.Path(folder) / package.split("/")[-1]).replace(program)
    return program


def go_with_stubs(source, folder):
    """The program of one file that uses SglangService's stubs, as examples/grpc/go makes them. Built in `folder`."""
    go = find_go()
    version = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True).stdout.strip()
    if tuple(int(part) for part in version.removeprefix("go").split(".")[:2]) < (1, 25):
        pytest.skip(f"the gRPC package for Go needs Go 1.25 or newer, this is {version}")
    example = folder / "examples/grpc/go"  # stubs and tools are made beside the sources
    shutil.copytree(ROOT / "examples/grpc/go", example, ignore=shutil.ignore_patterns("bin", "sglang", "main.go"))
    shutil.copy(source, example / "main.go")
    (folder / "proto").symlink_to(ROOT / "proto")
    for command in ([example / "generate_stubs.sh"], [go, "build", "-o", "program", "."]):
        built = subprocess.run(command, cwd=example, capture_output=True, text=True, timeout=900,
                               env={**os.environ, "GOBIN": str(ROOT / "build/go/bin")})
        assert built.returncode == 0, built.stdout + built.stderr
    return example / "program"
