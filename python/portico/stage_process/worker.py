"""The process: stages, the requests in them, and the socket to the pipeline."""
import array
import json
import queue
import socket
import sys
import threading
import traceback

from .parts import Gathered, SourceEnd
from .profile import profile
from .run import Run
from .target import Stage
from .wire import (ABORT, FAILED, GATHERED, INIT, INLINE, INPUT_END, PART, PING, PONG, PROFILE, READY, REFERENCE, ROOM, SOURCE_END,
                   START, Blob, packed, read_part, unpack)

IDLE_THREADS = 32  # kept for the next requests


class Threads:
    """Calls functions, each on a thread that does nothing else meanwhile; to start one costs more than a short request."""

    def __init__(self):
        self.idle = []

    def call(self, function):
        try:
            calls = self.idle.pop()
        except IndexError:
            calls = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(calls,), daemon=True).start()
        calls.put(function)

    def _work(self, calls):
        while True:
            calls.get()()
            if len(self.idle) >= IDLE_THREADS:
                return
            self.idle.append(calls)


class Worker:
    def __init__(self, connection):
        self.connection = connection
        self.sending = threading.Lock()
        self.threads = Threads()
        self.stages = {}
        self.runs = {}
        self.started = []

    def send(self, message):
        self.send_packed(packed(message))

    def send_packed(self, message, blob=None):
        if len(message) > 2 * INLINE:
            blob = Blob.share(message)
            message = b"\1"
        else:
            message = b"\0" + message
        rights = [] if blob is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [blob.fd]))]
        with self.sending:
            self.connection.sendmsg([message], rights)

    def send_several(self, messages):
        """Packed, without memory beside them, in one datagram."""
        if len(messages) == 1:
            return self.send_packed(messages[0])
        with self.sending:
            self.connection.send(b"\2" + b"".join(messages))

    def receive(self):
        """[(message, blob or None), …]; empty at the end."""
        data, rights, _, _ = self.connection.recvmsg(128 << 10, socket.CMSG_SPACE(8), socket.MSG_CMSG_CLOEXEC)
        if not data:
            return []
        if data[0] & 2:
            messages, at = [], 1
            while at < len(data):
                message, at = unpack(data, at)
                messages.append((message, None))
            return messages
        blob = None
        for level, kind, content in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                blob = Blob(array.array("i", content[:4])[0])
        view = blob.bytes if data[0] & 1 else memoryview(data)[1:]
        return [(unpack(view)[0], blob)]

    def init(self, text):
        try:
            wanted = json.loads(text)
            sys.path.insert(0, wanted.get("folder") or ".")
            for one in wanted["stages"]:
                self.stages[one["name"]] = Stage(one, wanted.get("model_path") or "")
        except Exception as error:
            traceback.print_exc()
            return self.send([FAILED, 0, f"{type(error).__name__}: {error}"])
        facts = {name: {"max_running": stage.max_running, "voices": stage.voices, "speech_fields": stage.speech_fields}
                 for name, stage in self.stages.items()}
        self.send([READY, 0, json.dumps({"stages": facts})])

    def start(self, run, name, text):
        self.runs[run] = work = Run(self, run, self.stages[name], json.loads(text))
        self.started.append(work)

    def handle(self, message, blob):
        kind, run = message[0], message[1]
        if kind == PING:
            return self.send([PONG, 0, message[2]])
        if kind == INIT:
            return self.init(message[2])
        if kind == PROFILE:
            return profile.handle(json.loads(message[2]), next(iter(self.stages), "stage"))
        if kind == START:
            return self.start(run, message[2], message[3])
        work = self.runs.get(run)
        if work is None:
            return None  # it has ended meanwhile
        part = None
        if kind == PART:
            part = read_part(message[3], blob)
            part.source = message[2]
        elif kind == REFERENCE:
            part = read_part(message[2], blob)
        with work.changed:
            if kind == PART:
                work.input.append(part)
            elif kind == SOURCE_END:
                work.input.append(SourceEnd(message[2]))
            elif kind == GATHERED:
                work.input.append(Gathered())
            elif kind == REFERENCE:
                work.request.references[part.clip].audio = part
            elif kind == INPUT_END:
                work.input_ended = True
            elif kind == ABORT:
                work.aborted = True
            elif kind == ROOM:
                for _ in range(min(message[2], len(work.unacked))):
                    work.unacked_bytes -= work.unacked.popleft()
            work.changed.notify_all()

    def serve(self):
        while True:
            received = self.receive()
            if not received:
                return
            for message, blob in received:
                self.handle(message, blob)
            for work in self.started:  # with all that came
                self.threads.call(work.work)
            self.started.clear()
            received = message = blob = work = None
