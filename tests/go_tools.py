"""Programs written in Go that drive the server in tests: built once a version into build/go/bin; Go keeps what it downloads."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRPC_GO = "v1.85.0"


def go_program(package, version):
    """The program of `package`@`version`. Skips the test where it cannot be built."""
    name = f"{package.split('/')[-1]}-{version}"
    program = ROOT / "build/go/bin" / name
    if program.exists():
        return program
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        pytest.skip("Go is not installed")
    folder = ROOT / "build/go" / name
    built = subprocess.run([go, "install", f"{package}@{version}"], timeout=900, capture_output=True, text=True,
                           env={**os.environ, "GOBIN": str(folder)})
    if built.returncode != 0:
        pytest.skip(f"{package} cannot be built: " + built.stderr.strip().split("\n")[-1])
    program.parent.mkdir(parents=True, exist_ok=True)
    (folder / package.split("/")[-1]).rename(program)
    return program
