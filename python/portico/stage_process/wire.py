"""Messages and parts as they cross the socket (src/pipeline/process/message.h), and the memory that long ones lie in."""
import fcntl
import mmap
import os
import struct

from .parts import Audio, ClipEnd, Encoded, File, Finish, Heard, Tensor, Text, ToolCall

INLINE = 32 << 10
SEALS = 2 | 4 | 8  # shrink, grow, write
INIT, START, PART, INPUT_END, ABORT, ROOM, PING, PROFILE, REFERENCE = 1, 2, 3, 4, 5, 6, 7, 8, 9
READY, FAILED, TOOK, EMIT, END, PONG, EMIT_TO, CHOOSE = 16, 17, 18, 19, 20, 21, 22, 23

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


def part_values(part):
    """The values of a part on the wire, its bytes last; None as bytes: there are none."""
    if isinstance(part, Text):
        return [0], part.text.encode()
    if isinstance(part, File):
        return [1, part.clip], part.data
    if isinstance(part, Audio):
        return [2, part.clip, part.sample_rate, part.last], part.samples
    if isinstance(part, Heard):
        words = [[word, float(begin), float(end)] for word, begin, end in part.words]
        return [3, part.clip, float(part.begin), float(part.end), words], part.text.encode()
    if isinstance(part, ClipEnd):
        return [4, part.clip, float(part.seconds)], None
    if isinstance(part, Encoded):
        return [5, part.sample_rate, float(part.seconds)], part.data
    if isinstance(part, Finish):
        return [6, part.reason, part.prompt_tokens, part.completion_tokens], None
    if isinstance(part, ToolCall):
        return [8, part.index, part.id, part.name], part.arguments.encode()
    return [7, part.name, part.dtype, list(part.shape)], part.data


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
