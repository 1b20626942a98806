"""One request in one stage."""
import collections
import json
import threading
import traceback

from .edges import Choice, StreamEnds, To
from .parts import (INTERNAL, UNAUTHENTICATED, Aborted, Audio, ClipEnd, Encoded, File, Finish, Gathered, Heard, Request, SourceEnd,
                    StageError, Tensor, Text, ToolCall, as_part)
from .profile import profile
from .wire import CHOOSE, EMIT, EMIT_TO, END, END_STREAMS, INLINE, TOOK, WAIT_FOR, Blob, packed, part_values

EMIT_BYTES = 512 << 10
EMIT_PARTS = 256

MODALITIES = {Text: "text", File: "file", Audio: "audio", Heard: "heard", ClipEnd: "clip_end", Encoded: "encoded",
              Finish: "end", Tensor: "tensor", ToolCall: "tool_call"}


class Run:
    """One request in one stage, on a thread of its own. `holds`: nothing is computed between what it sends now and what it
    asks for next, so that messages wait for the ones behind them."""

    def __init__(self, worker, run, stage, fields):
        self.worker, self.id, self.stage = worker, run, stage
        self.request = Request(fields, stage.name, self)
        self.changed = threading.Condition()
        self.input = collections.deque()
        self.input_ended = self.aborted = self.ended = self.holds = False
        self.held, self.held_bytes = [], 0
        self.unacked = collections.deque()
        self.unacked_bytes = 0
        self.profile_id = fields.get("id", "")
        self.taken, self.sent = {}, {}

    def record(self, event, **metadata):
        profile.record(self.profile_id, self.stage.name, event, **metadata)

    def took(self, part):
        source = part.source or "coordinator"
        if not self.taken:
            self.record("stage_input_received", from_stage=source)
        number = self.taken.get(source, 0)
        if part.source:
            self.record("stage_stream_chunk_received", from_stage=source, modality=MODALITIES[type(part)], chunk_id=number)
        self.taken[source] = number + 1

    def sends(self, part, targets):
        for target in targets:
            number = self.sent.get(target, 0)
            self.sent[target] = number + 1
            if not profile.on:
                continue
            chunk = {"to_stage": target, "modality": MODALITIES[type(part)], "chunk_id": number}
            if number == 0:
                self.record("stage_hop_sent", to_stage=target)
                self.record("stage_first_stream_chunk_sent", **chunk)
            self.record("stage_stream_chunk_sent", **chunk)

    def parts(self):
        """The parts that come; each has been worked on when the next is asked for. Between them ends, if the stage sees them."""
        while True:
            with self.changed:
                while not (self.input or self.input_ended or self.aborted or self.ended):
                    self.flush()
                    self.changed.wait()
                if self.aborted or self.ended:
                    raise Aborted
                if not self.input:
                    return
                part = self.input.popleft()
            if isinstance(part, (SourceEnd, Gathered)):
                if self.stage.sees_ends:
                    yield part
                continue
            self.took(part)
            yield part
            del part
            self.answer([TOOK, self.id])

    def gather(self):
        """Waits for the sounds of the request's references."""
        with self.changed:
            while any(one.audio is None for one in self.request.references) and not self.aborted:
                self.changed.wait()
            if self.aborted:
                raise Aborted

    def emit(self, value, target=None):
        """Sends it to the stages behind, or to one of them."""
        part = as_part(value)
        values, data = part_values(part)
        blob = None
        size = 64
        if data is not None:
            size += len(data) if isinstance(data, bytes) else memoryview(data).nbytes
            if size > INLINE:
                blob = getattr(part, "_blob", None) or Blob.share(data)
                data = None
            values.append(data)
        with self.changed:
            while (len(self.unacked) >= EMIT_PARTS or self.unacked_bytes >= EMIT_BYTES) and not self.aborted:
                self.flush()
                self.changed.wait()
            if self.aborted:
                raise Aborted
            self.unacked.append(size)
            self.unacked_bytes += size
        self.sends(part, self.stage.next if target is None else [target])
        self.send([EMIT, self.id, values] if target is None else [EMIT_TO, self.id, target, values], blob)

    def send(self, message, blob=None):
        """In order; behind what is held."""
        with self.changed:
            message = packed(message)
            if blob is not None or len(message) > INLINE:
                self.flush()
                self.worker.send_packed(message, blob)
                return
            self.held.append(message)
            self.held_bytes += len(message)
            if not self.holds or self.held_bytes > INLINE:
                self.flush()

    def flush(self):
        with self.changed:
            if self.held:
                self.worker.send_several(self.held)
                self.held, self.held_bytes = [], 0

    def wait_for(self, sources):
        """Of the stages in `wait_for`, the request waits for these."""
        self.answer([WAIT_FOR, self.id, json.dumps(sorted(sources))])

    def answer(self, message):
        """Sends what may not follow the end: a scheduler is fed on another thread."""
        with self.changed:
            if self.ended:
                raise Aborted
            self.send(message)

    def end(self, code=0, message="", field=""):
        with self.changed:
            self.ended = True
            self.send([END, self.id, code, message[:1000], field, ""])
            self.flush()

    def refuse(self, error):
        """Ends with what a StageError says, whatever it was made of: a request without an end would wait for ever."""
        code = int(error.code) if isinstance(error.code, int) and 0 < error.code <= UNAUTHENTICATED else INTERNAL
        message, field = (str(text or "").encode(errors="replace").decode() for text in (error, error.field))
        self.end(code, message, field[:64])

    def work(self):
        try:
            if self.request.references:
                self.gather()
            for value in self.stage.run(self.parts(), self.request):
                if isinstance(value, To):
                    self.emit(value.part, value.target)
                elif isinstance(value, Choice):
                    self.send([CHOOSE, self.id, json.dumps(value.targets)])
                elif isinstance(value, StreamEnds):
                    self.send([END_STREAMS, self.id, json.dumps(value.targets)])
                else:
                    self.emit(value)
        except Aborted:
            self.end(1, "aborted")
        except StageError as error:
            self.refuse(error)
        except BaseException:  # sys.exit() too, which would end this thread alone
            traceback.print_exc()
            self.end(INTERNAL, f"stage `{self.stage.name}` failed")
        else:
            targets = self.stage.next
            self.record("stage_complete", terminal=targets[:1] == ["coordinator"], next=targets[0] if targets else None)
            self.end()
        finally:
            self.worker.runs.pop(self.id, None)
            with self.changed:  # a scheduler is fed on another thread
                self.ended = True
                self.changed.notify_all()
