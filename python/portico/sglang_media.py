"""Runs SGLang's own multimodal processor for Portico, in a process that the launcher starts (sglang_launch.py).

Requests come over a Unix socket, one after the other on each connection:

    -> u32 little endian: bytes of the head; the head, JSON {"text": TEXT or null, "ids": [...] or null,
       "max_input_tokens": N, "media": [{"kind": "image", "video" or "audio", "size": BYTES, "detail": WORD or null}, ...]};
       the files' bytes
    <- u32; the head, JSON {"ids": BYTES, "media": BYTES} or {"error": TEXT, "status": 400 or 500};
       the prompt's tokens with the places of the media, 8 bytes each; mm_inputs in SGLang's own encoding
       "ends": true beside an error: the process ends, and this connection with it

Each process tells at its start which kinds it reads (`kinds`: the reason why not, or an empty text). What the processor cannot
read is the request's fault (400; sglang_faults.py). One that takes longer than TIME_LIMIT gets that answer too, and ends the
process, which the launcher starts again: threads of decoders cannot be stopped. So does an error after which nothing can be read.
A file that is small may be huge once it is decoded: where memory ends, this process is the one that the kernel ends, not a
scheduler. SGLang's processors fork pools: each process has a group of its own, which ends with it.
"""
from __future__ import annotations

import array
import asyncio
import contextlib
import ctypes
import faulthandler
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

from sglang_containers import check_file, without_programs
from sglang_faults import is_last, is_ours

TIME_LIMIT = 60.0
MOST_HEAD = 64 << 20
MOST_MADE = 1 << 30
MOST_ITEMS = 4096
KINDS = ("image", "video", "audio")


def read_exactly(connection, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def read_request(connection):
    (size,) = struct.unpack("<I", read_exactly(connection, 4))
    if size > MOST_HEAD:
        raise EOFError
    head = json.loads(read_exactly(connection, size))
    if len(head["media"]) > MOST_ITEMS or any(item["kind"] not in KINDS for item in head["media"]):
        raise EOFError
    return head, [read_exactly(connection, int(item["size"])) for item in head["media"]]


def write_reply(connection, head: dict, *parts) -> None:
    text = json.dumps(head).encode()
    connection.sendall(struct.pack("<I", len(text)) + text)
    for part in parts:
        connection.sendall(part)


def loads(*names: str) -> bool:
    """Whether these modules can be imported; torchcodec fails with others than ImportError where FFmpeg is not."""
    try:
        for name in names:
            importlib.import_module(name)
    except (ImportError, RuntimeError, OSError):
        return False
    return True


def missing_decoder(kind: str) -> str:
    """Why SGLang's load_audio and load_video would fail for every file; empty: they need not."""
    if kind == "image" or loads("torchcodec.decoders"):
        return ""
    if kind == "video":
        return "" if loads("decord") else "SGLang's Python has neither torchcodec nor decord to decode it"
    return "" if loads("soundfile", "torchaudio") else "SGLang's Python has neither torchcodec nor soundfile and torchaudio to decode it"


def kinds_of(processor, config) -> dict[str, str]:
    """For each kind: empty, or why this model's processor does not read it."""
    tokens = getattr(processor, "mm_tokens", None)

    def has_place(kind):
        names = (f"{kind}_token", f"{kind}_token_id", f"{kind}_token_regex")
        return any(getattr(tokens, name, None) not in (None, "", -1) for name in names)

    known = {kind: has_place(kind) for kind in KINDS}
    if not any(known.values()):  # it keeps its marks elsewhere
        hears = bool(getattr(config, "is_audio_understandable_model", False))
        known = {"image": bool(getattr(config, "is_image_understandable_model", not hears)), "video": False, "audio": hears}
    return {kind: missing_decoder(kind) if known[kind] else "the model's processor has no place for it" for kind in KINDS}


def check_places(made, given: dict[str, int]) -> None:
    """ValueError where the prompt has fewer places than media: SGLang leaves the others out."""
    if made is None or not made.mm_items:
        raise ValueError("the prompt has no place for its media")
    names = {"image": "images", "video": "videos", "audio": "audio files"}
    of_kind = {kind: [item for item in made.mm_items if item.modality.name.lower() == kind] for kind in KINDS}
    if not of_kind["video"] and "video" in given:  # some models see a video as images
        given = {**given, "image": given.get("image", 0) + given["video"]}
        del given["video"]
        names["image"] = "images and videos"
    for kind, count in given.items():
        items = of_kind[kind]
        places = max(len(items), sum(len(item.offsets or ()) for item in items))
        if places < count:
            raise ValueError(f"the prompt has places for {places} of its {count} {names[kind]}")


class Processor:
    """What of SGLang's TokenizerManager stands between a request's media and mm_inputs."""

    def __init__(self, server_args):
        import msgspec
        from sglang.srt.configs.model_config import ModelConfig
        from sglang.srt.entrypoints import engine as engine_module
        from sglang.srt.managers import io_struct, multimodal_processor, tokenizer_manager
        from sglang.srt.managers.schedule_batch import MultimodalProcessorOutput
        from sglang.srt.utils.msgpack_utils import dec_hook, ext_hook

        if hasattr(engine_module, "publish"):
            engine_module.publish(server_args, role="tokenizer")
        config = ModelConfig.from_server_args(server_args)
        multimodal_processor.import_processors("sglang.srt.multimodal.processors")
        self.request_type = io_struct.GenerateReqInput
        self.processor = multimodal_processor.get_mm_processor(
            config.hf_config, server_args, tokenizer_manager.get_processor_wrapper(),
            tokenizer_manager.determine_tensor_transport_mode(), model_config=config)
        self.kinds = kinds_of(self.processor, config)
        self.encode = io_struct._msgpack_encoder.encode
        self.decode = msgspec.msgpack.Decoder(
            MultimodalProcessorOutput, dec_hook=dec_hook, ext_hook=ext_hook).decode
        self.loop = asyncio.new_event_loop()

    def __call__(self, head: dict, files: list) -> tuple[bytes, bytes]:
        return self.loop.run_until_complete(self.process(head, files))

    def has_mark(self, kind: str, text, ids) -> bool:
        """Whether the prompt, which is the text if there is one, has the kind's mark somewhere."""
        tokens = getattr(self.processor, "mm_tokens", None)
        regex = getattr(tokens, f"{kind}_token_regex", None)
        if text:
            return regex is None or bool(regex.search(text))
        return getattr(tokens, f"{kind}_token_id", None) in (None, *(ids or ()))

    async def process(self, head: dict, files: list) -> tuple[bytes, bytes]:
        from sglang.srt.utils import ImageData

        data = {}
        for file, about in zip(files, head["media"]):
            source = ImageData(url=file, detail=about["detail"]) if about["kind"] == "image" and about.get("detail") else file
            data.setdefault(about["kind"], []).append(source)
        text, ids = head.get("text"), head.get("ids")
        # Some processors read the audio that they are given, some the request's; videos are the request's alone.
        request = self.request_type(text=text, input_ids=None if text else ids, sampling_params={},
                                    **{f"{kind}_data": sources for kind, sources in data.items()})
        prefers_ids = getattr(self.processor, "prefer_tokenized_input", False) and ids
        try:
            made = await self.processor.process_mm_data_async(
                image_data=data.get("image"), audio_data=data.get("audio"), input_text=ids if prefers_ids else (text or ids),
                request_obj=request, max_req_input_len=head.get("max_input_tokens"))
        except AssertionError as error:  # so some processors say that they were given media without a place
            if all(self.has_mark(kind, text, ids) for kind in data):
                raise
            raise ValueError("the prompt has no place for its media") from error
        check_places(made, {kind: len(sources) for kind, sources in data.items()})
        if made.input_ids is not None:
            ids = made.input_ids
        encoded = self.encode(made)
        self.decode(encoded)  # what this refuses would end the scheduler
        return array.array("q", [int(i) for i in ids]).tobytes(), encoded


def describe(head: dict) -> str:
    """For the log."""
    return ", ".join(f"{item['kind']} of {item['size']} bytes" for item in head["media"][:16])[:1000]


def end_group(leader: int) -> None:
    """Of a process that nobody has waited for: its number is still its own."""
    with contextlib.suppress(OSError):
        os.killpg(leader, signal.SIGKILL)


def end_itself() -> None:
    """With what it has forked."""
    end_group(os.getpid())
    os._exit(1)


class Overdue:
    """Ends this process when a request takes longer than the limit, unless answered() comes first."""

    def __init__(self, seconds: float, connection, head: dict):
        self.seconds, self.connection, self.head = seconds, connection, head
        self.speaks = threading.Lock()  # who holds it answers
        self.timer = threading.Timer(seconds, self.end)
        self.timer.daemon = True
        self.timer.start()
        # A decoder that keeps the interpreter to itself is ended by a thread that does not need it.
        faulthandler.dump_traceback_later(seconds + 10, exit=True)

    def answered(self) -> None:
        self.speaks.acquire()
        self.timer.cancel()
        faulthandler.cancel_dump_traceback_later()

    def end(self) -> None:
        if not self.speaks.acquire(blocking=False):
            return
        print(f"a media helper ends: {self.seconds:g} s are not enough to read {describe(self.head)}", flush=True)
        with contextlib.suppress(OSError):
            write_reply(self.connection, {"error": f"it takes longer than {self.seconds:g} s", "status": 400, "ends": True})
        end_itself()


def check_awaited(connection) -> None:
    """EOFError where nobody waits for the answer: what waited while a process was started again may have been given up."""
    with contextlib.suppress(BlockingIOError):
        if not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            raise EOFError


def answer(processor, connection, reads) -> None:
    """One request; EOFError once the other side has gone. `reads` is told what is read. Does not return if an error is the last."""
    head, files = read_request(connection)
    check_awaited(connection)
    reads.value = describe(head).encode()
    overdue = Overdue(getattr(processor, "time_limit", TIME_LIMIT), connection, head)
    last = False
    try:
        for about, file in zip(head["media"], files):
            check_file(about["kind"], file)
        ids, media = processor(head, files)
        if len(media) > MOST_MADE:
            raise ValueError(f"the processor makes {len(media)} bytes of them, and {MOST_MADE} are taken")
    except Exception as error:
        text = str(error) or type(error).__name__
        last = is_last(error)
        reply = {"error": text[:1000], "status": 500 if is_ours(error) else 400, "ends": last}, ()
    else:
        reply = {"ids": len(ids), "media": len(media)}, (ids, media)
    overdue.answered()
    if last:
        print(f"a media helper ends: {text[:1000]}", flush=True)
        with contextlib.suppress(OSError):
            write_reply(connection, reply[0])
        end_itself()
    reads.value = b""
    write_reply(connection, reply[0], *reply[1])


def sglang_processor(server_args):
    from sglang.srt.utils import configure_logger

    configure_logger(server_args, prefix=" media")
    without_programs()
    return Processor(server_args)


def end_with(parent: int) -> None:
    """Also if that process has ended before."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def die_first() -> None:
    """Of all processes, where memory ends."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


class Forks:
    """Processes that the processor forks. They let go of the sockets, whose other side waits for their end."""

    def __init__(self):
        self.sockets = []
        self.by_main_thread, self.forked_by = False, 0
        os.register_at_fork(before=self.before, after_in_child=self.in_child)

    def before(self) -> None:
        self.by_main_thread, self.forked_by = threading.current_thread() is threading.main_thread(), os.getpid()

    def in_child(self) -> None:
        for each in self.sockets:
            each.close()
        if self.by_main_thread:  # the signal comes when the thread ends
            end_with(self.forked_by)


def serve(make_processor, argument, listener, ready, scratch, reads) -> None:
    """The process: `ready` is told its kinds, or why there is no processor. Decoders write their files to the folder `scratch`."""
    os.setsid()
    end_with(multiprocessing.parent_process().pid)  # it has taken long to come here
    die_first()
    faulthandler.enable()
    forks = Forks()
    forks.sockets = [listener]
    tempfile.tempdir = scratch
    try:
        processor = make_processor(argument)
    except BaseException as error:
        ready.send(f"{type(error).__name__}: {error}"[:1000])
        ready.close()
        sys.exit(1)
    ready.send(processor.kinds)
    ready.close()
    while True:
        connection, _ = listener.accept()
        forks.sockets = [listener, connection]
        with connection:
            with contextlib.suppress(EOFError, ConnectionError):
                while True:
                    answer(processor, connection, reads)


class Helpers:
    """The processes, for the launcher: started beside the schedulers, and again when one has ended."""

    BACKOFF = 1.0

    def __init__(self, folder: str, count: int, argument, make_processor=sglang_processor):
        self.context = multiprocessing.get_context("spawn")
        self.make_processor, self.argument = make_processor, argument
        self.folder, self.address = folder, os.path.join(folder, "media.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.address)
        # Requests wait here while a process is started again; Portico bounds them.
        self.listener.listen(64)
        self.kinds = {}  # once ready: for each kind empty, or why it is not read
        self.stopping = False
        self.processes, self.reports, self.started = [None] * count, [None] * count, [0.0] * count
        self.ended = [False] * count  # the processes, and their groups
        self.reads = [self.context.Array("c", 1024, lock=False) for _ in range(count)]  # while they do, what
        for i in range(count):
            self.start(i)

    def start(self, i: int) -> None:
        scratch = os.path.join(self.folder, f"media-{i}")
        shutil.rmtree(scratch, ignore_errors=True)  # what a former process left
        os.makedirs(scratch, 0o700, exist_ok=True)
        self.reports[i], told = self.context.Pipe(duplex=False)
        self.processes[i] = self.context.Process(
            target=serve, args=(self.make_processor, self.argument, self.listener, told, scratch, self.reads[i]))
        self.processes[i].start()
        told.close()
        self.started[i], self.ended[i] = time.monotonic(), False

    def wait_ready(self, seconds: float = 600.0) -> str | None:
        """Why there is no processor, or None."""
        try:
            told = self.reports[0].recv() if self.reports[0].poll(seconds) else "its processor does not start"
        except EOFError:
            return "its processor's process has ended"
        if isinstance(told, str):
            return told
        self.kinds = told
        return None

    def has_ended(self, i: int) -> bool:
        """Then what it forked ends too: once, while its number cannot be another's."""
        process = self.processes[i]
        if not self.ended[i]:
            with contextlib.suppress(ChildProcessError):  # multiprocessing has waited for it
                if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    return False
                end_group(process.pid)
            process.join()
            self.ended[i] = True
        return True

    def keep(self) -> None:
        """Starts again what has ended."""
        # All are looked at first: where one is started, multiprocessing waits for those that have ended.
        for i in [i for i in range(len(self.processes)) if self.has_ended(i)]:
            if self.stopping or time.monotonic() - self.started[i] < self.BACKOFF:
                continue
            what = self.reads[i].value.decode(errors="replace")
            self.reads[i].value = b""
            print(f"a media helper has ended (exit code {self.processes[i].exitcode}{', while it read ' + what if what else ''}) "
                  "and is started again", flush=True)
            self.start(i)

    def stop(self) -> None:
        self.stopping = True
        for i, process in enumerate(self.processes):
            if not self.has_ended(i):
                end_group(process.pid)
                process.kill()  # it may not have a group yet
        self.listener.close()
