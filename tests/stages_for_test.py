"""Stages of Python for the tests of omni_stages.py's pipelines."""
import array
import json
import os
import sys
import threading
import time

from portico.stage import Audio, Encoded, Finish, Heard, SourceEnd, StageError, Tensor, Text, ToolCall


def same(part, request):
    return part


def shout(part, request, mark="!"):
    return part.text.upper() + mark


def spell(parts, request, delay=0.0):
    """A step of sound for each word, the longer the later in the text."""
    for part in parts:
        for i, _ in enumerate(part.text.split(), 1):
            time.sleep(delay)
            yield Audio(int(i).to_bytes(2, "little") * 480, 24000)
    yield Finish()


def count(parts, request, delay=0.0):
    """How many pieces of sound came, once all have."""
    pieces = 0
    for part in parts:
        if isinstance(part, Audio):
            time.sleep(delay)
            pieces += 1
    yield Audio(pieces.to_bytes(2, "little") * 480, 24000)
    yield Finish()


def falters(parts, request):
    """A voice that fails right behind its first sound."""
    for _ in parts:
        yield Audio(bytes(1600), 8000)
        yield Audio(bytes(4800), 24000)


def hears_at(parts, request):
    """The temperature at which it was asked to hear."""
    for part in parts:
        if getattr(part, "last", False):
            yield Heard(f"heard at {request.sampling.get('temperature')}", 0.0, 0.5)


def leads_on(parts, request):
    """A recognizer of somebody who has not finished."""
    for part in parts:
        if getattr(part, "last", False):
            yield Heard("tell me about the", 0.0, 0.5)


class Hold:
    """Stops where the text says so, and tells the world its pid by its voice."""
    voices = [f"pid{os.getpid()}"]

    def __init__(self, marker=""):
        self.marker = marker

    def run(self, parts, request):
        for part in parts:
            if "refuse" in part.text:
                raise StageError("this voice does not say that", field="input")
            if "crash" in part.text:
                raise RuntimeError("a secret")
            if "endless" in part.text:
                while not request.aborted:
                    yield Audio(bytes(48000), 24000)
            if "first" in part.text:
                yield Audio(bytes(960), 24000)
            if "hold" in part.text and not os.path.exists(self.marker):
                while not request.aborted:
                    time.sleep(0.02)
            yield Audio(bytes(4800), 24000)


def hold(part, request, marker=""):
    """Passes a part on once there is such a file, and a sound of ones never."""
    if isinstance(part, Audio) and part.samples[0] == 1:
        return None
    while not os.path.exists(marker) and not request.aborted:
        time.sleep(0.01)
    return part


def wait_between(parts, request, marker=""):
    """Sound, and more of it once there is such a file."""
    for _ in parts:
        yield Audio(bytes(960), 24000)
        while not os.path.exists(marker) and not request.aborted:
            time.sleep(0.01)
        yield Audio(bytes(4800), 24000)


class Garbage:
    """Sends what is no message, once the text says which."""

    def run(self, parts, request):
        for part in parts:
            worker = request._run.worker
            kind = part.text.split()[0]
            if kind == "noise":
                worker.connection.send(b"\x00\xc1\xc1\xc1")
            elif kind == "empty":
                worker.connection.send(b"\x07")
            elif kind == "stranger":
                worker.send([19, 987654, [0, b"hello"]])
            elif kind == "twice":
                worker.send([20, request._run.id, 0, "", "", ""])
            elif kind == "numbers":
                worker.send([19, request._run.id, [2, 0, -5, False, b"abc"]])
            elif kind == "nobody":
                worker.send([22, request._run.id, "nobody", [0, b"hello"]])
            elif kind == "choice":
                worker.send([23, request._run.id, "[7]"])
            elif kind == "long":
                worker.connection.send(bytes(140000))
            if kind != "fine":
                time.sleep(3)
            yield Audio(bytes(4800), 24000)


class HoldTwice:
    """Stops with its first two texts, the first time behind a sound, and writes a line for each text."""
    voices = [f"pid{os.getpid()}"]

    def __init__(self, log):
        self.log = log

    def run(self, parts, request):
        for _ in parts:
            with open(self.log, "a+") as file:
                file.seek(0)
                before = len(file.readlines())
                file.write("begun\n")
            if before == 0:
                yield Audio(bytes(960), 24000)
            while before < 2 and not request.aborted:
                time.sleep(0.02)
            yield Audio(bytes(4800), 24000)


def to_tensor(part, request, megabytes=4):
    return Tensor(array.array("f", [0.5]) * (megabytes << 18), (megabytes, 1 << 18), "float32", "wave")


def from_tensor(part, request):
    values = memoryview(part.data).cast("f")
    assert part.shape[0] * part.shape[1] == len(values) and part.dtype == "float32" and part.name == "wave"
    return Audio(int(values[0] * 2000).to_bytes(2, "little") * 480, 24000)


def sampled(parts, request):
    """For each part the sampling parameters, each a step of sound."""
    for _ in parts:
        for name in ("seed", "top_k", "max_new_tokens"):
            yield Audio(int(request.sampling.get(name, 0)).to_bytes(2, "little") * 480, 24000)


class Clone:
    """A voice that imitates: writes down what it knows of the request's, a line for each part."""
    speech_fields = ("ref_audio", "ref_text", "references", "task_type", "x_vector_only_mode")
    voices = ["own"]

    def __init__(self, log):
        self.log = log

    def run(self, parts, request):
        for part in parts:
            if "die" in part.text and not os.path.exists(self.log + ".died"):
                open(self.log + ".died", "w").close()
                os._exit(1)
            references = [[one.audio.sample_rate, len(one.audio.samples) // 2, bytes(one.audio.samples[:2]).hex(), one.text]
                          for one in request.references]
            with open(self.log, "a") as file:
                file.write(json.dumps({"voice": request.voice, "references": references, "fields": request.speech_fields}) + "\n")
            yield Audio(bytes(960), 24000)


def imitate(part, request):
    """Takes a sound, and no text of it."""
    return Audio(bytes(960) if request.references and not request.references[0].text else b"", 24000)


imitate.speech_fields = ("ref_audio",)


def misspelt(part, request):
    return part


misspelt.speech_fields = ("ref_sound",)


def ask(parts, request):
    """What the user of a chat says last."""
    for _ in parts:
        pass
    yield request.messages[-1]["content"]


def mark(part, request, mark):
    return f"{mark}({part.text})"


def side(request_id, output):
    """Which of left and right the text names."""
    words = "".join(part.text for part in output).split()
    if "wrong" in words:
        return "nobody"
    return words[0] if words[0] in ("left", "right") else [word for word in ("left", "right") if "both" in words]


def wanted(request_id, source, output):
    """Which of left and right the text says that are waited for; None where it does not."""
    text = "".join(part.text for part in output).lower()
    if "unsure" in text:
        return None
    if "wrong" in text:
        return ["left", "nobody"]
    if "empty" in text:
        return []
    if "absent" in text:
        return ["left", "right", "gone"]
    return ["left", "right"] if "both" in text else ["left"]


def stuck_unless_both(parts, request, mark):
    for part in parts:
        while "both" not in part.text and not request.aborted:
            time.sleep(0.01)
        yield f"{mark}({part.text})"


def gone(request_id, output):
    return ["left", "right"]


def by_first_word(request_id, output):
    return [target for target in ("left", "right") if target in output[0].text]


def if_named(name):
    return lambda part: part if name in part.text else None


for_left, for_right = if_named("left"), if_named("right")


def marked_to_the_end(parts, request, mark):
    for part in parts:
        yield f"{mark}({part.text})"
    yield f"{mark}."


def after(parts, request, marker=""):
    """Its part once there is such a file."""
    for _ in parts:
        while marker and not os.path.exists(marker) and not request.aborted:
            time.sleep(0.01)
        yield "whole"


def by_source(parts, request, marker=""):
    """Says where each part is from, and makes the file."""
    for part in parts:
        if marker:
            open(marker, "w").close()
        yield f"{part.source}:{part.text} "


def talk_with_a_guesser(parts, request):
    """Asks the stage behind it about the last word, which streams back to it, until it has asked as often as there are words."""
    text, words, ends = request.messages[-1]["content"], [], []
    for part in parts:
        if isinstance(part, SourceEnd):
            ends.append(part.source)
        elif part.source == "guess":
            words.append(part.text)
        else:
            continue
        if len(words) == len(text.split()):
            break
        yield "ask " + (words[-1] if words else text)
    yield f"said {words} {ends}"


def for_guess(part):
    return part.text[4:] if part.text.startswith("ask ") else None


def for_reply(part):
    return part.text[5:] if part.text.startswith("said ") else None


def guess(part, request):
    if "die" in part.text:
        os._exit(1)
    return part.text.split()[0] + "!"


def loud(part):
    return part.text.upper()


def nothing(part):
    return None


def joined(sources):
    return " | ".join(f"{source}: {' '.join(part.text for part in parts)}" for source, parts in sorted(sources.items()))


def leave(part, request):
    """Ends in odd ways, where the text says so."""
    if "leave" in part.text:
        sys.exit(3)
    if "odd" in part.text:
        raise StageError("an odd \ud800", field=None, code="odd")
    if "good" in part.text:
        raise StageError("it is good", code=0)
    return Audio(bytes(960), 24000)


leave.voices = "anna"


MISMADE = {
    "rate": lambda: Audio(bytes(960), None), "rates": lambda: Audio(bytes(960), 24000.5), "negative": lambda: Audio(bytes(960), -1),
    "bytes": lambda: Audio(b"odd", 24000), "floats": lambda: Audio(array.array("f", [0.5]), 24000), "clip": lambda: Audio(bytes(960), 24000, "x"),
    "reason": lambda: Finish(None), "tokens": lambda: Finish("stop", -5), "index": lambda: ToolCall(-1), "shape": lambda: Tensor(bytes(4), (-1,), "float32"),
    "dtype": lambda: Tensor(bytes(4), (1,), None), "time": lambda: Heard("x", float("nan")), "seconds": lambda: Encoded(b"x", 24000, -1),
}


def mismade(part, request):
    """The part that the text names, which is none; else sound whose rate is a float, and whose end is no bool."""
    make = MISMADE.get(part.text)
    return make() if make else Audio(array.array("h", [7] * 480), 24000.0, last=None)


def mishear(part, request):
    """Hears a sound that the chat does not have."""
    return Heard("hello", clip=7)


def kilohertz(part, request):
    return Audio(bytes(960), 24)


def complain(parts, request):
    for _ in parts:
        pass
    if request.messages:
        raise StageError("that is too much", field="input")
    yield "nothing was asked"


def leave_between(sources):
    sys.exit(3)


def threads(part, request):
    return Audio(threading.active_count().to_bytes(2, "little") * 480, 24000)


class Loud:
    """A voice whose sound goes through shared memory, for three at a time; the text "odd" makes it send what is no message."""
    max_running = 3

    def run(self, parts, request):
        for part in parts:
            if part.text == "odd":
                request._run.worker.connection.send(b"\x00\xc1\xc1\xc1")
            for _ in range(5):
                time.sleep(0.002)
                yield Audio(bytes(48000), 24000)
