#!/usr/bin/env python3
"""Measures a running `portico omni serve`: word errors of what it says and hears again, and the time to first sound.

    portico omni serve --port 8000 &
    python3 bench/omni/speech.py http://localhost:8000 --sentences 100

Word errors are substitutions, deletions and insertions over the words that were said; where the programs flite and
pocketsphinx_batch are installed (Debian packages flite, pocketsphinx), their errors on the same sentences stand beside them.
The first sound of one sentence (pcm) is compared with flite's own library in this process, which makes the same sentence as
a whole: the last column is the ratio of the medians. Only the standard library is needed.
"""
import argparse
import ctypes
import itertools
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import http.client
import uuid

SUBJECTS = ["The doctor", "My brother", "The old man", "A young woman", "The teacher", "Our neighbor", "The captain",
            "Her mother", "The engineer", "His friend"]
REST = ["left the house before seven in the morning", "asked about the price of the house", "wants to open a new office next month",
        "read a long letter from the city", "closed the door and turned off the light", "will meet the children after school",
        "has never seen the sea in winter", "talked about the weather for an hour", "found the money under the table",
        "knows the way to the station"]
# Each subject with each rest once, neighbours apart.
SENTENCES = [f"{SUBJECTS[(i + j) % 10]} {REST[j]}." for i, j in itertools.product(range(10), range(10))]
VOICES = ["slt", "rms", "awb"]


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def errors(wanted, heard):
    row = list(range(len(heard) + 1))
    for i, a in enumerate(wanted, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(heard, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


class Client:
    def __init__(self, url):
        where = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(where.hostname, where.port or 80, timeout=120)
        self.connection.connect()

    def send(self, path, body, kind):
        self.connection.request("POST", path, body, {"content-type": kind})
        answer = self.connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {answer.read()[:300]}")
        return answer

    def say(self, text, voice, form):
        return self.send("/v1/audio/speech", json.dumps({"input": text, "voice": voice, "response_format": form}), "application/json")

    def hear(self, audio):
        mark = uuid.uuid4().hex
        body = (f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n').encode() + audio + f"\r\n--{mark}--\r\n".encode()
        return json.loads(self.send("/v1/audio/transcriptions", body, f"multipart/form-data; boundary={mark}").read())["text"]


def library(voice):
    """A function that makes a sentence with flite in this process."""
    flite = ctypes.CDLL("libflite.so.1", mode=ctypes.RTLD_GLOBAL)
    for name in ("libflite_usenglish.so.1", "libflite_cmulex.so.1"):
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    register = getattr(ctypes.CDLL(f"libflite_cmu_us_{voice}.so.1"), f"register_cmu_us_{voice}")
    register.restype, register.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    make, drop = flite.flite_text_to_wave, flite.delete_wave
    make.restype, make.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_void_p]
    drop.argtypes = [ctypes.c_void_p]
    flite.flite_init()
    which = register(None)
    return lambda text: drop(make(text.encode(), which))


def programs_errors(voice, sentences):
    """What pocketsphinx_batch gets wrong of what the program flite says; None where they are not installed."""
    if not all(map(shutil.which, ("flite", "pocketsphinx_batch"))):
        return None
    model = "/usr/share/pocketsphinx/model/en-us"
    with tempfile.TemporaryDirectory() as folder:
        for i, sentence in enumerate(sentences):
            subprocess.run(["flite", "-voice", voice, "-t", sentence, "-o", f"{folder}/{i}.wav"], check=True)
        pathlib.Path(folder, "list").write_text("".join(f"{i}\n" for i in range(len(sentences))))
        subprocess.run(["pocketsphinx_batch", "-adcin", "yes", "-adchdr", "44", "-cepdir", folder, "-cepext", ".wav", "-ctl", f"{folder}/list",
                        "-hyp", f"{folder}/heard", "-hmm", f"{model}/en-us", "-lm", f"{model}/en-us.lm.bin",
                        "-dict", f"{model}/cmudict-en-us.dict", "-logfn", "/dev/null"], check=True)
        lines = pathlib.Path(folder, "heard").read_text().splitlines()
    return sum(errors(words(said), words(line[:line.rindex("(")])) for said, line in zip(sentences, lines, strict=True))


def milliseconds(function):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--sentences", type=int, default=100, help="for word errors, at most 100")
    parser.add_argument("--rounds", type=int, default=40, help="for the first sound")
    arguments = parser.parse_args()
    client = Client(arguments.url)
    for voice in ("kal16", "slt"):
        alone = library(voice)
        ours, theirs = [], []
        for i in range(arguments.rounds):
            text = SENTENCES[i % 100]

            def first():
                answer = client.say(text, voice, "pcm")
                answer.read(1)
                return answer
            holder = []
            ours.append(milliseconds(lambda: holder.append(first())))
            holder[0].read()
            theirs.append(milliseconds(lambda: alone(text)))
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"first sound, {voice}: {a:.1f} ms, library alone (whole sentence) {b:.1f} ms, ratio {a / b:.2f}", flush=True)
    for voice in VOICES:
        wrong = total = 0
        for sentence in SENTENCES[:arguments.sentences]:
            heard = client.hear(client.say(sentence, voice, "wav").read())
            wrong += errors(words(sentence), words(heard))
            total += len(words(sentence))
        line = f"word errors, {voice}: {wrong} of {total}, {100 * wrong / total:.1f} %"
        alone = programs_errors(voice, SENTENCES[:arguments.sentences])
        print(line if alone is None else f"{line}; flite and pocketsphinx_batch: {100 * alone / total:.1f} %", flush=True)


if __name__ == "__main__":
    main()
