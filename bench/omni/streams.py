#!/usr/bin/env python3
"""Many clients that listen at the speed of speech to a running `portico omni serve`: gaps in the sound, CPU and memory.

    portico omni serve --port 8000 &
    python3 bench/omni/streams.py http://localhost:8000 --pid $! [--streams 64] [--seconds 60] [--stopped 32]

Each client asks for the same text as pcm, begins to play --buffer-ms after its first byte, and reads no further ahead than
that. An underrun is a moment at which what it should play has not come. --stopped more clients read a little and then nothing.
CPU and memory (proportional, over what the server had before) are those of the server and its children; beside the CPU
stands that of flite's library, which makes the same sound in this process, sentence by sentence as the server does (the pauses
between sentences are sound, too), and of the same text as one utterance, which has no pauses. Only the standard library is needed.
"""
import argparse
import asyncio
import json
import pathlib
import socket
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from run import tree  # noqa: E402
from speech import SENTENCES, library  # noqa: E402

BYTES_A_SECOND = 48000
TICK = 0.04


def cpu(pid):
    return sum(time.clock_gettime_ns((~one << 3) | 2) for one in tree(pid)) / 1e9


def memory(pid):
    lines = [line for one in tree(pid) for line in open(f"/proc/{one}/smaps_rollup") if line.startswith("Pss:")]
    return sum(int(line.split()[1]) for line in lines) / 1024


async def ask(a, text):
    where = urllib.parse.urlsplit(a.url)
    plain = socket.socket(socket.AF_INET)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, (socket.gethostbyname(where.hostname), where.port or 80))
    reader, writer = await asyncio.open_connection(sock=plain, limit=4096)
    body = json.dumps({"input": text, "voice": a.voice, "response_format": "pcm"}).encode()
    writer.write(b"POST /v1/audio/speech HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                 b"content-length: %d\r\n\r\n" % len(body) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise SystemExit(head.decode())
    return reader, writer


class Listener:
    def __init__(self, a):
        self.a, self.got, self.ended, self.underruns, self.first = a, 0, False, 0, 0.0

    async def listen(self, text):
        asked = time.monotonic()
        reader, writer = await ask(self.a, text)
        self.got += len(await reader.read(1))
        began = time.monotonic()
        self.first = began - asked
        reading = asyncio.create_task(self.read(reader, began))
        plays = began + self.a.buffer_ms / 1000
        while not self.ended:
            await asyncio.sleep(TICK)
            late = not self.ended and self.got < int((time.monotonic() - plays) * BYTES_A_SECOND)
            self.underruns += late
        await reading
        writer.close()

    async def read(self, reader, began):
        ahead = self.a.buffer_ms / 1000
        while not self.ended:
            wanted = int((time.monotonic() - began + ahead) * BYTES_A_SECOND) - self.got
            if wanted < 1920:
                await asyncio.sleep(0.02)
                continue
            piece = await reader.read(wanted)
            self.got += len(piece)
            self.ended = not piece


async def stop_reading(a, text):
    reader, writer = await ask(a, text)
    await reader.read(1000)
    return writer


async def measure(a, text, alone, at_once):
    idle = memory(a.pid)
    before, began = cpu(a.pid), time.monotonic()
    stopped = [await stop_reading(a, text) for _ in range(a.stopped)]
    listeners = [Listener(a) for _ in range(a.streams)]
    tasks = [asyncio.create_task(one.listen(text)) for one in listeners]
    await asyncio.sleep(a.seconds / 2)
    used = memory(a.pid) - idle
    await asyncio.gather(*tasks)
    spent = cpu(a.pid) - before
    seconds = listeners[0].got / BYTES_A_SECOND
    late = [one.underruns for one in listeners if one.underruns]
    print(f"{a.streams} streams of {seconds:.1f} s, {a.stopped} clients that stopped reading, {time.monotonic() - began:.0f} s")
    print(f"  underruns at {a.buffer_ms} ms of buffer: {len(late)} streams, {sum(late)} moments")
    firsts = sorted(one.first for one in listeners)
    print(f"  first sound, all at once: median {1000 * firsts[len(firsts) // 2]:.0f} ms, last {1000 * firsts[-1]:.0f} ms")
    print(f"  CPU: {spent / a.streams:.3f} s a stream, the library alone {alone:.3f} s, ratio {spent / a.streams / alone:.2f} "
          f"(as one utterance {at_once:.3f} s, {spent / a.streams / at_once:.2f})")
    print(f"  memory: {used / (a.streams + a.stopped):.2f} MB a stream")
    for writer in stopped:
        writer.transport.abort()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--pid", type=int, required=True, help="the server's")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--stopped", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60, help="of speech, about")
    parser.add_argument("--buffer-ms", type=int, default=100)
    parser.add_argument("--voice", default="slt")
    a = parser.parse_args()
    sentences = [SENTENCES[i % 100] for i in range(int(a.seconds / 2.7) + 1)]
    text = " ".join(sentences)
    make = library(a.voice)
    make(text)

    def spent(texts):
        began = time.process_time()
        for _ in range(3):
            for one in texts:
                make(one)
        return (time.process_time() - began) / 3

    asyncio.run(measure(a, text, spent(sentences), spent([text])))


if __name__ == "__main__":
    main()
