"""HTTP workers that publish KV-cache events over ZMQ as SGLang and vLLM do, under a test's control."""
import contextlib
import http.server
import json
import threading
import time

import msgspec
import zmq
from conftest import WAIT_SECONDS, free_port

BLOCK = 16


def sglang(kind, names=None, tokens=None, parent=None, medium="GPU"):
    """An event as SGLang 0.5.23 writes it: a map, without what is at its default."""
    if kind == "AllBlocksCleared":
        return {"type": kind}
    if kind == "BlockRemoved":
        return {"type": kind, "block_hashes": names, "medium": medium}
    return {"type": kind, "block_hashes": names, "parent_block_hash": parent, "token_ids": tokens,
            "block_size": BLOCK, "lora_id": None, "medium": medium}


def vllm(kind, names=None, tokens=None, parent=None, medium="GPU"):
    """As vLLM 0.33 writes it: hashes without a sign, more members."""
    names = names and [name + 2**63 for name in names]
    event = sglang(kind, names, tokens, parent and parent + 2**63, medium)
    if kind == "BlockStored":
        event |= {"lora_name": None, "extra_keys": [None] * len(names)}
    if kind != "AllBlocksCleared":
        event["group_idx"] = 0
    return event


def vllm_array(kind, names=None, tokens=None, parent=None, medium="GPU"):
    """As early vLLM wrote it: tagged arrays."""
    return {"AllBlocksCleared": [kind], "BlockRemoved": [kind, names],
            "BlockStored": [kind, names, parent, tokens, BLOCK, None]}[kind]


class Publisher:
    """A rank's PUB socket (an XPUB, which sees its subscribers) and, if `replay`, its ROUTER. Used by the test's thread."""

    def __init__(self, layout=sglang, port=None, replay=False, topic=b"kv-events"):
        self.layout, self.topic, self.names = layout, topic, 0
        self.port = port or free_port()
        self.replay_port = free_port() if replay else None
        self.context = zmq.Context()
        self.start()

    def start(self):
        self.number, self.kept, self.over = 0, [], threading.Event()
        self.socket = self.bound(zmq.XPUB, self.port)
        self.thread = None
        if self.replay_port:
            router = self.bound(zmq.ROUTER, self.replay_port)
            self.thread = threading.Thread(target=self.serve_replays, args=(router,), daemon=True)
            self.thread.start()

    def bound(self, kind, port):
        socket = self.context.socket(kind)
        socket.linger = 0
        deadline = time.time() + 60
        while True:  # the former process' socket may take a moment to go
            try:
                socket.bind(f"tcp://127.0.0.1:{port}")
                return socket
            except zmq.ZMQError:
                assert time.time() < deadline
                time.sleep(0.05)

    def wait_subscribed(self):
        """What is published before is lost."""
        while True:
            assert self.socket.poll(1000 * WAIT_SECONDS), "nobody subscribes"
            if self.socket.recv()[:1] == b"\1":
                return

    def serve_replays(self, router):
        while not self.over.is_set():
            if not router.poll(20):
                continue
            client, _, start = router.recv_multipart()
            for number, payload in list(self.kept):
                if number >= int.from_bytes(start, "big"):
                    router.send_multipart([client, b"", self.topic, number.to_bytes(8, "big"), payload])
            router.send_multipart([client, b"", b"", (-1).to_bytes(8, "big", signed=True), b""])
        router.close()

    def publish(self, *events, lost=False, number=None):
        """A batch; `lost`: no subscriber gets it."""
        if number is not None:
            self.number = number
        payload = msgspec.msgpack.encode([time.time(), list(events), 0])
        self.kept.append((self.number, payload))
        if not lost:
            self.socket.send_multipart([self.topic, self.number.to_bytes(8, "big"), payload])
        self.number += 1

    def stored(self, ids, **how):
        """Takes in a prompt; the names of its blocks."""
        names = [self.names + 1 + i for i in range(len(ids) // BLOCK)]
        self.names += len(names)
        half = len(names) // 2  # the second event builds on the first
        self.publish(self.layout("BlockStored", names[:half], ids[:half * BLOCK]),
                     self.layout("BlockStored", names[half:], ids[half * BLOCK:len(names) * BLOCK], names[half - 1]), **how)
        return names

    def removed(self, names, **how):
        self.publish(self.layout("BlockRemoved", names), **how)

    def cleared(self, **how):
        self.publish(self.layout("AllBlocksCleared"), **how)

    def mark(self):
        """A batch that does nothing but be counted as a fault, after all before it."""
        self.publish(["BlockMoved"])

    def end(self):
        self.over.set()
        if self.thread:
            self.thread.join()
        self.socket.close()

    def restart(self):
        """Another process at the same address, which counts from 0 and has nothing."""
        self.end()
        self.start()

    def stop(self):
        self.end()
        self.context.term()

    def config(self):
        """As the server's --kv-events-config has it."""
        config = {"publisher": "zmq", "endpoint": f"tcp://*:{self.port}", "topic": self.topic.decode()}
        return config | ({"replay_endpoint": f"tcp://*:{self.replay_port}"} if self.replay_port else {})


class HttpWorker:
    """Answers everything, and says of itself what `info` has."""

    def __init__(self, info=None):
        worker = self
        self.info, self.asked = info or {}, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                worker.asked.append(self.path)
                self.answer({"/v1/models": {"data": [{"id": "m"}]}, "/server_info": worker.info,
                             "/v1/loads": {"loads": [{"num_running_reqs": 0, "num_waiting_reqs": 0}]}}.get(self.path, {}))

            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.answer({"text": "yes"})

            def answer(self, body):
                body = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
