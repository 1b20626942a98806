"""Pipelines of stages in processes of their own, for tests: how they are written, asked and watched."""
import contextlib
import os
import pathlib
import struct

import pytest
import requests

STAGES = pathlib.Path(__file__).resolve().parent


def write(path, *stages, head=""):
    path.write_text(head + "stages:\n" + "".join(f"  - {{{stage}}}\n" for stage in stages))
    return path


def python(name, function, more="stream_to: [encode]"):
    return f"name: {name}, factory_path: stages_for_test.{function}, env: {{PYTHONPATH: '{STAGES}'}}, {more}"


ENCODE = "name: encode, factory_path: portico.encode, terminal: true"


@pytest.fixture
def pipeline(start, tmp_path):
    """pipeline(*stages, head=…) -> a server that runs them."""
    def make(*stages, head=""):
        return start("--pipeline", str(write(tmp_path / "p.yaml", *stages, head=head)), "--engine", "mock")
    return make


def say(server, text, **fields):
    return requests.post(server.url + "/v1/audio/speech", json={"input": text, "response_format": "pcm", **fields}, timeout=60)


def health(server):
    return requests.get(server.url + "/health", timeout=60)


def children(server):
    """Pids of the server's stage processes, oldest first."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            words = (entry / "cmdline").read_bytes().split(b"\0")
            began = int((entry / "stat").read_text().rpartition(")")[2].split()[19])
        except OSError:
            continue
        stage = b"omni-stage" in words or any(word.endswith(b"stage.py") for word in words)
        if f"PPid:\t{server.process.pid}\n" in status and stage and "State:\tZ" not in status:
            found.append((began, int(entry.name)))
    return [pid for _, pid in sorted(found)]  # numbers begin anew after the last one


def open_files(pid):
    """What the process has open; what is closed, or the process that ends, while this looks is left out."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def steps(answer):
    assert answer.status_code == 200, answer.text
    samples = struct.unpack(f"<{len(answer.content) // 2}h", answer.content)
    return list(samples[::480])


MOCK = "factory_path: portico.mock, factory: {chunks: 5, delay_ms: %s, text: false}, stream_to: [encode]"
