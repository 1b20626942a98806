"""Messages and parts as they cross the socket (src/pipeline/process/message.h), and the memory that long ones lie in."""
import fcntl
import mmap
import os
import struct

from .parts import Audio, ClipEnd, Encoded, File, Finish, Heard, Tensor, Text, ToolCall

INLINE = 32 << 10
SEALS = 2 | 4 | 8  # shrink, grow, write
INIT, START, PART, INPUT_END, ABORT, ROOM, PING, PROFILE, REFERENCE, SOURCE_END, GATHERED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
READY, FAILED, TOOK, EMIT, END, PONG, EMIT_TO, CHOOSE, END_STREAMS, WAIT_FOR = 16, 17, 18, 19, 20, 21, 22, 23, 24, 25

# MessagePack, as much as the wire needs.


def pack(value, out):
    if value is None:
        out.append(b"\xc0")
    elif value is True or value is False:
        out.append(b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        if 0 <= value < 128:
            out.append(bytes((value,)))
        else:
            out.append(struct.pack(">Bq", 0xD3, value) if value < 1 << 63 else struct.pack(">BQ", 0xCF, value))
    elif isinstance(value, float):
        out.append(struct.pack(">Bd", 0xCB, value))
    elif isinstance(value, str):
        data = value.encode()
        out.append(bytes((0xA0 | len(data),)) if len(data) < 32 else struct.pack(">BI", 0xDB, len(data)))
        out.append(data)
    elif isinstance(value, (list, tuple)):
        out.append(bytes((0x90 | len(value),)) if len(value) < 16 else struct.pack(">BI", 0xDD, len(value)))
        for one in value:
            pack(one, out)
    elif hasattr(value, "__float__") and not hasattr(value, "__len__"):  # NumPy's numbers
        pack(value.item() if hasattr(value, "item") else float(value), out)
    else:
        data = memoryview(value).cast("B")
        out.append(struct.pack(">BI", 0xC6, len(data)))
        out.append(data)


def packed(message):
    pieces = []
    pack(message, pieces)
    return b"".join(pieces)


_FIXED = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_SIZED = {0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"), 0xD9: ("str", ">B"), 0xDA: ("str", ">H"),
          0xDB: ("str", ">I"), 0xDC: ("array", ">H"), 0xDD: ("array", ">I")}


def unpack(data, at=0):
    """(value, the place behind it)"""
    head = data[at]
    at += 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 256, at
    if head in _FIXED:
        form = _FIXED[head]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if head in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    if 0x90 <= head < 0xA0:
        kind, size = "array", head & 15
    elif 0xA0 <= head < 0xC0:
        kind, size = "str", head & 31
    else:
        kind, form = _SIZED[head]
        size = struct.unpack_from(form, data, at)[0]
        at += struct.calcsize(form)
    if kind == "array":
        values = []
        for _ in range(size):
            value, at = unpack(data, at)
            values.append(value)
        return values, at
    piece = data[at:at + size]
    return (str(piece, "utf-8") if kind == "str" else piece), at + size


class Blob:
    """A memfd and a view of its bytes."""

    def __init__(self, fd):
        self.fd = fd
        size = os.fstat(fd).st_size
        self.bytes = memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ)) if size else memoryview(b"")

    @classmethod
    def share(cls, data):
        fd = os.memfd_create("portico", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[os.write(fd, rest):]
        fcntl.fcntl(fd, getattr(fcntl, "F_ADD_SEALS", 1033), SEALS)
        return cls(fd)

    def __del__(self):
        os.close(self.fd)


# The pipeline ends a process whose parts are not well formed, and all requests in it: what a stage has put together wrongly
# fails here, in its own request. The bounds are those of src/pipeline/process/message.cc.
MOST, MOST_RATE, MOST_NAME = (1 << 63) - 1, 1_000_000, 256


def _whole(name, value, most=MOST, least=0):
    """An integer; 24000.0 and NumPy's are ones too."""
    try:
        number = None if isinstance(value, (str, bytes)) else int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number != value or not least <= number <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}, got {value!r:.80}")
    return number


def _seconds(name, value):
    number = float(value)
    if not 0 <= number < 1e9:
        raise ValueError(f"{name} must be seconds, got {value!r:.80}")
    return number


def _name(name, value):
    if not isinstance(value, str) or len(value.encode()) > MOST_NAME:
        raise ValueError(f"{name} must be text of at most {MOST_NAME} bytes, got {value!r:.80}")
    return value


def _samples(data):
    view = memoryview(data)
    if view.format not in ("B", "b", "c", "h", "<h") or view.nbytes % 2:
        raise ValueError(f"samples must be signed integers of 16 bits, got {view.nbytes} bytes of format {view.format!r}")
    return data


def _clip(part):
    return _whole("clip", part.clip, (1 << 31) - 1)


def part_values(part):
    """The values of a part on the wire, its bytes last; None as bytes: there are none. ValueError: it is not well formed."""
    if isinstance(part, Text):
        return [0], part.text.encode()
    if isinstance(part, File):
        return [1, _clip(part)], part.data
    if isinstance(part, Audio):
        return [2, _clip(part), _whole("sample_rate", part.sample_rate, MOST_RATE, 1), bool(part.last)], _samples(part.samples)
    if isinstance(part, Heard):
        words = [[_name("a word", word), _seconds("begin", begin), _seconds("end", end)] for word, begin, end in part.words]
        return [3, _clip(part), _seconds("begin", part.begin), _seconds("end", part.end), words], part.text.encode()
    if isinstance(part, ClipEnd):
        return [4, _clip(part), _seconds("seconds", part.seconds)], None
    if isinstance(part, Encoded):
        return [5, _whole("sample_rate", part.sample_rate, MOST_RATE), _seconds("seconds", part.seconds)], part.data
    if isinstance(part, Finish):
        counts = [_whole(name, getattr(part, name)) for name in ("prompt_tokens", "completion_tokens")]
        return [6, _name("reason", part.reason), *counts], None
    if isinstance(part, ToolCall):
        return [8, _whole("index", part.index, 1024), _name("id", part.id), _name("name", part.name)], part.arguments.encode()
    shape = [_whole("a dimension", one) for one in part.shape]
    if len(shape) > 16:
        raise ValueError(f"a tensor has at most 16 dimensions, got {len(shape)}")
    return [7, _name("name", part.name), _name("dtype", part.dtype), shape], part.data


def read_part(values, blob):
    kind, rest = values[0], values[1:]
    data = None
    if kind not in (4, 6):
        data = rest.pop()
        in_blob = data is None
        data = blob.bytes if in_blob else data
    if kind == 0:
        return Text(str(data, "utf-8"))
    if kind == 1:
        return File(data, rest[0])
    if kind == 2:
        return Audio(data, rest[1], rest[0], rest[2])
    if kind == 3:
        return Heard(str(data, "utf-8"), rest[1], rest[2], [tuple(word) for word in rest[3]], rest[0])
    if kind == 4:
        return ClipEnd(rest[1], rest[0])
    if kind == 5:
        return Encoded(data, rest[0], rest[1])
    if kind == 6:
        return Finish(*rest)
    if kind == 8:
        return ToolCall(rest[0], rest[1], rest[2], str(data, "utf-8"))
    part = Tensor(data, rest[2], rest[1], rest[0])
    part._blob = blob if in_blob else None
    return part
