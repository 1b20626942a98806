"""The processes that read media for SGLang's engine (python/portico/sglang_media.py), asked without a server."""
import concurrent.futures
import errno
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import struct
import sys
import threading
import time

import msgspec
import pytest
from conftest import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python/portico"))
import sglang_containers  # noqa: E402
import sglang_faults  # noqa: E402
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
            # By a thread that ends: the pool's end is not that of its parent.
            thread = threading.Thread(target=self.pool.start)
            thread.start()
            thread.join()
            return struct.pack("<q", self.pool.pid), b""
        if word.startswith("CUDA"):
            raise RuntimeError(word)
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

    def __call__(self, word, kind="image"):
        head = json.dumps({"text": "", "ids": [1], "media": [{"kind": kind, "size": len(word), "detail": None}]}).encode()
        self.socket.sendall(struct.pack("<I", len(head)) + head + word.encode())
        answer = json.loads(sglang_media.read_exactly(self.socket, struct.unpack("<I", sglang_media.read_exactly(self.socket, 4))[0]))
        return answer, *(sglang_media.read_exactly(self.socket, answer.get(part, 0)) for part in ("ids", "media"))


def wait_for_end(helpers):
    """It is not waited for: multiprocessing would let go of its number."""
    wait_until(lambda: os.waitid(os.P_PID, helpers.processes[0].pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "it goes on")


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
        assert answer == {"error": "'it fails'" if name == "KeyError" else "it fails", "status": 500 if name in ours else 400, "ends": False}, name
    assert ask("bytes")[2] == b"bytes"


@pytest.mark.parametrize("helpers", [2.0], indirect=True)
def test_media_that_take_too_long_are_refused_and_end_their_process_with_its_pool(helpers, tmp_path, capsys):
    ask = Asked(helpers)
    pool = struct.unpack("<q", ask("pool")[1])[0]
    assert ask("wait")[0] == {"error": "it takes longer than 2 s", "status": 400, "ends": True}
    assert ask.socket.recv(1) == b""  # the pool does not keep the connection
    wait_until(lambda: gone(pool), "its pool is left")
    wait_for_end(helpers)
    helpers.keep()
    assert Asked(helpers)("bytes")[2] == b"bytes"
    assert "2 s are not enough to read image of 4 bytes" in (tmp_path / "said").read_text()
    assert "has ended (exit code -9, while it read image of 4 bytes) and is started again" in capsys.readouterr().out


def test_the_end_of_a_process_is_seen_at_once_and_ends_its_pool(helpers, capsys):
    ask = Asked(helpers)
    pool = struct.unpack("<q", ask("pool")[1])[0]
    with pytest.raises((EOFError, ConnectionError)):
        ask("die")
    wait_for_end(helpers)
    helpers.keep()
    wait_until(lambda: gone(pool), "its pool is left")
    assert Asked(helpers)("bytes")[2] == b"bytes"
    assert f"(exit code -{int(signal.SIGSEGV)}, while it read image of 3 bytes)" in capsys.readouterr().out


def test_a_processor_that_makes_too_much_is_not_believed(helpers, monkeypatch):
    sizes = iter([(1 << 30) + 1, 1 << 30])

    class Large(bytes):
        def __len__(self):
            return next(sizes)

    sent = []

    class Connection:
        def sendall(self, data):
            sent.append(data)

        def recv(self, size, flags):
            raise BlockingIOError

    head = {"media": [{"kind": "image", "size": 0}]}
    monkeypatch.setattr(sglang_media, "read_request", lambda _: (head, [b""]))
    reads = type("Reads", (), {"value": b""})
    sglang_media.answer(lambda *_: (b"", Large()), Connection(), reads)
    assert b'"status": 400' in sent[0] and len(sent) == 1


def test_a_processor_that_can_read_nothing_more_is_ended(helpers, tmp_path, capsys):
    ask = Asked(helpers)
    pid = helpers.processes[0].pid
    assert ask("CUDA error: out of memory")[0] == {"error": "CUDA error: out of memory", "status": 500, "ends": False}
    assert ask("CUDA error: device-side assert triggered")[0] == {
        "error": "CUDA error: device-side assert triggered", "status": 500, "ends": True}
    wait_for_end(helpers)
    assert helpers.processes[0].pid == pid
    helpers.keep()
    assert Asked(helpers)("bytes")[2] == b"bytes"
    assert "a media helper ends: CUDA error: device-side" in (tmp_path / "said").read_text()
    assert "while it read image of 40 bytes) and is started again" in capsys.readouterr().out


def raised(error, cause=None):
    try:
        raise error from cause
    except Exception as caught:
        return caught


def test_what_the_machine_lacks_is_not_said_of_the_media():
    lacks = [OSError(number, "no") for number in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)]
    for error in (*lacks, MemoryError(), concurrent.futures.BrokenExecutor("x"), RuntimeError("CUDA error: x")):
        # SGLang's loaders raise errors of their own from others.
        assert sglang_faults.is_ours(error) and sglang_faults.is_ours(raised(RuntimeError("it fails"), raised(ValueError("it fails"), error)))
        lost = isinstance(error, RuntimeError)
        assert sglang_faults.is_last(error) is sglang_faults.is_last(raised(RuntimeError("it fails"), error)) is lost, error

    class FFmpegError(OSError):
        """PyAV's, which has numbers of the system."""
    FFmpegError.__module__ = "av.error"

    cut_short = FFmpegError(errno.EIO, "of a file that is cut short")
    for error in (cut_short, raised(ValueError("x"), cut_short), OSError(errno.EINVAL, "x"), raised(ValueError("x"), OSError("x"))):
        assert not sglang_faults.is_ours(error) and not sglang_faults.is_last(error)


@pytest.mark.parametrize("file", [b"CUDA error", b"OggSCUDA error", b"CUDA out of memory", b"OutOfMemoryError", b"AcceleratorError"])
def test_what_a_file_says_of_the_device_is_not_believed(file):
    # So SGLang's loaders quote it; ten bytes ended the process that read them.
    error = raised(RuntimeError(f"Error while loading data {file!s}: cannot identify it"), ValueError(f"cannot identify {file!s}"))
    assert not sglang_faults.is_ours(error) and not sglang_faults.is_last(error)


def test_postscript_is_never_run():
    for file in (b"%!PS-Adobe-3.0 EPSF-3.0\n", bytes.fromhex("c5d0d3c6")):
        with pytest.raises(ValueError, match="PostScript"):
            sglang_containers.check_file("image", file)


def test_what_nobody_waits_for_is_not_read(helpers):
    given_up = Asked(helpers)
    head = json.dumps({"text": "", "ids": [1], "media": [{"kind": "image", "size": 4, "detail": None}]}).encode()
    # Where the process were not to look, it would wait for ten minutes.
    given_up.socket.sendall(struct.pack("<I", len(head)) + head + b"wait")
    given_up.socket.shutdown(socket.SHUT_RDWR)
    given_up.socket.close()
    assert Asked(helpers)("bytes")[2] == b"bytes"


def test_after_the_launcher_began_to_stop_nothing_is_started_again(helpers, monkeypatch):
    process, numbers = helpers.processes[0], []
    helpers.stop()
    wait_for_end(helpers)
    # Later the number may be that of another group.
    monkeypatch.setattr(sglang_media, "end_group", lambda pid: numbers.append(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_pid))
    for _ in range(3):
        helpers.keep()
    helpers.stop()
    assert helpers.processes == [process] and numbers == [process.pid]


def waits(told):
    told.send(os.getpid())
    sglang_media.end_with(1 << 30)  # another process than its parent, which has ended
    told.send("it goes on")


def test_a_process_whose_launcher_has_ended_before_it_could_look_ends():
    told, telling = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=waits, args=(telling,))
    process.start()
    telling.close()
    assert told.recv() == process.pid
    with pytest.raises(EOFError):
        told.recv()
    process.join()
    assert process.exitcode == 1


HLS = b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/x.ts\n"
MPD = b'<MPD profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><BaseURL>http://127.0.0.1/x.mp4</BaseURL></MPD>'
SDP = b"\ns=x\nc=IN IP4 127.0.0.1\nm=video 15000 RTP/AVP 96\n"


def tag(size=0, flags=0):
    """Of ID3, without what is in it."""
    return b"ID3\x03\0" + bytes([flags, size >> 21, size >> 14 & 127, size >> 7 & 127, size & 127])


# FFmpeg 5.1 opened what these name, or took them for playlists.
LEAD_ELSEWHERE = [
    HLS, MPD, b"<!-- x -->" + MPD, b"\n" * 70 + MPD, SDP[1:], b"v=0" + SDP, b"\xef\xbb\xbf" + HLS, b"ffconcat version 1.0\nfile /etc/passwd\n",
    tag() + HLS, tag(100) + bytes(100) + HLS, tag(300) + bytes(300) + HLS, tag(flags=0x10) + b"3DI3456789" + HLS, tag() * 2 + HLS,
    b"OggS" + MPD, b"OggS" + MPD.lower(), tag() + b"OggS" + MPD, b"OggS" + SDP, b"fLaC\0\0" + SDP.replace(b"\n", b"\r\n"),
    b"ID3\x03\1\0\1\1\1\1" + MPD, b"# VobSub index file, v7", b'<?xml version="1.0"?><CompositionPlaylist/>', b"OggS<CompositionPlaylist/>",
    b"", b"hello", b"ID3", b"ID3\x03\xff\0\0\0\0\0OggS"]


@pytest.mark.parametrize("kind", ["video", "audio"])
def test_what_leads_a_decoder_to_other_files_is_no_medium(kind):
    for file in LEAD_ELSEWHERE:
        with pytest.raises(ValueError, match="in none of the formats that are taken: MP4|a playlist is not"):
            sglang_containers.check_file(kind, file)
        sglang_containers.check_file("image", file)


def test_files_of_the_usual_containers_are_taken():
    ts = b"G" + bytes(187)
    files = [b"\0\0\0\x18" + word + bytes(16) for word in (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp")]
    files += [b"\x1aE\xdf\xa3\x9f", b"RIFF\1\2\3\4AVI LIST", b"RIFF\n\r\n\4WAVEfmt ", b"RIFX\0\0\0\1WAVE", b"RF64\xff\xff\xff\xffWAVE", b"OggS\0",
              b"fLaC\0", ts * 2, b"\1\2\3\4" + (ts + b"\1\2\3\4") * 2, b"\0\0\1\xba", b"\0\0\1\xb3", b"FLV\1\5", b"#!AMR\n", b"#!AMR-WB\n", b"\xff\xfb\x90\x64",
              b"\xff\xf1\x50\x80", bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"), b"FORM\0\1\2\3AIFF", b"FORM\0\1\2\3AIFC", b"caff\0\1", b"wvpk", b".snd",
              b"GIF89a"]
    for file in files:
        for before in (b"", tag(300) + bytes(300), tag(flags=0x10) + b"3DI3456789", tag() * 2):
            sglang_containers.check_file("video", before + file)
            sglang_containers.check_file("audio", before + file + bytes(100) + MPD)
    sglang_containers.check_file("audio", tag(5) + bytes(5 + 40) + b"\xff\xfb\x90\x64")  # zeros behind the tag
