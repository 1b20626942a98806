"""What flows between stages, and what a stage sees of a request."""

INVALID_ARGUMENT, INTERNAL, UNAUTHENTICATED = 3, 13, 16  # gRPC's codes, of which the last is the greatest


class Aborted(Exception):
    """Nobody waits for the request any more."""


class StageError(Exception):
    """Ends the request; the client is told the message, and the field at fault if there is one. `code` is one of gRPC's."""

    def __init__(self, message, field="", code=INVALID_ARGUMENT):
        super().__init__(message)
        self.field = field
        self.code = code


class Part:
    __slots__ = ("source", "_blob")
    _fields = ()

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"


class Text(Part):
    __slots__ = _fields = ("text",)

    def __init__(self, text):
        self.text = text


class File(Part):
    """A file as the client sent it; `data` is bytes-like."""
    __slots__ = ("clip", "data")
    _fields = ("clip",)

    def __init__(self, data, clip=0):
        self.data, self.clip = data, clip


class Audio(Part):
    """Sound: one channel of signed 16-bit samples, bytes-like. `last`: the clip is complete."""
    __slots__ = ("samples", "sample_rate", "clip", "last")
    _fields = ("sample_rate", "clip", "last")

    def __init__(self, samples, sample_rate=16000, clip=0, last=False):
        self.samples, self.sample_rate, self.clip, self.last = samples, sample_rate, clip, last

    def numpy(self):
        """The samples as an int16 array, without a copy."""
        import numpy
        return numpy.frombuffer(self.samples, numpy.int16)


class Heard(Part):
    """What was heard; times are seconds since the clip began, words are (word, begin, end)."""
    __slots__ = _fields = ("text", "begin", "end", "words", "clip")

    def __init__(self, text, begin=0.0, end=0.0, words=(), clip=0):
        self.text, self.begin, self.end, self.words, self.clip = text, begin, end, words, clip


class ClipEnd(Part):
    __slots__ = _fields = ("seconds", "clip")

    def __init__(self, seconds, clip=0):
        self.seconds, self.clip = seconds, clip


class Encoded(Part):
    """Bytes of an encoded stream, and the seconds of sound in them."""
    __slots__ = ("data", "sample_rate", "seconds")
    _fields = ("sample_rate", "seconds")

    def __init__(self, data, sample_rate, seconds):
        self.data, self.sample_rate, self.seconds = data, sample_rate, seconds


class Finish(Part):
    __slots__ = _fields = ("reason", "prompt_tokens", "completion_tokens")

    def __init__(self, reason="stop", prompt_tokens=0, completion_tokens=0):
        self.reason, self.prompt_tokens, self.completion_tokens = reason, prompt_tokens, completion_tokens


class ToolCall(Part):
    """A piece of a call to one of the chat's tools; the first of a call has its name."""
    __slots__ = _fields = ("index", "id", "name", "arguments")

    def __init__(self, index, id="", name="", arguments=""):
        self.index, self.id, self.name, self.arguments = index, id, name, arguments


class Tensor(Part):
    """An array. numpy() and __dlpack__() are views of the bytes that came."""
    __slots__ = ("data", "shape", "dtype", "name")
    _fields = ("name", "dtype", "shape")

    def __init__(self, data, shape=None, dtype=None, name=""):
        if shape is None:  # a NumPy array, or what can be one
            import numpy
            data = numpy.ascontiguousarray(data)
            data, shape, dtype = data.reshape(-1).view(numpy.uint8).data, data.shape, data.dtype.name
        self.data, self.shape, self.dtype, self.name = data, tuple(shape), dtype, name

    def numpy(self):
        import numpy
        return numpy.frombuffer(self.data, numpy.dtype(self.dtype)).reshape(self.shape)

    def __dlpack__(self, **arguments):
        return self.numpy().__dlpack__(**arguments)

    def __dlpack_device__(self):
        return (1, 0)  # the CPU


class SourceEnd:
    """No part: `source` (a stage, or "" for the client) sends no more. It comes only to stages that others behind them stream
    back to, which end by themselves."""
    __slots__ = ("source",)

    def __init__(self, source):
        self.source = source

    def __repr__(self):
        return f"SourceEnd(source={self.source!r})"


class Gathered:
    """No part: all that the stage waits for has come."""
    __slots__ = ()


def as_part(value):
    if isinstance(value, Part):
        return value
    if isinstance(value, str):
        return Text(value)
    if hasattr(value, "__array__"):
        return Tensor(value)
    raise TypeError(f"a stage cannot send a {type(value).__name__}: send a part, a text or an array")


def part_bytes(part):
    """About what a part takes."""
    data = getattr(part, "data", None)
    data = getattr(part, "samples", None) if data is None else data
    size = 0 if data is None else len(data) if isinstance(data, bytes) else memoryview(data).nbytes
    return 64 + size + len(getattr(part, "text", ""))


def several(result):
    """What a function has returned, part by part."""
    if result is None:
        return ()
    if isinstance(result, (Part, str)) or hasattr(result, "__array__"):
        return (result,)
    return result


# Of a speech request, for stages that name them in their `speech_fields` (src/pipeline/request.h).
SPEECH_FIELDS = ("duration_tokens", "initial_codec_chunk_frames", "ref_audio", "ref_text", "references", "task_type", "token_count",
                 "x_vector_only_mode")


class Reference:
    """A voice to imitate: `audio`, an Audio of its whole sound, and `text`, what is said in it, or ""."""
    __slots__ = ("audio", "text")

    def __init__(self, audio, text=""):
        self.audio, self.text = audio, text

    def __repr__(self):
        return f"Reference(audio={self.audio!r}, text={self.text!r})"


class Request:
    """What a stage sees of a request: id, task, wants_text, wants_audio, voice, format, sample_rate, speed, language,
    instructions, messages, tools, tool_choice, parallel_tool_calls, `params` (its stage_params of this stage), and `sampling`:
    what the chat or the speech says of sampling (temperature, top_p, max_new_tokens …) and, before that, its stage_sampling of
    this stage. `references` (a list of Reference) and `speech_fields` (task_type, x_vector_only_mode …, those that the client
    has set) are for stages that name them in their own `speech_fields`."""

    def __init__(self, fields, stage, run):
        speech = fields.get("speech") or {}
        self.id = fields.get("id", "")
        self.task = fields.get("task", "")
        self.wants_text = fields.get("wants_text", False)
        self.wants_audio = fields.get("wants_audio", False)
        self.voice = speech.get("voice", "")
        self.format = speech.get("format", "")
        self.sample_rate = speech.get("sample_rate", 0)
        self.speed = speech.get("speed", 1.0)
        self.messages = fields.get("messages") or []
        self.max_tokens = fields.get("max_tokens")
        self.temperature = fields.get("temperature")
        self.tools = fields.get("tools") or []
        self.tool_choice = fields.get("tool_choice")
        self.parallel_tool_calls = fields.get("parallel_tool_calls", True)
        self.language = fields.get("language") or ""
        self.instructions = fields.get("instructions") or ""
        self.params = (fields.get("stage_params") or {}).get(stage) or {}
        sampling = dict(fields.get("sampling") or {})
        if "max_tokens" in sampling:
            sampling["max_new_tokens"] = sampling.pop("max_tokens")
        self.sampling = {**sampling, **((fields.get("stage_sampling") or {}).get(stage) or {})}
        self.references = [Reference(None, one.get("text") or "") for one in fields.get("references") or []]
        self.speech_fields = dict(fields.get("speech_fields") or {})
        self._run = run

    @property
    def aborted(self):
        return self._run.aborted
