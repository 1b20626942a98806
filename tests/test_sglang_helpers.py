"""The processes that read media for SGLang's engine (python/portico/sglang_media.py), asked without a server."""
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import struct
import sys
import time

import msgspec
import pytest
from conftest import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python/portico"))
import sglang_media  # noqa: E402


class OutOfMemoryError(RuntimeError):
    """torch.OutOfMemoryError."""


ERRORS = {each.__name__: each for each in (
    RuntimeError, TypeError, AssertionError, KeyError, ValueError, OSError, ImportError, MemoryError, OutOfMemoryError, msgspec.EncodeError)}


class Processor:
    """A file is what is to happen."""

    def __init__(self, seconds):
        self.time_limit = seconds
        self.kinds = dict.fromkeys(sglang_media.KINDS, "")
        self.pool = None

    def __call__(self, head, files):
        word = files[0].decode()
        if word == "pool":
            self.pool = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
            self.pool.start()
            return struct.pack("<q", self.pool.pid), b""
        if word == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if word == "wait":
            time.sleep(600)
        if word in ERRORS:
            raise ERRORS[word]("it fails")
        return b"", word.encode()


class Asked:
    def __init__(self, helpers):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(helpers.address)

    def __call__(self, word, kind="video"):
        head = json.dumps({"text": "", "ids": [1], "media": [{"kind": kind, "size": len(word), "detail": None}]}).encode()
        self.socket.sendall(struct.pack("<I", len(head)) + head + word.encode())
        answer = json.loads(sglang_media.read_exactly(self.socket, struct.unpack("<I", sglang_media.read_exactly(self.socket, 4))[0]))
        return answer, *(sglang_media.read_exactly(self.socket, answer.get(part, 0)) for part in ("ids", "media"))


@pytest.fixture
def helpers(tmp_path, request):
    output = os.dup(1)
    with open(tmp_path / "said", "wb") as file:
        os.dup2(file.fileno(), 1)  # the process's, and of those that it forks
    helpers = sglang_media.Helpers(str(tmp_path), 1, getattr(request, "param", 600.0), Processor)
    os.dup2(output, 1)
    os.close(output)
    helpers.BACKOFF = 0
    assert helpers.wait_ready() is None
    yield helpers
    helpers.stop()
    for process in helpers.processes:
        process.join()


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_whatever_a_decoder_says_is_said_of_the_file(helpers):
    ask = Asked(helpers)
    ours = ("ImportError", "MemoryError", "OutOfMemoryError", "EncodeError")
    for name in ERRORS:
        answer = ask(name)[0]
        assert answer == {"error": "'it fails'" if name == "KeyError" else "it fails", "status": 500 if name in ours else 400}, name
    assert ask("bytes")[2] == b"bytes"


@pytest.mark.parametrize("helpers", [0.5], indirect=True)
def test_media_that_take_too_long_are_refused_and_end_their_process_with_its_pool(helpers, tmp_path, capsys):
    ask = Asked(helpers)
    pool = struct.unpack("<q", ask("pool")[1])[0]
    assert ask("wait")[0] == {"error": "it takes longer than 0.5 s", "status": 400}
    assert ask.socket.recv(1) == b""  # the pool does not keep the connection
    wait_until(lambda: gone(pool), "its pool is left")
    wait_until(lambda: not helpers.processes[0].is_alive(), "it goes on")
    helpers.keep()
    assert Asked(helpers)("bytes")[2] == b"bytes"
    assert "0.5 s are not enough to read video of 4 bytes" in (tmp_path / "said").read_text()
    assert "has ended (exit code -9, while it read video of 4 bytes) and is started again" in capsys.readouterr().out


def test_the_end_of_a_process_is_seen_at_once_and_ends_its_pool(helpers, capsys):
    ask = Asked(helpers)
    pool = struct.unpack("<q", ask("pool")[1])[0]
    with pytest.raises((EOFError, ConnectionError)):
        ask("die", kind="audio")
    helpers.processes[0].join()
    helpers.keep()
    wait_until(lambda: gone(pool), "its pool is left")
    assert Asked(helpers)("bytes")[2] == b"bytes"
    assert f"(exit code -{int(signal.SIGSEGV)}, while it read audio of 3 bytes)" in capsys.readouterr().out


def test_a_processor_that_makes_too_much_is_not_believed(helpers, monkeypatch):
    sizes = iter([(1 << 30) + 1, 1 << 30])

    class Large(bytes):
        def __len__(self):
            return next(sizes)

    sent = []

    class Connection:
        def sendall(self, data):
            sent.append(data)

    head = {"media": [{"kind": "image", "size": 0}]}
    monkeypatch.setattr(sglang_media, "read_request", lambda _: (head, [b""]))
    reads = type("Reads", (), {"value": b""})
    sglang_media.answer(lambda *_: (b"", Large()), Connection(), reads)
    assert b'"status": 400' in sent[0] and len(sent) == 1
