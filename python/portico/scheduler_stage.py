"""Runs sglang-omni's scheduler objects as stages of a Portico pipeline (docs/omni.md).

Such an object has `inbox` and `outbox` (queues), `start()`, which blocks on a thread of its own, `stop()` and
`abort(request_id)`. Messages in are `{request_id, type: new_request | stream_chunk | stream_done, data}`, messages out
`{request_id, type: result | stream | error, data, target, metadata}`; the data of a new request and of a result is a
payload `{request_id, request: {inputs, params, metadata}, data}`. With sglang-omni installed they are its own classes.

What goes to the client or to Portico's stages becomes their parts: a mapping's `text`, `audio_waveform` (or `audio_data`),
`finish_reason` and `usage`. What goes to another scheduler travels as it is: JSON, bytes and arrays, never pickle.
Only the standard library is needed.
"""
import array
import base64
import io
import json
import queue
import struct
import threading
import types
import wave

PAYLOAD = "sglang_omni.payload"
CHUNK = "sglang_omni.chunk"
_TICK = 0.05  # how late an abort is seen at most, in seconds
_MAX_EARLY = 64 << 20  # bytes of chunks that wait for the payload


def is_scheduler(made):
    return all(hasattr(made, name) for name in ("inbox", "outbox", "start", "abort"))


def _incoming(request_id, kind, data):
    try:
        from sglang_omni.scheduling.message import IncomingMessage
        return IncomingMessage(request_id, kind, data)
    except ImportError:
        return types.SimpleNamespace(request_id=request_id, type=kind, data=data)


def _payload(request_id, inputs, params, metadata, data):
    try:
        from sglang_omni.proto import OmniRequest, StagePayload
        return StagePayload(request_id=request_id, request=OmniRequest(inputs=inputs, params=params, metadata=metadata), data=data)
    except ImportError:
        request = types.SimpleNamespace(inputs=inputs, params=params, metadata=metadata)
        return types.SimpleNamespace(request_id=request_id, request=request, data=data)


# A value with arrays and bytes in it → a JSON head and the bytes of these, and back.


def dump(value):
    buffers = []

    def plain(one):
        if one is None or isinstance(one, (bool, int, float, str)):
            return one
        if isinstance(one, (bytes, bytearray, memoryview)):
            buffers.append(memoryview(one).cast("B"))
            return {"__bytes__": len(buffers) - 1}
        if isinstance(one, dict):
            return {str(key): plain(member) for key, member in one.items()}
        if isinstance(one, (list, tuple)):
            return [plain(member) for member in one]
        if hasattr(one, "detach"):  # a tensor of torch
            return {"__torch__": plain(one.detach().cpu().contiguous().numpy())}
        if hasattr(one, "__array__"):
            import numpy
            whole = numpy.ascontiguousarray(one)
            buffers.append(memoryview(whole.reshape(-1).view(numpy.uint8)))
            return {"__array__": len(buffers) - 1, "dtype": whole.dtype.name, "shape": list(whole.shape)}
        if hasattr(one, "item"):
            return one.item()
        raise TypeError(f"a {type(one).__name__} cannot go to another stage; send numbers, texts, bytes or arrays")

    shape = plain(value)
    head = json.dumps([shape, [len(buffer) for buffer in buffers]]).encode()
    return b"".join([struct.pack("<I", len(head)), head, *buffers])


def load(data):
    view = memoryview(data).cast("B")
    length = struct.unpack_from("<I", view)[0]
    value, sizes = json.loads(bytes(view[4:4 + length]))
    buffers, at = [], 4 + length
    for size in sizes:
        buffers.append(view[at:at + size])
        at += size

    def whole(one):
        if isinstance(one, list):
            return [whole(member) for member in one]
        if not isinstance(one, dict):
            return one
        if "__bytes__" in one:
            return bytes(buffers[one["__bytes__"]])
        if "__array__" in one:
            import numpy
            return numpy.frombuffer(buffers[one["__array__"]], numpy.dtype(one["dtype"])).reshape(one["shape"])
        if "__torch__" in one:
            import torch
            return torch.from_numpy(whole(one["__torch__"]).copy())
        return {key: whole(member) for key, member in one.items()}

    return whole(value)


def _samples(data):
    """16-bit samples of what a scheduler calls sound."""
    sound = data.get("audio_waveform", data.get("audio_data"))
    if sound is None:
        return None
    if hasattr(sound, "detach"):
        sound = sound.detach().cpu().numpy()
    if isinstance(sound, (bytes, bytearray, memoryview)):
        if data.get("audio_waveform_dtype", "int16") == "int16":
            return array.array("h", bytes(sound))
        sound = array.array("f", bytes(sound))
    elif hasattr(sound, "reshape"):
        if sound.dtype.name == "int16":
            return array.array("h", sound.reshape(-1).tobytes())
        sound = sound.reshape(-1).tolist() if sound.ndim == 1 else sound[0].reshape(-1).tolist()
    return array.array("h", (int(max(-1.0, min(1.0, one)) * 32767) for one in sound))


def _reference(reference):
    """As a client could have sent it."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(reference.audio.sample_rate)
        sound.writeframes(reference.audio.samples)
    data = base64.b64encode(file.getvalue()).decode()
    return {"data": data, "media_type": "audio/wav", **({"text": reference.text} if reference.text else {})}


class _Answer:
    """What of an answer has been sent: a result that repeats it is cut."""

    def __init__(self, stage):
        self.stage = stage
        self.text = ""
        self.samples = 0

    def parts(self, data, is_result):
        if not isinstance(data, dict):
            return
        text = data.get("text") or ""
        if is_result and text.startswith(self.text):
            text = text[len(self.text):]
        if text:
            self.text += text
            yield self.stage.Text(text)
        samples = _samples(data)
        if samples is not None:
            if is_result:
                samples = samples[self.samples:]
            self.samples += len(samples)
            if samples:
                yield self.stage.Audio(samples.tobytes(), int(data.get("sample_rate") or 24000))
        if is_result:
            usage = data.get("usage") or {}
            yield self.stage.Finish(str(data.get("finish_reason") or "stop"), int(usage.get("prompt_tokens") or 0),
                                    int(usage.get("completion_tokens") or 0))


class _Feed:
    """What a scheduler is given of one request: its payload, and chunks of the stages that stream to it. Chunks that come before the
    payload wait for it, unless the stage accepts them early."""

    def __init__(self, of, request):
        self.of, self.request, self.edges, self.stage = of, request, of.edges, of.stage
        self.waiting = self.edges.waiting(self.edges, request)
        self.payloads, self.plain, self.kept = {}, {}, self.edges.early()  # by source
        self.begun = False
        self.early, self.early_bytes = [], 0
        self.numbers = {}  # of chunks, by source
        self.open = []     # sources of chunks that have not ended
        self.done = self.from_scheduler = False

    def put(self, kind, data=None):
        self.of.scheduler.inbox.put(_incoming(self.request.id, kind, data))

    def begin(self, payload):
        self.begun = True
        self.put("new_request", payload)
        for kind, data in self.early:
            if self.takes(getattr(data, "from_stage", "")):
                self.put(kind, data)
        self.early = []
        self.open = [source for source in self.open if self.takes(source)]

    def takes(self, source):
        """Not what a source sends for which wait_for_fn does not wait."""
        return source not in self.edges.wait_for or self.waiting.wants(source)

    def streamed(self, kind, data, size=0):
        """A chunk, or the end of some."""
        if self.begun or not self.edges.payload_first:
            return self.put(kind, data)
        self.early_bytes += size
        if self.early_bytes > _MAX_EARLY:
            raise RuntimeError(f"more than {_MAX_EARLY >> 20} MB of chunks have come before the payload; "
                               "let the stage can_accept_stream_before_payload")
        return self.early.append((kind, data))

    def source_ended(self, source):
        self.waiting.source_ended(source, lambda: self.of_source(source))
        if source in self.open or source in self.edges.streamed_by:
            self.open = [one for one in self.open if one != source]
            self.done = True
            self.streamed("stream_done", None)
        # Where stages stream back, the parts do not end.
        if not (self.begun or self.edges.gets_payload or source in self.edges.fed_by):
            self.begin(self.new())

    def new(self):
        return self.of._new(self.request, self.plain.get("", []))

    def chunk(self, part):
        number = self.numbers.get(part.source, 0)
        self.numbers[part.source] = number + 1
        if number == 0:
            self.open.append(part.source)
        packed = load(part.data)
        self.streamed("stream_chunk", types.SimpleNamespace(chunk_id=number, data=packed["data"], from_stage=part.source,
                                                            metadata=packed["metadata"]), memoryview(part.data).nbytes)

    def of_source(self, source):
        """The payload that a source has sent; of one that is no scheduler, what is made of its parts."""
        if source not in self.payloads and source in self.plain:
            self.payloads[source] = self.of._new(self.request, self.plain[source])
        return self.payloads.get(source)

    def merged(self):
        sources = {name: self.of_source(name) for name in self.edges.wait_for if self.waiting.wants(name)}
        sources = {name: payload for name, payload in sources.items() if payload is not None}
        return self.edges.merge(sources)

    def all(self, parts):
        for part in parts:
            if isinstance(part, self.edges.gathered):
                self.waiting.gathered()
                if not self.begun and not self.edges.wait_for:
                    self.begin(self.new())
            elif isinstance(part, self.edges.source_end):
                self.source_ended(part.source)
            else:
                self.take(part)
            if self.waiting.complete and not self.begun:
                self.begin(self.merged())
        if self.edges.wait_for:
            self.waiting.check()
        elif not self.begun:
            self.begin(self.new())
        # A stream of nothing from one scheduler to another ends too.
        for _ in self.open or [0] * (bool(self.edges.streamed_by) and self.from_scheduler and not self.done):
            self.put("stream_done")

    def take(self, part):
        kind = part.name if isinstance(part, self.stage.Tensor) else ""
        source = part.source if self.edges.wait_for else ""
        if kind == CHUNK:
            if self.takes(part.source):
                self.chunk(part)
        elif part.source in self.edges.beside:
            pass  # its chunks alone are for this stage
        elif self.edges.wait_for and not self.waiting.wants(source):
            pass
        elif kind != PAYLOAD:
            if not self.begun:
                self.plain.setdefault(source, []).append(part)
                self.kept.add(part)
        elif self.edges.wait_for:
            self.payloads[source] = self.of._payload_of(part, self.request)
            self.kept.add(part)
        else:
            self.from_scheduler = True
            self.begin(self.of._payload_of(part, self.request))


class SchedulerStage:
    """A scheduler with what Portico wants of a stage. `stage` is the module portico.stage; `last`: no scheduler is behind;
    `edges`: the functions of the edges around it (stage_process/edges.py), which get and give payloads."""

    has_edges = True

    def __init__(self, scheduler, stage, last, edges):
        self.scheduler, self.stage, self.last, self.edges = scheduler, stage, last, edges
        if last and edges.project:
            raise ValueError("project_payload of a scheduler is for payloads, which only schedulers behind it get")
        if edges.wait and not edges.merge:
            raise ValueError("wait_for_fn of a scheduler needs a merge_fn of Python, which makes one payload of several")
        if hasattr(scheduler, "speech_fields"):
            self.speech_fields = scheduler.speech_fields
        self.waiting = {}
        self.names = threading.Lock()
        warm_up = getattr(scheduler, "warm_up_serving_thread", None)
        if warm_up is not None:
            warm_up()
        self.worker = threading.Thread(target=scheduler.start, daemon=True)
        self.worker.start()
        threading.Thread(target=self._sort, daemon=True).start()

    def _sort(self):
        while True:
            message = self.scheduler.outbox.get()
            answers = self.waiting.get(getattr(message, "request_id", None))
            if answers is not None:
                answers.put(message)

    def _new(self, request, heard):
        """The payload of a request that comes from no scheduler."""
        texts = [part.text for part in heard if isinstance(part, (self.stage.Text, self.stage.Heard))]
        files = [part for part in heard if isinstance(part, self.stage.File)]
        sounds = [part for part in heard if isinstance(part, self.stage.Audio)]
        if request.task == "chat":
            inputs = request.messages
            if files:
                inputs = {"messages": request.messages, "audios": [bytes(file.data) for file in files]}
        elif request.task == "transcription" and files:
            inputs = {"audio_bytes": bytes(files[0].data), "filename": "audio", "content_type": "application/octet-stream"}
        elif sounds:
            inputs = {"audio_bytes": b"".join(bytes(sound.samples) for sound in sounds), "sample_rate": sounds[0].sample_rate}
        else:
            inputs = "".join(texts)
        wanted = (["text"] if request.wants_text or request.task == "transcription" else []) + (["audio"] if request.wants_audio else [])
        params = {"stream": True, **request.sampling}
        metadata = {"output_modalities": wanted, "stage_params": request.params}
        if request.task == "speech":
            metadata["task"] = "tts"
            metadata["tts_params"] = {"voice": request.voice or "default", "response_format": request.format,
                                      "speed": request.speed, "language": request.language or None,
                                      "instructions": request.instructions or None, **request.speech_fields}
            if request.references:
                inputs = {"text": inputs, "references": [_reference(one) for one in request.references]}
        elif request.task == "transcription":
            metadata["task"] = "asr"
        return _payload(request.id, inputs, params, metadata, {"raw_inputs": inputs})

    def _feed(self, parts, request, answers):
        """Gives the scheduler what comes, on a thread of its own."""
        try:
            _Feed(self, request).all(parts)
        except self.stage.Aborted:
            pass  # the other thread sees it too
        except BaseException as error:  # sys.exit() too: nobody else tells the request
            answers.put(error)

    def _payload_of(self, part, request):
        packed = load(part.data)
        return _payload(request.id, packed["inputs"], packed["params"], packed["metadata"], packed["data"])

    def _enter(self, request, answers):
        """Gives the request a name that no other has here. The clients choose ids, and one that was aborted is not gone at once."""
        with self.names:
            own, number = request.id, 1
            while request.id in self.waiting:
                number += 1
                request.id = f"{own}#{number}"
            self.waiting[request.id] = answers

    def run(self, parts, request):
        answers = queue.Queue()
        self._enter(request, answers)
        threading.Thread(target=self._feed, args=(parts, request, answers), daemon=True).start()
        answer = _Answer(self.stage)
        done = False
        try:
            while not done:
                try:
                    message = answers.get(timeout=_TICK)
                except queue.Empty:
                    if request.aborted:
                        raise self.stage.Aborted from None
                    if not self.worker.is_alive():
                        raise RuntimeError("the scheduler's thread has ended") from None
                    continue
                if isinstance(message, BaseException):
                    raise message
                if message.type == "error":
                    raise message.data if isinstance(message.data, Exception) else RuntimeError(str(message.data))
                done = message.type == "result"
                yield from self._sent(message, answer, done)
        finally:
            del self.waiting[request.id]
            if not done:
                self.scheduler.abort(request.id)

    def _sent(self, message, answer, is_result):
        if is_result:
            payload = message.data
            # The client gets its part from here where this is the last scheduler.
            if not self.last:
                yield from self._sent_on(payload)
            yield from answer.parts(payload.data, True)
            yield from self.edges.choices(payload.request_id, payload)
        elif getattr(message, "target", None) not in (None, "", "coordinator"):
            if message.target not in self.edges.targets:
                raise ValueError(f"the scheduler streams to `{message.target}`, which is not behind it")
            chunk = self._tensor({"data": message.data, "metadata": getattr(message, "metadata", None)}, CHUNK)
            yield self.edges.to(message.target, chunk)
        else:
            yield from answer.parts(message.data, False)

    def _sent_on(self, payload):
        """The payload for the schedulers behind, for each as it is projected for that."""
        def packed(one):
            request = one.request
            return self._tensor({"inputs": request.inputs, "params": request.params, "metadata": request.metadata, "data": one.data}, PAYLOAD)

        if not self.edges.project:
            yield packed(payload)
            return
        for target in self.edges.targets:
            project = self.edges.project.get(target)
            if project is None:
                yield self.edges.to(target, packed(payload))
                continue
            # A function may change what it gets.
            request, data = payload.request, payload.data
            own = _payload(payload.request_id, request.inputs, dict(request.params), dict(request.metadata),
                           dict(data) if isinstance(data, dict) else data)
            yield self.edges.to(target, packed(project(own)))

    def _tensor(self, value, name):
        data = dump(value)
        return self.stage.Tensor(data, (len(data),), "uint8", name)
