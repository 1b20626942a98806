#!/usr/bin/env python3
"""Clients that leave at random moments, on every route and WebSocket of `portico omni serve`, and what is left of them.

    portico omni serve --port 8000 &
    python3 bench/omni/disconnects.py http://localhost:8000 --pid $! --clients 10000

Each client sends a request, or half of one, reads for a moment, or not at all, and closes. Afterwards the server must have no
request, connection, file, memfd or process more than before. Only the standard library is needed.
"""
import argparse
import base64
import contextlib
import json
import os
import random
import re
import socket
import struct
import threading
import time
import urllib.parse
import urllib.request

TEXT = "The train to London leaves at seven in the morning, and nobody knows why. " * 6


def wav(seconds):
    samples = bytes(int(32000 * seconds))
    return (b"RIFF" + (36 + len(samples)).to_bytes(4, "little") + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) +
            b"data" + len(samples).to_bytes(4, "little") + samples)


def post(path, body, kind="application/json"):
    return f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def form(data):
    return (b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + data + b"\r\n--b--\r\n")


def frame(text):
    data = text.encode()
    head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else bytes([0x81, 0xFE]) + struct.pack(">H", len(data))
    return head + bytes(4) + data


def upgrade(path):
    return (f"GET {path} HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode()


def requests_of(chance):
    """The bytes of one random client, piece by piece."""
    which = chance.randrange(9)
    if which == 0:
        return [post("/v1/audio/speech", json.dumps({"input": TEXT, "voice": chance.choice(["slt", "kal16"])}).encode())]
    if which == 1:
        return [post("/v1/audio/speech", json.dumps({"input": TEXT, "stream": True, "voice": "kal16"}).encode())]
    if which == 2:
        return [post("/v1/audio/speech", json.dumps({"input": TEXT, "response_format": chance.choice(["mp3", "opus", "flac"]), "voice": "kal16"}).encode())]
    if which == 3:
        return [post("/v1/audio/transcriptions", form(wav(1)), "multipart/form-data; boundary=b")]
    if which == 4:
        body = {"messages": [{"role": "user", "content": "What is the capital of Japan?"}], "modalities": ["text", "audio"], "stream": chance.random() < 0.5,
                "audio": {"voice": "kal16"}}
        return [post("/v1/chat/completions", json.dumps(body).encode())]
    if which == 5:
        return [post("/v1/audio/speech/batch", json.dumps({"voice": "kal16", "items": [{"input": TEXT}] * 3}).encode())]
    if which == 6:
        return [upgrade("/v1/audio/speech/stream"), frame(json.dumps({"type": "session.config", "voice": "kal16", "stream_audio": True})),
                frame(json.dumps({"type": "input.text", "text": TEXT}))]
    if which == 7:
        return [upgrade("/v1/realtime"), frame(json.dumps({"type": "conversation.item.create", "item": {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is the capital of Japan?"}]}})),
            frame(json.dumps({"type": "response.create"}))]
    loud = base64.b64encode(random.Random(1).randbytes(30000)).decode()
    return [upgrade("/v1/realtime"), frame(json.dumps({"type": "input_audio_buffer.append", "audio": loud})),
            frame(json.dumps({"type": "input_audio_buffer.commit"}))]


def client(where, chance):
    connection = socket.create_connection(where, timeout=30)
    try:
        pieces = requests_of(chance)
        for piece in pieces[:chance.randint(1, len(pieces))]:
            if chance.random() < 0.2:
                piece = piece[:chance.randrange(len(piece))]
            connection.sendall(piece)
            if piece.startswith(b"GET"):
                connection.settimeout(5)
                connection.recv(4096)
        moment = chance.choice([0, 0, 0.001, 0.01, 0.05, 0.2])
        if moment:
            connection.settimeout(moment)
            while connection.recv(65536):
                pass
    except OSError:
        pass
    if chance.random() < 0.5:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def children(pid):
    """Processes that any thread of it has started and that live; a thread that ends meanwhile is left out."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{thread}/children") as file:
            count += len(file.read().split())
    return count


def open_files(pid):
    """What it has open; what is closed meanwhile is left out."""
    files = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return files


def state(url, pid):
    text = urllib.request.urlopen(url + "/metrics").read().decode()
    numbers = {name: sum(float(v) for v in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.M))
               for name in ("portico_pipeline_requests_running", "portico_requests_running", "portico_stage_requests")}
    files = open_files(pid)
    with open(f"/proc/{pid}/status") as status:
        resident = int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) // 1024
    return {**numbers, "files": len(files), "memfd": sum("memfd" in name for name in files), "children": children(pid), "resident MB": resident}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--clients", type=int, default=10000)
    parser.add_argument("--threads", type=int, default=32)
    arguments = parser.parse_args()
    where = urllib.parse.urlsplit(arguments.url)
    address = (where.hostname, where.port)
    for i in range(200):  # what is made once
        client(address, random.Random(i))
    time.sleep(3)
    before = state(arguments.url, arguments.pid)
    print("before:", before, flush=True)
    left = iter(range(arguments.clients))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                seed = next(left, None)
            if seed is None:
                return
            client(address, random.Random(1000 + seed))

    start = time.time()
    threads = [threading.Thread(target=work) for _ in range(arguments.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{arguments.clients} clients in {time.time() - start:.0f} s", flush=True)
    deadline = time.time() + 60
    while True:
        after = state(arguments.url, arguments.pid)
        over = {k: v for k, v in after.items() if k != "resident MB" and v > before[k]}
        if not over or time.time() > deadline:
            break
        time.sleep(0.5)
    print("after: ", after, flush=True)
    print("left behind:", over or "nothing")
    raise SystemExit(1 if over else 0)


if __name__ == "__main__":
    main()
